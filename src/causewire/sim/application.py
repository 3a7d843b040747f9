"""The application's work on delivered messages: handling them, and their jobs.

A process does one thing at a time, in the order in which things became due: it
handles a message, does a blocking job, or sends a message of its own (which takes
no time). While it is busy, everything else waits in `Process.tasks`.

The methods here start work and schedule its end (`HANDLED`, `JOB_END`). They
return whether the work is over at once, because then the process reacts to the
message immediately.
"""

from __future__ import annotations

from collections.abc import Callable

from .process import Process, Processes, SimMessage
from .recorder import SimulationRecorder
from .scheduler import HANDLED, JOB_END, Scheduler
from .tally import Tally

__all__ = ["Application"]


class Application:
    """What all processes of a run do with the messages delivered to them."""

    __slots__ = (
        "_blocking",
        "_handling",
        "_job_length",
        "_recorder",
        "_scheduler",
        "_tally",
        "takes_time",
    )

    def __init__(
        self,
        processes: Processes,
        random: Callable[[], float],
        scheduler: Scheduler,
        tally: Tally,
        recorder: SimulationRecorder | None,
    ) -> None:
        self._scheduler = scheduler
        self._tally = tally
        self._recorder = recorder
        jobs = processes.jobs
        self._handling = processes.handling.sampler(random)
        self._job_length = jobs.length.sampler(random) if jobs else self._handling
        self._blocking = jobs is not None and jobs.blocking
        self.takes_time = processes.handling.fixed() != 0 or jobs is not None
        """If false, processes react to messages as they are delivered."""

    def handle(self, p: Process, message: SimMessage) -> bool:
        """Begin to handle a message, and return whether all work on it is over at once."""
        takes = self._handling()
        if takes:
            p.busy = True
            self._scheduler.at(self._scheduler.now + takes, HANDLED, p, message)
            return False
        return self._work_is_over(p, message)

    def handled(self, p: Process, message: SimMessage) -> bool:
        """End the handling of a message, and return whether all work on it is over."""
        p.busy = False
        self._tally.last_work = self._scheduler.now
        return self._work_is_over(p, message)

    def job_ended(self, p: Process, message: SimMessage) -> None:
        """End the job of a message."""
        self._tally.last_work = self._scheduler.now
        if self._recorder is not None:
            self._recorder.job(p, message, "job_end")
        if self._blocking:
            p.busy = False

    def _work_is_over(self, p: Process, message: SimMessage) -> bool:
        """Start the job of a message that was handled; return whether there is no job."""
        if not message.job:
            return True
        now = self._scheduler.now
        p.busy = self._blocking
        self._tally.job_start.add(now)
        self._tally.job_delay.add(now - message.sent)
        if self._recorder is not None:
            self._recorder.job(p, message, "job_start")
        self._scheduler.at(now + self._job_length(), JOB_END, p, message)
        return False
