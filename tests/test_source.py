"""`CAUSEWIRE_PURE=1` prefers sources to compiled modules."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from causewire import _source

from .programs import load


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with a module as source, and compiled in a way that cannot be imported."""
    name = f"compiled_{tmp_path.name}".replace("-", "_")
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "module.py").write_text("answer = 42")
    (folder / f"module{EXTENSION_SUFFIXES[0]}").write_text("this is not machine code")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    return name


def test_compiled_modules_come_first(package: str) -> None:
    with pytest.raises(ImportError):
        importlib.import_module(f"{package}.module")


def test_unless_sources_are_preferred(package: str) -> None:
    sys.meta_path.insert(0, _source._SourceFinder(package))
    assert importlib.import_module(f"{package}.module").answer == 42
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{package}.nothing")


@pytest.mark.parametrize(("value", "more"), [("1", 3), ("0", 0), ("", 0)])
def test_the_environment_decides(
    monkeypatch: pytest.MonkeyPatch, package: str, value: str, more: int
) -> None:
    monkeypatch.setenv("CAUSEWIRE_PURE", value)
    before = len(sys.meta_path)
    _source.prefer_sources()
    assert len(sys.meta_path) == before + more


@pytest.mark.parametrize("module", load("hatch_build.py").MODULES)
def test_compiled_modules_are_what_these_tests_run_on(module: str) -> None:
    """`make test-compiled` would be in vain if it ran on the sources."""
    imported = importlib.import_module(f"causewire.{module.replace('/', '.')}")
    file = Path(str(imported.__file__))
    name = module.rpartition("/")[2]
    there = any((file.parent / f"{name}{suffix}").exists() for suffix in EXTENSION_SUFFIXES)
    chosen = there and os.environ.get("CAUSEWIRE_PURE") != "1"
    assert (file.suffix != ".py") is chosen
