"""Kills processes while they open a store for the first time, and opens it afterwards.

python -m tests.store.first_opening DIRECTORY           at every call that may reach the disk
python -m tests.store.first_opening DIRECTORY KILLS     by SIGKILL, at some moment, until KILLS
                                                        were killed before they had finished

It prints how many processes ended early, and what the next start said if it refused the store.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from causewire.store import Contents, SqliteStore, StoreError

KILLED = 7
KILLS_NOBODY = 1_000_000
"""No opening has as many calls."""


def first_opening(path: Path, last: int | None = None) -> None:
    """Open a store, in a process that ends in front of a call, given by its number."""
    calls = 0

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        if event == "c_call":
            owner = getattr(argument, "__self__", None)
            homes = {getattr(argument, "__module__", None), type(owner).__module__}
            homes.add(getattr(owner, "__name__", None))
            if homes & {"posix", "_io", "io", "sqlite3", "fcntl"}:
                calls += 1
                if calls == last:
                    os._exit(KILLED)

    store = SqliteStore(path)
    if last is not None:
        sys.setprofile(hook)
    store.open("a", "csps")
    sys.setprofile(None)


def killed(path: Path, last: int | None, seconds: float) -> bool:
    """Return whether a process was killed while it opened the store."""
    child = os.fork()
    if not child:
        first_opening(path, last)
        os._exit(0)
    if last is None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] != 0


def main(directory: Path, kills: int | None) -> None:
    """Kill one process after another, each with a store of its own."""
    early = 0
    refused: list[str] = []
    chance = random.Random(1)
    began = time.perf_counter()
    if kills is not None:
        killed(directory / "whole.db", KILLS_NOBODY, 0)
    long = time.perf_counter() - began
    for number in count(1):
        path = directory / f"{number}.db"
        interrupted = killed(path, number if kills is None else None, chance.uniform(0, long))
        early += interrupted
        if not interrupted:
            long *= 0.9  # the first one was slow, as the machine was busy
        store = SqliteStore(path)
        try:
            contents = store.open("a", "csps")
            if contents not in (Contents(0, b"", []), Contents(1, b"", [])):
                refused.append(f"{number}: {contents}")
            store.write(b"one")
        except StoreError as error:
            refused.append(f"{number}: {error}")
        store.close()
        if not interrupted if kills is None else early == kills:
            break
    print(early, *refused, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
