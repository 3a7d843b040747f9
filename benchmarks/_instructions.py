"""Counts the instructions of a function of a benchmark, with Valgrind.

Valgrind's tool callgrind runs a Python process and counts every instruction of the processor
that it executes outside the kernel. The function is called in two processes that differ in how
often it repeats its work; the difference of the two counts, divided by the difference of the
repetitions, is what one repetition executes, without start and end of the process.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

VALGRIND = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}")
FOUND = re.compile(r"Collected : (\d+)")


def per_repetition(
    build: tuple[Path | None, bool],
    program: str,
    function: str,
    arguments: list[Any],
    repetitions: tuple[int, int],
) -> float:
    """Return how many instructions one repetition of a function executes.

    Args:
        build: A directory that `python hatch_build.py` made, or None for the package that is
            installed; and whether compiled modules are used.
        program: The benchmark, a module of this directory.
        function: Its function, whose last argument is the number of repetitions. What it takes
            must be JSON.
        arguments: Its other arguments.
        repetitions: How many in the first process, and how many in the second.

    Raises:
        SystemExit: Valgrind is not installed, or the function failed.
    """
    if shutil.which("valgrind") is None:
        raise SystemExit("counting instructions needs valgrind, which is not installed")
    directory, compiled = build
    environment = {
        **os.environ,
        "CAUSEWIRE_PURE": "0" if compiled else "1",
        "PYTHONHASHSEED": "0",
        "PYTHONMALLOC": "pymalloc",
    }
    if directory is not None:
        environment["PYTHONPATH"] = str(directory.resolve())
    counts = []
    for number in repetitions:
        todo = json.dumps([program, function, [*arguments, number]])
        done = subprocess.run(
            [*VALGRIND, sys.executable, __file__, todo],
            env=environment,
            capture_output=True,
            text=True,
        )
        found = FOUND.search(done.stderr)
        if done.returncode or not found:
            raise SystemExit(f"{program}.{function} failed in valgrind:\n{done.stderr}")
        counts.append(int(found[1]))
    return (counts[1] - counts[0]) / (repetitions[1] - repetitions[0])


def builds(directory: Path | None) -> list[tuple[str, tuple[Path | None, bool]]]:
    """Return names and values of the builds to count: the sources, and a compiled build."""
    if directory is None:
        return [("pure Python", (None, False))]
    return [("pure Python", (directory, False)), ("compiled", (directory, True))]


def main() -> None:
    """Call one function, in the process that `per_repetition` started."""
    program, function, arguments = json.loads(sys.argv[1])
    getattr(importlib.import_module(program), function)(*arguments)


if __name__ == "__main__":
    main()
