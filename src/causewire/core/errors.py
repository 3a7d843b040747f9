"""The exceptions of the core, and the base class of every exception in this project."""

from __future__ import annotations

__all__ = ["CausewireError", "LocalProtocolError", "ProtocolError", "RemoteProtocolError"]


class CausewireError(Exception):
    """Base class of every exception that Causewire raises on purpose."""


class ProtocolError(CausewireError):
    """An endpoint was asked for something that its protocol does not allow."""


class LocalProtocolError(ProtocolError):
    """The local caller misused the endpoint; nothing was changed."""


class RemoteProtocolError(ProtocolError):
    """A peer sent what no correct peer could have sent; nothing was changed."""
