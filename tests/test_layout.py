"""Modules are short enough to read in one sitting, and say what they are for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "campaigns", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
LONGEST = 500


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_short_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    assert lines <= LONGEST, f"{lines} lines: one job for each module"
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "the module has no docstring"


def test_there_are_modules() -> None:
    assert len(MODULES) > 400
