"""What the pipeline refuses."""

from __future__ import annotations

import re

from ..core.errors import CausewireError

__all__ = ["PipelineError", "reason", "worker_died"]


class PipelineError(CausewireError):
    """The work cannot be done; the message is one line that says why."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


_OURS = f"{PipelineError.__module__}.{PipelineError.__qualname__}: "
_TRACEBACK = "Traceback (most recent call last):"
_OF_FILES = re.compile(r"^Caused by: java\.n?io\.[\w.]+: (.+)$", re.MULTILINE)
_DEATHS = ("Python worker exited", "ExecutorLost", "crashed", "Broken pipe", "Connection reset")


def reason(error: BaseException) -> str:
    """The one line in which a failure of Spark says what went wrong.

    What a task raised arrives as a text that ends in its traceback, inside of
    what the JVM adds: a `PipelineError` of a task is found by its name, any
    other exception by its place, the last line of the last traceback. What the
    JVM could not read or write is the last of its causes.
    """
    text = str(error)
    ours = [line for line in text.splitlines() if line.startswith(_OURS)]
    if ours:
        return ours[-1][len(_OURS) :]
    if _TRACEBACK in text:
        traceback = text.rpartition(_TRACEBACK)[2]
        for line in traceback.splitlines()[1:]:
            if line and not line[0].isspace():
                return line
    if causes := _OF_FILES.findall(text):
        return str(causes[-1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[1].startswith(": "):  # "An error occurred while calling ..."
        lines = [lines[1][2:]]
    return lines[0] if lines else type(error).__name__


def worker_died(error: BaseException) -> bool:
    """Whether a job failed because processes were lost, not because of what they did."""
    text = str(error)
    return _TRACEBACK not in text and any(word in text for word in _DEATHS)
