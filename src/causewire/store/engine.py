"""The interface between a node and its store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor
from typing import NamedTuple

__all__ = ["Contents", "Store"]


class Contents(NamedTuple):
    """What a store has when it is opened."""

    opened: int
    """How many times it had been opened before."""
    snapshot: bytes
    """The last snapshot; empty if there is none."""
    batches: list[bytes]
    """The batches since then, in order."""


class Store(ABC):
    """Keeps snapshots and batches, so that they survive a crash.

    The methods block until the data is on the disk. A node calls them in `executor`, one at a
    time, so that its event loop does not wait for the disk.
    """

    executor: Executor
    """Where a node calls `write` and `replace`; it runs one call at a time."""

    @abstractmethod
    def open(self, name: str, protocol: str) -> Contents:
        """Return what is there, and count the opening; make the store if there is none.

        Args:
            name: The name of the node.
            protocol: The name of its protocol, with its options.

        Raises:
            StoreRefused: It is not a store of this node, or is damaged. Nothing was changed.
            StoreInUse: Another process uses it.
            StoreFailed: It cannot be written.
        """

    @abstractmethod
    def write(self, batch: bytes) -> None:
        """Add a batch; when this returns, the batch survives a crash.

        Raises:
            StoreFailed: That was not possible; the batch is not in the store.
        """

    @abstractmethod
    def replace(self, snapshot: bytes) -> None:
        """Replace the snapshot, and drop all batches, in one step.

        Raises:
            StoreFailed: That was not possible; what was there before is there.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the store, so that another process can open it."""
