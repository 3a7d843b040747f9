"""Protocols as they are named on the command line: by name, or as MODULE:NAME."""

from __future__ import annotations

import sys
from importlib import import_module

from ..core.errors import LocalProtocolError
from ..protocols import Protocol, describe
from .errors import CommandError

__all__ = ["OWN", "protocol_named"]

OWN = "or MODULE:NAME for a Protocol value"
"""What help texts say about protocols that are not registered."""


def protocol_named(text: str) -> Protocol:
    """Return a registered protocol, or for MODULE:NAME the `Protocol` of that name in a module.

    The module may be in the current directory.

    Raises:
        CommandError: There is none, or the module cannot be imported.
    """
    module, colon, name = text.partition(":")
    if not colon:
        try:
            return describe(text)
        except LocalProtocolError as error:
            raise CommandError(str(error)) from None
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        value = getattr(import_module(module), name)
    except Exception as error:  # a module may raise anything
        kind = (
            "" if isinstance(error, ImportError | AttributeError) else type(error).__name__ + ": "
        )
        raise CommandError(f"--protocol {text}: {kind}{error}") from None
    if not isinstance(value, Protocol):
        raise CommandError(f"--protocol {text}: not a Protocol: {value!r}")
    return value
