"""Stores: where a node keeps what must survive a crash or a loss of power.

A node is a deterministic state machine, so the store does not hold its state but what
happened to it: a *snapshot*, and the *batches* of inputs since then, one for each commit. The
store knows nothing about their contents. `Node(store="alice.db")` opens a `SqliteStore`.
"""

from .engine import Contents, Store
from .errors import StoreError, StoreFailed, StoreInUse, StoreRefused
from .sqlite import SqliteStore

__all__ = [
    "Contents",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoreFailed",
    "StoreInUse",
    "StoreRefused",
]
