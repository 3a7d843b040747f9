"""Processes: what they do besides sending and receiving, and the state of each in a run.

A process has two layers. The protocol below takes every packet when it arrives,
whatever the application is doing: it acknowledges, it delivers. The application
above works through what was delivered to it, one thing after another:

    handling    each delivered message takes this long
    job         some messages start a long-running job after their handling; a
                blocking job occupies the process until it ends; others run in the
                background, any number at a time
    reaction    what a message makes its receiver send (a reply, the next hop)
                is sent when the handling, and the job if there is one, is over
    think       the time from one of the process's own sends to the next; a send
                that falls due while the process is busy waits its turn

Without handling time and jobs a reaction is sent inside the delivery, so that it
depends on what was delivered up to there and on nothing later.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from .errors import SimulationError
from .settings import Settings, by, flag, fraction, integer, many, one_of, optional, text
from .times import Constant, Time, Uniform, span

if TYPE_CHECKING:
    from ..core.endpoint import Endpoint

__all__ = [
    "DELIVERED",
    "RECEIVED",
    "RELEASED",
    "SENT",
    "Copy",
    "Jobs",
    "Process",
    "Processes",
    "SimMessage",
]

MILLISECOND = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs(Settings):
    """Long-running work that some messages start at their receivers."""

    label: ClassVar[str] = "processes.jobs"
    share: float = field(default=0.1, metadata=by(fraction))
    length: Time = field(default=Constant(25 * MILLISECOND), metadata=by(span))
    blocking: bool = field(default=True, metadata=by(flag))


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes(Settings):
    """The processes of a run.

    `names` may give them names (and then `count` is how many names there are);
    otherwise they are p0, p1, ... with as many digits as the last one needs.
    A workload that brings its own processes (a service graph, a replay) decides
    both.
    """

    label: ClassVar[str] = "processes"
    count: int | None = field(default=None, metadata=by(optional(integer(1))))
    names: tuple[str, ...] = field(default=(), metadata=by(many(text)))
    think: Time = field(default=Uniform(0, 20 * MILLISECOND), metadata=by(span))
    handling: Time = field(default=Constant(0), metadata=by(span))
    jobs: Jobs | None = field(default=None, metadata=by(optional(one_of(Jobs))))

    def check(self) -> None:
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        if len(set(self.names)) != len(self.names) or not all(self.names):
            raise SimulationError("processes.names must all be different, and not empty")
        if self.names and self.count not in (None, len(self.names)):
            raise SimulationError(
                f"processes.count is {self.count}, but processes.names has {len(self.names)}"
            )

    def all_names(self) -> tuple[str, ...]:
        """Return the names of all processes, in order."""
        if self.names:
            return self.names
        n = self.count or 10
        digits = len(str(n - 1))
        return tuple(f"p{i:0{digits}d}" for i in range(n))


# -- at run time ---------------------------------------------------------------

SENT, RELEASED, RECEIVED, DELIVERED = range(4)


class Copy:
    """Where one copy of a message is on its way to its destination."""

    __slots__ = ("at", "left", "state")

    def __init__(self) -> None:
        self.state = SENT
        self.left = 0
        """When it last left its sender."""
        self.at = 0
        """When it arrived."""


class SimMessage(Copy):
    """An application message: the payload that the endpoints carry.

    A workload creates it to have it sent. It is its own only copy, unless it has
    several destinations. Nothing else refers to it, so it is gone when the endpoints
    have dropped it.

    Args:
        origin: The process that sends it.
        to: One destination, or several.
        note: Whatever the workload wants to know when the message is delivered.
        size: Bytes of payload, if not those of the settings.
    """

    __slots__ = ("copies", "job", "mid", "note", "origin", "sent", "size", "to")

    def __init__(
        self,
        origin: Process,
        to: str | tuple[str, ...],
        note: Any = None,
        size: int | None = None,
    ) -> None:
        self.state = SENT
        self.left = 0
        self.origin = origin
        self.to = to
        self.note = note
        self.size: int = size  # type: ignore[assignment]  # the run fills in the settings' size
        self.copies: dict[str, Copy] | None = None
        """By destination, if there are several."""
        self.mid = 0
        self.sent = 0
        """Number and time of the causal send, once it has been sent."""
        self.job = False
        """Whether it starts a job at its receiver."""


class Process:
    """One process of a run: its endpoint, and counts about it."""

    __slots__ = (
        "buffer",
        "busy",
        "clock",
        "endpoint",
        "index",
        "left",
        "max_buffer",
        "max_pair",
        "max_transit",
        "max_waiting",
        "name",
        "note",
        "pairs",
        "sent",
        "seq",
        "tasks",
        "ticking",
        "transit",
        "waiting",
    )

    def __init__(self, index: int, name: str, endpoint: Endpoint) -> None:
        self.index = index
        self.name = name
        self.endpoint = endpoint
        self.sent = 0
        """Messages sent, which is also the number of the last one."""
        self.left = 0
        """Messages of its own that it is still to send."""
        self.note: Any = None
        """The workload's own."""
        self.waiting = self.max_waiting = 0
        """Copies sent but not released."""
        self.transit = self.max_transit = 0
        """Copies released and not received."""
        self.pairs: dict[str, int] = {}
        """The same by destination, where it is not zero."""
        self.max_pair = 0
        self.buffer = self.max_buffer = 0
        """Copies received here and not delivered."""
        self.ticking = False
        """Whether its retransmission timer runs."""
        self.busy = False
        """Whether the application is at work."""
        self.tasks: deque[SimMessage | None] = deque()
        """What the application has to do next: handle a message, or send (None)."""
        self.seq = 0
        """Rows of the trace."""
        self.clock = 0
        """Lamport time, for the trace."""
