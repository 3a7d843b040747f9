"""`run`: an event loop for a process that moves many messages, and that leaves properly."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from .node import Node
from .receipt import Closed

__all__ = ["run"]

T = TypeVar("T")

COLLECT_AFTER = 50_000
"""How many more objects make Python look for reference cycles, under `run`."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`, in a process that moves many messages.

    It uses uvloop if that is installed. In the main thread, it makes the garbage collector
    run less often: messages are in no reference cycle and come and go by the thousand, so
    with Python's default of 700 objects it would examine all messages in flight again and
    again without finding anything.

    In the main thread, it also handles SIGTERM and SIGINT: all nodes are closed, within
    their `drain`, so that their peers know that they have left. Iterations over messages end
    then, and with them the coroutine, or else it is cancelled. A second signal cancels it at
    once.

    Args:
        main: The coroutine.

    Returns:
        The result of the coroutine.

    Raises:
        KeyboardInterrupt: The coroutine was cancelled because of SIGINT.
        SystemExit: It was cancelled because of SIGTERM; the status is 143. Or a call of it raised
            `Closed` after a signal, since the nodes were closed; the status is 143 or 130.
    """
    often, *rest = gc.get_threshold()
    if threading.current_thread() is not threading.main_thread():
        return _run(main)
    if often:
        gc.set_threshold(max(often, COLLECT_AFTER), *rest)
    try:
        return _run(_with_signals(main))
    finally:
        gc.set_threshold(often, *rest)


def _run(main: Coroutine[Any, Any, T]) -> T:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


async def _with_signals(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, and close all nodes on the first signal."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(main)
    got: list[signal.Signals] = []
    leaving: set[asyncio.Task[None]] = set()

    async def leave() -> None:
        nodes = [node for node in Node._started if node._loop is loop]
        await asyncio.gather(*[node.close() for node in nodes], return_exceptions=True)
        await asyncio.sleep(0.1)
        task.cancel()

    def handle(number: signal.Signals) -> None:
        got.append(number)
        if len(got) > 1:
            for each in (task, *leaving):
                each.cancel()
        else:
            leaving.add(loop.create_task(leave()))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not got:
            task.cancel()
            raise
        if got[0] is signal.SIGINT:
            raise KeyboardInterrupt from None
        raise SystemExit(128 + got[0]) from None
    except (Closed, BaseExceptionGroup) as error:
        if not got or (isinstance(error, BaseExceptionGroup) and error.split(Closed)[1]):
            raise
        await asyncio.wait(leaving)  # the goodbye is under way
        raise SystemExit(128 + got[0]) from None
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
