"""The kit uses what nodes and the transport export, and nothing from inside of them."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import causewire.kit

FILES = sorted(Path(causewire.kit.__file__).parent.glob("*.py"))
PUBLIC = ("node", "store", "transport", "core.endpoint", "core.errors")


def imported() -> set[tuple[str, str]]:
    """Return what the modules of the kit import from other packages: module and name."""
    found: set[tuple[str, str]] = set()
    for path in FILES:
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.ImportFrom) and item.level == 2:
                found |= {(item.module or "", alias.name) for alias in item.names}
    return found


def test_the_kit_imports_only_what_others_export() -> None:
    names = imported()
    assert ("node", "Node") in names
    for module, name in names:
        assert module in PUBLIC, f"{name} comes from {module}"
        assert name in import_module(f"causewire.{module}").__all__
