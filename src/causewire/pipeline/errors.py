"""What the pipeline refuses."""

from __future__ import annotations

__all__ = ["PipelineError", "reason"]


class PipelineError(Exception):
    """The work cannot be done; the message is one line that says why."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


_OURS = f"{PipelineError.__module__}.{PipelineError.__qualname__}: "


def reason(error: BaseException) -> str:
    """The one line in which a failure of Spark says what went wrong.

    What a task raised arrives as a text that ends in its traceback, inside of
    what the JVM adds: a `PipelineError` of a task is found by its name, any
    other exception by its place, the last line of the last traceback.
    """
    text = str(error)
    ours = [line for line in text.splitlines() if line.startswith(_OURS)]
    if ours:
        return ours[-1][len(_OURS) :]
    if "Traceback (most recent call last):" in text:
        traceback = text.rpartition("Traceback (most recent call last):")[2]
        for line in traceback.splitlines()[1:]:
            if line and not line[0].isspace():
                return line
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[1].startswith(": "):  # "An error occurred while calling ..."
        lines = [lines[1][2:]]
    return lines[0] if lines else type(error).__name__
