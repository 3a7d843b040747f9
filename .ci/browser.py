"""Install a browser for the tests, unless there is one: .venv/bin/python .ci/browser.py

Playwright's own download is tried first, then the packages of Debian and Ubuntu. What they print
is shown only if neither leads to a browser that starts; the tests then say that they leave out
what needs one. The exit status is 0 with a browser and 1 without.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser import find_chromium

PATIENCE = 300
"""Seconds for one command."""


def ways() -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the ways to a browser, each with its commands."""
    playwright = [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]
    yield "Playwright's download", [playwright]
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") and (not root or shutil.which("sudo")):
        apt = [*root, "apt-get", "-qq"]
        for package in ("chromium-headless-shell", "chromium"):
            install = [*apt, "install", "--yes", "--no-install-recommends", package]
            yield f"the package {package}", [[*apt, "update"], install]


def starts() -> bool:
    """Return whether there is a browser, with all the libraries that it needs."""
    path = find_chromium()
    return path is not None and not run([path, "--no-sandbox", "--version"])


def run(command: list[str]) -> str:
    """Run a command; return what went wrong, or nothing."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.strip() or "it failed" if done.returncode else ""


def main() -> int:
    """Go through the ways until a browser starts."""
    if starts():
        return 0
    troubles = []
    for name, commands in ways():
        print(f"installing a browser for the tests: {name}", flush=True)
        trouble = next(filter(None, map(run, commands)), "")
        if not trouble and starts():
            return 0
        lines = trouble.splitlines() or ["it does not start"]
        told = next((line for line in lines if "rror" in line or line.startswith("E:")), lines[-1])
        troubles.append(f"{name}: {told.strip()}")
    print("browser tests are left out, because no Chromium can be installed:")
    print("\n".join(f"  {trouble}" for trouble in troubles), flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
