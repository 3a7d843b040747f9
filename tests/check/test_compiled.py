"""Compiled functions: what is kept on disk is used again only if nothing changed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from causewire._compiled import digest
from causewire.check import loop

CALLEE = """
from causewire._compiled import compiled

@compiled(inline=True)
def step(k):
    return k + {step}
"""
CALLER = """
from typing import NamedTuple
from causewire._compiled import compiled
from cw_callee import step

FACTOR = {factor}

class State(NamedTuple):
    {fields}

@compiled
def run(s: State):
    return step(s.a) * FACTOR + s.b
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in ("cw_callee", "cw_caller"):
        sys.modules.pop(name, None)


def program(
    folder: Path, step: int = 1, factor: int = 10, fields: str = "a: int; b: int"
) -> ModuleType:
    """Write both modules, and import them as a new process would."""
    (folder / "cw_callee.py").write_text(CALLEE.format(step=step))
    (folder / "cw_caller.py").write_text(CALLER.format(factor=factor, fields=fields))
    for name in ("cw_callee", "cw_caller"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("cw_caller")


def result(module: ModuleType) -> tuple[int, int]:
    """Return what `run` computes, and how often its code was found on disk."""
    value = module.run(module.State(a=3, b=5))
    return int(value), sum(module.run.stats.cache_hits.values())


@pytest.mark.slow
def test_code_on_disk_is_used_until_something_that_it_contains_changes(folder: Path) -> None:
    assert result(program(folder)) == (45, 0)
    assert result(program(folder)) == (45, 1)
    # The file of `run` is not touched by this one.
    assert result(program(folder, step=2)) == (55, 0)
    assert result(program(folder, step=2)) == (55, 1)
    assert result(program(folder, step=2, factor=7)) == (40, 0)
    assert result(program(folder, step=2, factor=7, fields="b: int; a: int")) == (40, 0)


def test_the_digest_of_the_loop_covers_the_functions_of_other_modules() -> None:
    source = Path(loop.__file__).with_name("flight.py").read_text()
    assert "def slot_at" in source
    assert digest(loop.advance) != digest(loop._overtaken)
    assert digest(loop.advance) == digest(loop.advance)
