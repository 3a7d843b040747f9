"""Set up the environment of the Makefile: python .ci/environment.py VENV LOCK

It needs nothing but the standard library. pip's own output is shown only if it fails;
meanwhile one line says which package it is at.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import venv
from collections import deque
from pathlib import Path

_PIP = ("-m", "pip", "install", "--disable-pip-version-check")


def say(text: str, *, last: bool = False) -> None:
    """Show what is being done: on a terminal in one line, otherwise only what is final."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{text[:79]}", end="\n" if last else "", flush=True)
    elif last:
        print(text, flush=True)


def install(python: str, name: str, *what: str) -> None:
    """Run pip for the packages of this name, and say how far it is."""
    begun, kept, number = time.monotonic(), deque[str](maxlen=30), 0
    command = [python, *_PIP, "--progress-bar", "off", *what]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            kept.append(line)
            spent = f"{time.monotonic() - begun:.0f} s"
            collecting = re.match(r"Collecting ([\w.-]+)", line)
            if collecting:
                number += 1
                say(f"  fetching {name}: {collecting[1]}, number {number} ({spent})")
            elif line.startswith("Installing collected"):
                say(f"  installing {name} ({spent})")
    if pip.returncode:
        say("")
        sys.exit("".join(kept) + "the packages could not be installed")


def main() -> None:
    """Make the environment."""
    place, lock = Path(sys.argv[1]), Path(sys.argv[2])
    begun = time.monotonic()
    say(f"setting up, once: the packages of {lock}, in {place}; a minute or two", last=True)
    venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    install(python, "packages", "--use-pep517", "--require-hashes", "-r", str(lock))
    install(python, "Causewire", "--no-deps", "--no-build-isolation", "-e", ".")
    say(f"set up in {time.monotonic() - begun:.0f} seconds", last=True)


if __name__ == "__main__":
    main()
