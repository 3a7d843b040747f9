"""Counts the steps of a program, where a time would depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import causewire

ROOT = str(Path(causewire.__file__).parent)


def steps(work: Callable[[], object]) -> int:
    """Return how many lines of this package are executed by `work`.

    A loop inside a built-in function counts as one step, so tests in which one could
    hide check the result as well, or measure what the built-in function works on.
    """
    count = 0

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return local

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(ROOT) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
