"""Units in parallel, in several processes of this machine.

Workers end when the process that started them ends, for whatever reason, because a
search takes long and must not go on when nobody waits for it. If a worker is killed (by
the system, for its memory), the check ends with `WorkerLostError`; the caller has the
results up to then.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from typing import Any, TypeAlias

from ..core.errors import CausewireError
from .check import Checker, Result, Unit

__all__ = ["Numbered", "WorkerLostError", "spread"]

Numbered: TypeAlias = tuple[int, Unit]

_LOOK = 0.2
"""Seconds between two looks at how far the workers are."""


class WorkerLostError(CausewireError):
    """A worker ended without a result."""


# -- in a worker --------------------------------------------------------------


class _Worker:
    """What one process of the pool keeps: its tables, and its place on the board."""

    def __init__(self, board: Any, place: int) -> None:
        self.board = board
        self.place = place
        self.checker = Checker()

    def show(self, states: int, transitions: int, depth: int) -> None:
        """Show on the board how far this process is."""
        self.board[3 * self.place : 3 * self.place + 3] = [states, transitions, depth]

    def check(self, numbered: Numbered) -> tuple[int, Result]:
        k, unit = numbered
        result = self.checker.check(unit, self.show)
        self.show(0, 0, 0)
        return k, result


_worker: _Worker | None = None
"""Set by `_enter` in each process of a pool, which has no other way to keep something."""


def _enter(board: Any, places: Any) -> None:
    """Set up this process as a worker, with a place of its own on the board."""
    global _worker
    with places.get_lock():
        _worker = _Worker(board, places.value)
        places.value += 1
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _do(numbered: Numbered) -> tuple[int, Result]:
    assert _worker is not None
    return _worker.check(numbered)


# -- where they are started ---------------------------------------------------


def spread(
    todo: Sequence[Numbered], workers: int, show: Callable[[int, int, int], None]
) -> Generator[tuple[int, Result], None, None]:
    """Yield results as they come; each worker may use its share of the memory.

    `show` is called now and then with the states, transitions and depth under way.

    Raises:
        WorkerLostError: A worker process was killed.
    """
    spawn = multiprocessing.get_context("spawn")
    board = spawn.Array("q", 3 * workers)
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(workers, spawn, _enter, (board, spawn.Value("i", 0)))
    waiting: set[Future[tuple[int, Result]]] = set()
    left = iter(todo)
    try:
        while True:
            while len(waiting) < 2 * workers and (each := next(left, None)) is not None:
                k, unit = each
                how = replace(unit.options, memory=unit.options.memory // workers)
                waiting.add(pool.submit(_do, (k, replace(unit, options=how))))
            if not waiting:
                return
            done, waiting = wait(waiting, timeout=_LOOK, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            shown = board[:]
            show(sum(shown[::3]), sum(shown[1::3]), max(shown[2::3]))
    except BrokenProcessPool:
        raise WorkerLostError("a worker was killed; was there too little memory?") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.terminate()
                worker.join()  # so that what it used is counted
