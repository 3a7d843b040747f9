"""What can go wrong with a store."""

from __future__ import annotations

from ..core.errors import CausewireError

__all__ = ["StoreError", "StoreFailed", "StoreInUse", "StoreRefused"]


class StoreError(CausewireError):
    """A store cannot be used."""


class StoreRefused(StoreError):  # noqa: N818 - it says what happened to the store
    """The file is not a store that this node can continue from; it was left as it is."""


class StoreInUse(StoreError):  # noqa: N818
    """Another process, or another node of this one, uses the store."""


class StoreFailed(StoreError):  # noqa: N818
    """The store could not be written, for instance because the disk is full.

    The node has stopped. Everything that it had accepted is in the store, and nothing that
    depends on what is not in the store has left the process. A new node continues from it.
    """
