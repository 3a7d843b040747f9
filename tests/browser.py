"""A real browser for tests: one that is installed, or that Playwright has installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

__all__ = [
    "CHROMIUM",
    "FLAGS",
    "axe_violations",
    "find_chromium",
    "launched",
    "require_browser",
]

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """Return the path of a Chromium that is installed, or that Playwright has installed."""
    names = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    place = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright"
    for pattern in ("chromium-*/chrome-linux*/chrome", "chromium_headless*/*/*headless*shell"):
        for path in sorted(Path(place).glob(pattern), reverse=True):
            if os.access(path, os.X_OK):
                return str(path)
    return None


CHROMIUM = find_chromium()


def require_browser() -> None:
    """Skip the tests of a module, with a reason, where there is no browser."""
    for package in ("playwright.sync_api", "axe_playwright_python.sync_playwright"):
        name = package.partition(".")[0]
        pytest.importorskip(package, reason=f"browser tests are left out: {name} is not installed")
    if CHROMIUM is None:
        pytest.skip("browser tests are left out: no Chromium was found", allow_module_level=True)


@contextmanager
def launched() -> Iterator[Any]:
    """Run a browser while the block runs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def axe_violations(page: Any) -> list[tuple[str, str]]:
    """Return what axe objects to on a page: the rule, and the first element that breaks it."""
    axe = import_module("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found]
