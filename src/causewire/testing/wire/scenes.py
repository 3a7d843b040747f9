"""Scenes: several processes, each of which does its part when the others have done theirs.

Random faults rarely meet the one moment at which a mistake matters. A scene waits for it. It is
a generator that yields how many seconds to wait, or a condition to wait for. If a condition
does not come true in time, because of what else happens in the run, the scene ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .wire import Wire

__all__ = ["Scene", "chain", "orphan"]

Steps: TypeAlias = Iterator[float | Callable[[], bool]]

STEP = 0.05
"""Seconds after which a condition is looked at again."""

TRIES = 60
"""How many times a condition is looked at."""


class Scene:
    """A scene that is played.

    Args:
        wire: The system.
        steps: The scene.
    """

    def __init__(self, wire: Wire, steps: Steps) -> None:
        self._wire = wire
        self._steps = steps
        self._condition: Callable[[], bool] | None = None
        self._tries = 0
        self.over = False

    def play(self) -> None:
        """Go on until there is something to wait for."""
        wire = self._wire
        while True:
            if self._condition is not None and not self._condition():
                self._tries -= 1
                if self._tries:
                    wire.at(wire.now + STEP, self.play)
                else:
                    self._steps.close()  # type: ignore[attr-defined]
                    self.over = True
                return
            self._condition = None
            step = next(self._steps, None)
            if step is None:
                self.over = True
                return
            if isinstance(step, float):
                wire.at(wire.now + step, self.play)
                return
            self._condition, self._tries = step, TRIES


def orphan(wire: Wire, dying: str, reacting: str, waiting: str) -> Steps:
    """A process writes to two others, the first message is held up, and then it dies.

    Whoever gets the second message reacts to it, and writes to the one that waits for the
    first. The reaction is released because the process is dead or given up. It must not be
    followed by the first message, which arrives soon after it.
    """
    random = wire.random
    try:
        yield lambda: _know_each_other(wire, dying, reacting, waiting)
        wire.hold(dying, waiting)
        _write(wire, dying, waiting)
        second = _write(wire, dying, reacting)
        yield lambda: _has(wire, reacting, second)
        _write(wire, reacting, waiting)
        yield random.uniform(0.0, 0.05)
        if random.random() < 0.3:
            wire.restart(wire.hosts[dying])
        else:
            wire.give_up(wire.hosts[reacting], dying)
        soon = random.choice((0.02, 0.1, 0.4))
        if random.random() < 0.5:
            wire.lossy[reacting, waiting] = wire.now + soon
        yield random.uniform(0.0, soon)
    finally:
        wire.release(dying, waiting)


def chain(wire: Wire, dying: str, second: str, third: str, waiting: str) -> Steps:
    """A process holds back two messages, whose order only a process knows that dies.

    The dying process writes to the one that waits, which is held up, and to the second, which
    writes to the one that waits, rather slowly, and back. The dying process writes to the one
    that waits again, then to the third, which writes to the one that waits. Under `ks`, this
    last message says only that it has to wait for the second message of the dying process,
    which would have said that it has to wait for that of the second process.
    """
    random = wire.random
    try:
        yield lambda: _know_each_other(wire, dying, second, third, waiting)
        wire.hold(dying, waiting)
        wire.hold(second, waiting)
        _write(wire, dying, waiting)
        first = _write(wire, dying, second)
        yield lambda: _has(wire, second, first)
        _write(wire, second, waiting)
        answer = _write(wire, second, dying)
        yield lambda: _has(wire, dying, answer)
        _write(wire, dying, waiting)
        last = _write(wire, dying, third)
        yield lambda: _has(wire, third, last)
        _write(wire, third, waiting)
        yield random.uniform(0.02, 0.2)
        wire.release(second, waiting)
        yield random.uniform(0.02, 0.2)
        if random.random() < 0.5:
            wire.restart(wire.hosts[dying])
        else:
            wire.give_up(wire.hosts[waiting], dying)
        yield random.uniform(0.0, 0.4)
    finally:
        wire.release(second, waiting)
        wire.release(dying, waiting)


def _know_each_other(wire: Wire, *names: str) -> bool:
    """Return whether these processes can all write to each other."""
    for name in names:
        host = wire.hosts[name]
        if not host.up or host.gone or max(host.paused_until, host.reads_at) > wire.now:
            return False
        peers = host.transport.status().peers
        if not all(other in peers and peers[other].up for other in names if other != name):
            return False
    return True


def _write(wire: Wire, source: str, to: str) -> int:
    """Let a process write to another one; return the message as a bit, or 0 if it cannot."""
    host = wire.hosts[source]
    before = host.knows
    if host.up and not host.gone and host.paused_until <= wire.now:
        wire.send(host, [to])
        wire.turn(host)
    return host.knows & ~before


def _has(wire: Wire, name: str, message: int) -> bool:
    """Return whether a process has got a message."""
    return bool(wire.hosts[name].delivered & message)
