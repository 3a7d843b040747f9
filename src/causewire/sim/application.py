"""The application at work: handling what was delivered, jobs, and its own sends.

A process does one thing at a time, in the order in which it fell due: it handles
a message, or does a blocking job, or sends a message of its own (which takes no
time). While it is busy, everything else waits in `Process.tasks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .process import Message, Process, Processes

if TYPE_CHECKING:
    from .recorder import Recorder
    from .scheduler import Scheduler
    from .tally import Tally
    from .workloads import Traffic

__all__ = ["Application"]


class Application:
    """What all processes do with messages, if that takes any time.

    `flush` has the network take what a process sent; it is called when something
    was done outside of the endpoint's own calls.
    """

    __slots__ = (
        "_blocking",
        "_flush",
        "_handling",
        "_job_length",
        "_scheduler",
        "_tally",
        "_traffic",
        "_wake",
        "recorder",
        "takes_time",
    )

    def __init__(
        self,
        processes: Processes,
        random: Callable[[], float],
        scheduler: Scheduler,
        tally: Tally,
        traffic: Traffic,
        wake: Callable[[Process], None],
        flush: Callable[[Process], None],
    ) -> None:
        self._scheduler = scheduler
        self._tally = tally
        self._traffic = traffic
        self._wake = wake
        self._flush = flush
        self.recorder: Recorder | None = None
        jobs = processes.jobs
        self._handling = processes.handling.sampler(random)
        self._job_length = jobs.length.sampler(random) if jobs else self._handling
        self._blocking = jobs is not None and jobs.blocking
        self.takes_time = processes.handling.fixed() != 0 or jobs is not None
        """If not, messages are reacted to as they are delivered, without going through here."""

    def delivered(self, p: Process, message: Message) -> None:
        """A message is delivered; we are inside a call of the endpoint."""
        if p.busy:
            p.tasks.append(message)
        else:
            self._handle(p, message)

    def due(self, p: Process, *_: Any) -> None:
        """A process is to send a message of its own, now or when it is free."""
        if p.busy:
            p.tasks.append(None)
        else:
            if self._traffic.wake(p):
                self._wake(p)
            self._flush(p)

    def _handle(self, p: Process, message: Message) -> None:
        takes = self._handling()
        if takes:
            p.busy = True
            self._scheduler.at(self._scheduler.now + takes, self._handled, p, message)
        else:
            self._follow_up(p, message)

    def _handled(self, p: Process, message: Message, *_: Any) -> None:
        p.busy = False
        self._tally.last_work = self._scheduler.now
        self._follow_up(p, message)
        self._go_on(p)

    def _follow_up(self, p: Process, message: Message) -> None:
        """What comes after the handling: the message's job, or else the reaction."""
        if not message.job:
            self._react(p, message)
            return
        now = self._scheduler.now
        p.busy = self._blocking
        self._tally.job_start.add(now)
        self._tally.job_delay.add(now - message.sent)
        if self.recorder is not None:
            self.recorder.job(p, message, "job_start")
        self._scheduler.at(now + self._job_length(), self._job_over, p, message)

    def _job_over(self, p: Process, message: Message, *_: Any) -> None:
        self._tally.last_work = self._scheduler.now
        if self.recorder is not None:
            self.recorder.job(p, message, "job_end")
        if self._blocking:
            p.busy = False
        self._react(p, message)
        self._go_on(p)

    def _react(self, p: Process, message: Message) -> None:
        if self._traffic.reacts:
            self._traffic.react(p, message, message.origin.name)

    def _go_on(self, p: Process) -> None:
        """Take up what has waited, up to the next thing that takes time."""
        while p.tasks and not p.busy:
            task = p.tasks.popleft()
            if task is not None:
                self._handle(p, task)
            elif self._traffic.wake(p):
                self._wake(p)
        self._flush(p)
