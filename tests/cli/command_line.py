"""Running commands in this process, and looking at what they leave behind."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from causewire.cli import main
from causewire.trace import Event, write_trace


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """Runs `causewire` and captures what it prints; arguments as a shell would have them."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *arguments: str) -> Done:
        self._capfd.readouterr()
        status = main(shlex.split(" ".join(arguments)))
        return Done(status, *self._capfd.readouterr())


def row(process: str, seq: int, kind: str, origin: str, mid: int, *peers: str) -> Event:
    """A row of the little stories of these tests; time passes with `seq`."""
    return Event("story", process, seq, 1000 * seq, seq + 1, kind, origin, mid, peers)


VIOLATING = [
    row("ann", 0, "send", "ann", 1, "bob", "cy"),
    row("bob", 1, "deliver", "ann", 1, "ann"),
    row("bob", 2, "send", "bob", 1, "cy"),
    row("cy", 3, "deliver", "bob", 1, "bob"),
    row("cy", 4, "deliver", "ann", 1, "ann"),
]
"""Ann tells Bob and Cy; Bob answers to Cy, who hears the answer first."""

ORDERED = [*VIOLATING[:3], row("cy", 3, "deliver", "ann", 1, "ann"), VIOLATING[3]._replace(seq=4)]
ORDERED[4] = ORDERED[4]._replace(time_ns=4000, lamport=5)


def written(path: Path, events: list[Event]) -> Path:
    write_trace(path, events)
    return path
