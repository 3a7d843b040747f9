"""Runs measurements on the compiled transport and on its sources, in turn, for one benchmark.

Each measurement is a function of a benchmark program, called in a Python process of its own.
Both builds use the same directory, which `python hatch_build.py out/compiled` makes: it has the
sources next to the compiled modules, and `CAUSEWIRE_PURE=1` chooses the sources. A measurement
fails if it did not run on the build that was asked for.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import causewire

COMPILED = " compiled"
"""The end of the name of a contender that runs on the compiled transport."""

LONGEST = 300
"""Seconds after which a measurement is taken for stuck."""


class Builds:
    """The builds of one directory, or the package as it is installed."""

    def __init__(self, directory: Path | None) -> None:
        """Check that the directory has the sources of this package, compiled.

        Args:
            directory: What `python hatch_build.py` made. With None there are no contenders on
                the compiled transport, unless what is installed is compiled.

        Raises:
            SystemExit: The directory has something else; the message says what to do.
        """
        self._directory = directory and directory.resolve()
        if directory and (what := _difference(directory / "causewire")):
            raise SystemExit(f"{directory}: {what}; run: python hatch_build.py {directory}")

    def both(self, names: Iterable[str]) -> list[str]:
        """Return contenders with their compiled twins."""
        twins = ("", COMPILED) if self._directory else ("",)
        return [name + build for name in names for build in twins]

    def describe(self) -> str:
        """Return what nodes run on, as a sentence."""
        if self._directory:
            return f"the transport is pure Python, and compiled where a name ends with{COMPILED!r}"
        return f"the transport is {'compiled' if is_compiled() else 'pure Python'}"

    def call(self, program: str, function: str, name: str, *arguments: Any) -> Any:
        """Return what a function of a program returns for a contender.

        Args:
            program: The benchmark, a module of this directory.
            function: Its function; what it takes and returns must be JSON.
            name: The contender, the function's first argument. If it ends with `COMPILED`,
                the function gets the rest of the name, and runs on the compiled transport.
            arguments: Its other arguments.
        """
        if self._directory is None:
            return getattr(importlib.import_module(program), function)(name, *arguments)
        compiled = name.endswith(COMPILED)
        paths = [str(self._directory), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        environment["CAUSEWIRE_PURE"] = "0" if compiled else "1"
        todo = json.dumps([program, function, [name.removesuffix(COMPILED), *arguments], compiled])
        with subprocess.Popen(
            [sys.executable, __file__, todo],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that a measurement that is stuck ends with its processes
        ) as process:
            try:
                output, _ = process.communicate(timeout=LONGEST)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode:
            raise SystemExit(f"{program}.{function} failed for {name}")
        return json.loads(output)


def _difference(theirs: Path) -> str:
    """Return how a compiled package differs from the one that is imported; "" if it does not."""
    if not theirs.is_dir():
        return "there is no compiled package"
    ours = Path(causewire.__file__).parent
    for package in ("core", "transport", "node"):
        for file in sorted((ours / package).glob("*.py")):
            copy = theirs / package / file.name
            if not copy.is_file() or copy.read_bytes() != file.read_bytes():
                return f"{package}/{file.name} is not what was compiled"
    return ""


def is_compiled() -> bool:
    """Return whether this process runs on the compiled transport."""
    session = importlib.import_module("causewire.transport.session")
    return not str(session.__file__).endswith(".py")


def main() -> None:
    """Call one function, in the process that `Builds.call` started."""
    program, function, arguments, compiled = json.loads(sys.argv[1])
    if is_compiled() is not compiled:
        raise SystemExit(f"asked for compiled={compiled}, but got {causewire.__file__}")
    print(json.dumps(getattr(importlib.import_module(program), function)(*arguments)))


if __name__ == "__main__":
    main()
