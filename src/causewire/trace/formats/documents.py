"""JSON files of other tools: one document, a list, or one document on each line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["documents", "first_of", "flattened", "items"]


def documents(data: bytes, *, lines: bool = False) -> Iterator[Any]:
    """Yield the documents of a file, and each line that is not JSON, as bytes.

    Args:
        data: The content of the file, or some of its lines.
        lines: Whether it is known that each line is a document.
    """
    if not lines:
        try:
            yield json.loads(data)
            return
        except (ValueError, RecursionError):
            pass
    for line in data.splitlines():
        if line.strip():
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                document = line
            yield document


def flattened(found: Iterable[Any]) -> Iterator[Any]:
    """Yield the documents, and in place of lists what is in them, however deep."""
    todo = [iter(found)]
    while todo:
        for item in todo[-1]:
            if isinstance(item, list):
                todo.append(iter(item))
                break
            yield item
        else:
            todo.pop()


def items(table: Any, *keys: str) -> list[Any]:
    """Return the list under the first of these keys; what is no list stands for itself."""
    if not isinstance(table, dict):
        return [table]
    value = next((table[key] for key in keys if table.get(key) is not None), None)
    return [] if value is None else value if isinstance(value, list) else [value]


def first_of(about: Mapping[str, Any], *names: str) -> str:
    """Return the first of these values that is there, as text, or an empty text."""
    for name in names:
        value = about.get(name)
        if value is not None and value != "":
            return str(value)
    return ""
