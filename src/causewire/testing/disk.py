"""A store in memory whose disk forgets what was not synchronised, for tests of crashes.

A `Disk` outlives the nodes that use it. Each write passes four boundaries, and a crash can be
arranged at any of them:

    submitted   the write has not begun; it is lost
    written     the data is in the cache of the operating system: it survives if the process
                is killed, and is lost if the power fails
    synced      the data is on the disk, and the node has not been told
    told        the node knows, and has sent what it held back

The store works in virtual time (`causewire.testing.virtual`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from ..store import Contents, Store, StoreFailed

__all__ = ["BOUNDARIES", "Disk", "DiskStore"]

BOUNDARIES = ("submitted", "written", "written, power lost", "synced", "told")
"""Where a write can be when the process crashes."""


class Disk:
    """What is on a disk, and when the process that uses it crashes.

    Args:
        delay: How many seconds a write takes; or a function that returns it.
    """

    def __init__(self, delay: float | Callable[[], float] = 0.002) -> None:
        self.opened = 0
        self.snapshot = b""
        self.batches: list[bytes] = []
        self.writes = 0
        """Writes since the first start."""
        self.delay = delay if callable(delay) else lambda: delay
        self.crash_at: tuple[int, str] | None = None
        """The number of a write, and the boundary at which the process crashes."""
        self.crash: Callable[[], None] = lambda: None
        """Is called at that point."""
        self.full = False
        """Whether writes fail."""

    def apply(self, replace: bool, data: bytes) -> None:
        """Put data on the disk."""
        if replace:
            self.snapshot, self.batches = data, []
        else:
            self.batches.append(data)


class DiskStore(Store):
    """A store on a `Disk`; after a crash, the disk is given to a new one."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.executor = _VirtualExecutor(self)
        self.dead = False

    def open(self, name: str, protocol: str) -> Contents:
        disk = self.disk
        disk.opened += 1
        return Contents(disk.opened - 1, disk.snapshot, list(disk.batches))

    def write(self, batch: bytes) -> None:
        self.disk.apply(False, batch)

    def replace(self, snapshot: bytes) -> None:
        self.disk.apply(True, snapshot)

    def close(self) -> None:
        self.dead = True


class _VirtualExecutor(Executor):
    """Lets a write take some virtual time, and crashes where that was arranged."""

    def __init__(self, store: DiskStore) -> None:
        self._store = store

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        disk = self._store.disk
        disk.writes += 1
        number = disk.writes
        loop = asyncio.get_running_loop()
        delay = disk.delay()

        def reached(*boundaries: str) -> bool:
            """Whether the process crashes here."""
            if disk.crash_at is not None and not self._store.dead:
                at, boundary = disk.crash_at
                if at == number and boundary in boundaries:
                    disk.crash_at = None
                    if boundary == "written" or boundary == "synced":
                        fn(*args)
                    disk.crash()
                    return True
            return self._store.dead

        def end() -> None:
            if reached("synced"):
                return
            if disk.full:
                future.set_exception(StoreFailed("the disk is full"))
                return
            fn(*args)
            future.set_result(None)
            loop.call_soon(loop.call_soon, reached, "told")

        def begin() -> None:
            if not reached("submitted"):
                loop.call_later(delay / 2, middle)

        def middle() -> None:
            if not reached("written", "written, power lost"):
                loop.call_later(delay / 2, end)

        loop.call_soon(begin)
        return future
