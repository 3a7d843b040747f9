"""docs/walks.md is true: each walk is followed by tracing the calls of a real run.

A line of a walk is `module:function  what it does`, indented by two spaces for each call that it is
made from. It is true if the run has such a call, inside the call of the line above it that is
indented less, and after the call of the line before it. An inner function is named after the
function that made it, `Outer.method.inner`.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import causewire

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "walks.md").read_text(encoding="utf-8")
SOURCE = str(Path(causewire.__file__).parent)


class Line(NamedTuple):
    depth: int
    module: str
    function: str


class Call(NamedTuple):
    begin: int
    end: int


def walks() -> dict[str, list[Line]]:
    """Return the walks of the page by the titles of their sections."""
    found = {}
    for title, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL):
        lines = []
        for block in re.findall(r"```text\n(.*?)```", body, re.DOTALL):
            for line in block.splitlines():
                match = re.fullmatch(r"( *)([\w.]+):([\w.]+) {2,}\S.*", line)
                assert match, f"not a line of a walk: {line!r}"
                assert len(match[1]) % 2 == 0, line
                lines.append(Line(len(match[1]) // 2, f"causewire.{match[2]}", match[3]))
        if lines:
            found[title] = lines
    return found


class Recording:
    """The calls of functions of the package, each with the time of its beginning and end."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], list[Call]] = {}
        self._clock = 0
        self._open: dict[FrameType, int] = {}

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(SOURCE):
            return
        self._clock += 1
        if event == "call":
            self._open[frame] = self._clock
        elif frame in self._open:
            function = frame.f_code.co_qualname.replace(".<locals>", "")
            name = (str(frame.f_globals.get("__name__")), function)
            self.calls.setdefault(name, []).append(Call(self._open.pop(frame), self._clock))

    @contextmanager
    def __call__(self) -> Iterator[None]:
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self.calls = {name: sorted(calls) for name, calls in self.calls.items()}

    def of(self, line: Line) -> list[Call]:
        return self.calls.get((line.module, line.function), [])


def follow(lines: list[Line], recording: Recording) -> None:
    """Find the calls of a walk, one for each line; fail with the first line that is not true."""
    furthest = 0

    def match(at: int, parents: tuple[Call, ...]) -> bool:
        nonlocal furthest
        furthest = max(furthest, at)
        if at == len(lines):
            return True
        line = lines[at]
        inside = parents[line.depth - 1] if line.depth else None
        after = parents[line.depth].begin if len(parents) > line.depth else 0
        for call in recording.of(line):
            if call.begin <= after or (inside and not inside.begin < call.begin < inside.end):
                continue
            if match(at + 1, (*parents[: line.depth], call)):
                return True
        return False

    if not match(0, ()):
        line = lines[furthest]
        called = "not called here" if recording.of(line) else "never called"
        pytest.fail(f"docs/walks.md: {line.module}:{line.function} is {called}")


def one_message(_: Path) -> None:
    async def main() -> None:
        async with causewire.Node("bob", protocol="csps") as bob:
            peers = {"bob": bob.address}
            async with causewire.Node("alice", protocol="csps", peers=peers) as alice:
                for _ in range(2):  # the second finds a session that stands, and nothing to do
                    await asyncio.sleep(0.05)
                    receipt = await alice.send("bob", b"hello")
                    await bob.receive()
                    await receipt.delivered()

    asyncio.run(main())


def one_simulated_run(folder: Path) -> None:
    from causewire.cli import main

    trace = str(folder / "run.jsonl")
    asked = "simulate --protocol fifo --processes 4 --messages 60 --workload relay --seed 5"
    assert main([*shlex.split(asked), "--jitter", "30ms", "--trace", trace]) == 0
    assert main(["check", trace]) == 1


def one_model_check(folder: Path) -> None:
    from causewire.cli import main

    asked = "verify --protocol fifo --messages 2,1,0 --jobs 1 --engine python"
    assert main(shlex.split(asked)) == 1


RUNS: dict[str, Callable[[Path], None]] = {
    "One message through a node": one_message,
    "One simulated run, to its explanation": one_simulated_run,
    "One model check": one_model_check,
}


@pytest.mark.slow
@pytest.mark.parametrize("title", RUNS)
def test_walk(title: str, tmp_path: Path) -> None:
    RUNS[title](tmp_path)  # so that imports and compilation are not on the way
    recording = Recording()
    with recording():
        RUNS[title](tmp_path)
    follow(walks()[title], recording)


def test_walks_are_short_enough_to_read() -> None:
    found = walks()
    assert set(found) == {*RUNS, "One sweep"}  # the sweep needs Spark: tests/pipeline/test_walk.py
    for title, lines in found.items():
        assert 8 <= len(lines) <= 40, f"{title}: {len(lines)}"
        assert lines[0].depth == 0
        for before, line in pairwise(lines):
            assert line.depth <= before.depth + 1, f"{title}: {line.function}"


def outer() -> None:
    inner()


def inner() -> None:
    pass


def test_a_walk_that_is_not_true_is_noticed() -> None:
    here = __name__.removeprefix("causewire.")
    recording = Recording()
    recording.calls = {
        (here, "outer"): [Call(1, 4), Call(7, 8)],
        (here, "inner"): [Call(2, 3), Call(9, 10)],
    }
    follow([Line(0, here, "outer"), Line(1, here, "inner")], recording)
    follow([Line(0, here, "outer"), Line(0, here, "outer"), Line(0, here, "inner")], recording)
    for wrong in (
        [Line(0, here, "inner"), Line(1, here, "outer")],
        [Line(0, here, "outer"), Line(0, here, "outer"), Line(1, here, "inner")],
        [Line(0, here, "outer"), Line(1, here, "missing")],
    ):
        with pytest.raises(pytest.fail.Exception):
            follow(wrong, recording)
