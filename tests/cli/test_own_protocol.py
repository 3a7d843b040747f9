"""A protocol in a module of the user's: MODULE:NAME wherever a protocol is named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from causewire import protocols

from .command_line import ORDERED, CommandLine, written

MODULE = """
from causewire import protocols
from causewire.core.fifo import Fifo

class Shares(Fifo):
    def _copy_into(self, twin):
        super()._copy_into(twin)
        twin._peers = self._peers

hasty = protocols.Protocol(name="hasty", endpoint=Fifo)
shares = protocols.Protocol(name="shares", endpoint=Shares)
"""
SMALL = "verify --engine python --jobs 1 --program '0>2,1; 1>2; 2>'"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with the module, and a registry that is thrown away."""
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(protocols, "_known", dict(protocols._known))
    yield tmp_path
    sys.modules.pop("own_module", None)


def test_the_regression_test_imports_the_module(causewire: CommandLine, place: Path) -> None:
    done = causewire(SMALL, "--protocol own_module:hasty --regression test_it.py")
    assert done.status == 1
    assert "from own_module import hasty" in (place / "test_it.py").read_text()
    names: dict[str, object] = {}
    exec(compile((place / "test_it.py").read_text(), "test_it.py", "exec"), names)
    with pytest.raises(AssertionError, match="p0:1"):
        names["test_hasty_causal_order"]()  # type: ignore[operator]


def test_an_endpoint_that_cannot_be_checked_is_bad_input(causewire: CommandLine) -> None:
    done = causewire(SMALL, "--protocol own_module:shares")
    assert (done.status, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert "shares `_peers` with it; look at `_copy_into`" in line


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("simulate --messages 5 --processes 3 --protocol own_module:hasty", "hasty, uniform: 5"),
        ("simulate --messages 5 --processes 3 --set protocol=own_module:hasty", "hasty, uniform"),
        ("replay run.jsonl --protocol own_module:hasty", "hasty"),
        ("protocols own_module:hasty", "hasty"),
    ],
)
def test_other_commands_take_it_too(
    causewire: CommandLine, place: Path, command: str, told: str
) -> None:
    written(place / "run.jsonl", ORDERED)
    done = causewire(command)
    assert (done.status, done.err) == (0, "")
    assert told in done.out


def test_a_module_that_fails_is_told_in_a_line(causewire: CommandLine, place: Path) -> None:
    (place / "broken_module.py").write_text("1 / 0")
    done = causewire("simulate --protocol broken_module:x")
    assert done.status == 2
    assert done.err.endswith("broken_module:x: ZeroDivisionError: division by zero\n")
