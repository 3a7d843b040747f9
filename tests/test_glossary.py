"""Names in the glossary exist in the code, and each plain name belongs to one class."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from pydoc import locate

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "glossary.md").read_text("utf-8")
QUOTED = sorted(set(re.findall(r"`([A-Za-z_.]+)(?:\([^`]*\))?`", PAGE)))
ALIKE = PAGE.partition("## Names that look alike")[2]


def names_in(module: ast.Module) -> Iterator[str]:
    """The classes of a module, and other names for classes."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


CLASSES = Counter(
    name
    for path in (ROOT / "src").rglob("*.py")
    for name in names_in(ast.parse(path.read_text("utf-8")))
)


@pytest.mark.parametrize("name", [name for name in QUOTED if name.startswith("causewire.")])
def test_a_full_name_can_be_imported(name: str) -> None:
    assert locate(name) is not None


@pytest.mark.parametrize("name", [name for name in QUOTED if name[0].isupper()])
def test_a_class_exists(name: str) -> None:
    assert name in CLASSES


@pytest.mark.parametrize("name", re.findall(r"^\| `(\w+)`", ALIKE, re.MULTILINE))
def test_a_plain_name_belongs_to_one_class(name: str) -> None:
    assert CLASSES[name] == 1


def test_there_are_names() -> None:
    assert len(QUOTED) > 40
    assert "## Names that look alike" in PAGE
