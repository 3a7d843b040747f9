"""`causewire bench`: run the benchmark programs, one after the other.

Each benchmark is a program that prints ratios against something else measured in
the same run. The programs come with the package; in a checkout they are those of
the directory `benchmarks/`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .errors import CommandError
from .output import print_json

__all__ = ["configure", "run"]

NEEDS = {
    "check": ("numpy", "pyarrow"),
    "goals": ("zmq", "uvloop"),
    "latency": ("zmq", "cryptography"),
    "node": ("zmq", "cryptography"),
    "pipeline": ("numpy", "pyspark"),
    "scan": ("pyspark",),
    "sim": ("simpy",),
    "sweep": ("pyspark",),
}
"""Packages that a benchmark needs besides Causewire."""

_EPILOG = """\
examples:
  causewire bench                  (all, which takes minutes)
  causewire bench check sim

Benchmarks compare Causewire with other packages: pip install "causewire[bench]" installs them.
Without NAME, benchmarks whose packages are missing are skipped. The exit status is 0, or 1 if a
program fails.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("names", nargs="*", metavar="NAME", help="which benchmarks; default: all")
    parser.add_argument("--list", action="store_true", help="only print the names of benchmarks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    programs = _programs()
    unknown = [name for name in args.names if name not in programs]
    if unknown:
        raise CommandError(f"no benchmark {unknown[0]!r}; there are {', '.join(programs)}")
    if args.list:
        if args.json:
            print_json({"benchmarks": list(programs)})
        else:
            print("\n".join(programs))
        return 0
    results: dict[str, Any] = {}
    for name in args.names or programs:
        missing = [package for package in NEEDS.get(name, ()) if find_spec(package) is None]
        if missing and args.names:
            raise CommandError(f'{name} needs {missing[0]}: pip install "causewire[bench]"')
        if not args.json:
            print(f"== {name}", flush=True)
        if missing:
            results[name] = {"status": 0, "skipped": f"needs {missing[0]}"}
            if not args.json:
                print(f"skipped: needs {missing[0]}")
            continue
        results[name] = _measure(programs[name], quiet=args.json)
    if args.json:
        print_json({"benchmarks": results})
    failed = [name for name, result in results.items() if result["status"]]
    if failed:
        print(f"causewire bench: {', '.join(failed)} failed", file=sys.stderr)
    return 1 if failed else 0


def _programs() -> dict[str, Path]:
    """Return the benchmark programs by name."""
    package = Path(__file__).resolve().parents[1]
    for directory in (package / "_benchmarks", package.parents[1] / "benchmarks"):
        if directory.is_dir():
            found = sorted(directory.glob("*.py"))
            return {path.stem: path for path in found if not path.stem.startswith("_")}
    raise CommandError("this installation has no benchmarks")


def _measure(program: Path, *, quiet: bool) -> dict[str, Any]:
    """Run one program; show its output, or return it (as its own JSON object, if it has one)."""
    command = [sys.executable, str(program)]
    begun = time.monotonic()
    if not quiet:
        status = subprocess.run(command, check=False).returncode
        return {"status": status, "seconds": round(time.monotonic() - begun, 1)}
    speaks = "--json" in _output([*command, "--help"])[1]
    status, output = _output([*command, "--json"] if speaks else command)
    result: dict[str, Any] = {"status": status, "seconds": round(time.monotonic() - begun, 1)}
    if speaks:
        try:
            return {**result, "result": json.loads(output)}
        except ValueError:
            pass
    return {**result, "output": output.splitlines()}


def _output(command: list[str]) -> tuple[int, str]:
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    return done.returncode, done.stdout
