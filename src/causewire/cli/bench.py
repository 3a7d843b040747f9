"""`causewire bench`: the programs of `benchmarks/`, one after the other.

Each is a program of its own that prints ratios against a peer measured in the
same run; here they are found and started. Campaigns, which take hours if they
are let, run only when they are named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .errors import CommandError
from .output import print_json

__all__ = ["configure", "run"]

_CAMPAIGNS = ("check_fuzz", "soak")

_EPILOG = """\
examples:
  causewire bench                  (all, which takes minutes)
  causewire bench check sim

Needs a checkout, as an installed package has no benchmarks. The exit status is 0, or 1 if a
program fails.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; default: all")
    parser.add_argument("--list", action="store_true", help="only tell which there are")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    programs = _programs()
    unknown = [name for name in args.names if name not in programs]
    if unknown:
        raise CommandError(f"no benchmark {unknown[0]!r}; there are {', '.join(programs)}")
    chosen = args.names or [name for name in programs if name not in _CAMPAIGNS]
    if args.list:
        if args.json:
            print_json({"benchmarks": list(programs)})
        else:
            print("\n".join(programs))
        return 0
    results: dict[str, Any] = {}
    for name in chosen:
        if not args.json:
            print(f"== {name}", flush=True)
        results[name] = _measure(programs[name], quiet=args.json)
    if args.json:
        print_json({"benchmarks": results})
    failed = [name for name, result in results.items() if result["status"]]
    if failed:
        print(f"causewire bench: {', '.join(failed)} failed", file=sys.stderr)
    return 1 if failed else 0


def _programs() -> dict[str, Path]:
    """The benchmarks of the checkout that this package is run from."""
    directory = Path(__file__).resolve().parents[3] / "benchmarks"
    if not directory.is_dir():
        raise CommandError("there are no benchmarks here: they come with a checkout of causewire")
    found = sorted(directory.glob("*.py"))
    return {path.stem: path for path in found if not path.stem.startswith("_")}


def _measure(program: Path, *, quiet: bool) -> dict[str, Any]:
    """Run one; its output is shown, or kept. One that has --json gives its own object."""
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
