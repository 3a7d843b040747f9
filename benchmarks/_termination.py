"""What a benchmark says when it is terminated."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn


def say_when_terminated() -> None:
    """Have this program end with one line when it is terminated."""
    signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # it may come a second time, for the group
    print("terminated: what is printed so far is all that was measured", file=sys.stderr)
    sys.exit(128 + number)
