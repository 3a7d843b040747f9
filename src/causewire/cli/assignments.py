"""Settings on the command line: `--set KEY=VALUE`."""

from __future__ import annotations

import tomllib
from typing import Any

from .errors import CommandError

__all__ = ["assign", "table_of"]

_SHORT = {"processes": "count", "workload": "kind"}
"""Tables that may be given by one of their values alone, and which one that is."""


def table_of(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a table of the settings, which is created if it is missing.

    Raises:
        CommandError: The settings have a value of that name, not a table.
    """
    value = settings.get(name)
    if value is None:
        value = {}
    elif not isinstance(value, dict):
        if name not in _SHORT:
            raise CommandError(f"{name} is a value in the file, not a table")
        value = {_SHORT[name]: value}
    settings[name] = value
    return value


def assign(settings: dict[str, Any], assignment: str) -> None:
    """Apply an assignment such as `network.fifo=true`; the value is TOML, or else a string.

    Raises:
        CommandError: The assignment has no key or no value.
    """
    key, equals, text = assignment.partition("=")
    *tables, name = key.strip().split(".")
    if not equals or not name or not all(tables):
        raise CommandError(f"--set takes KEY=VALUE, not {assignment!r}")
    for table_name in tables:
        settings = table_of(settings, table_name)
    try:
        settings[name] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        settings[name] = text
