"""Files of another known format in a directory are counted, whatever the directory is of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from causewire.cli import main
from causewire.trace import Event, write_trace

from .shop import in_order, otlp

EVENTS = [
    Event("r", "a", 0, 0, 0, "send", "a", 1, ("b",)),
    Event("r", "b", 0, 1, 1, "deliver", "a", 1, ("a",)),
]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, int]:
    status = main(["check", *arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    return status, found["verdict"], found["quarantined"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "readme.txt").write_text("what this is")
    return tmp_path


def test_spans_among_traces(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(folder / "t.parquet", EVENTS)
    (folder / "spans.otlp").write_bytes(otlp(in_order()))
    assert told(capsys, str(folder)) == (0, "causally ordered", 2)


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl"])
def test_traces_among_spans(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(folder / name, EVENTS)
    (folder / "spans.json").write_bytes(otlp(in_order()))
    assert told(capsys, str(folder)) == (0, "causally ordered", 2)
    # Whoever names a file wants it to be checked.
    status, verdict, _ = told(capsys, str(folder / "*.json"), str(folder / name))
    assert (status, verdict[:38]) == (1, "cannot tell: 1 file could not be read ")


def test_damaged_spans_among_spans(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = otlp(in_order())
    (folder / "a.json").write_bytes(document)
    (folder / "b.json").write_bytes(document[:-30])
    status, verdict, _ = told(capsys, str(folder))
    assert (status, verdict[:38]) == (1, "cannot tell: 1 file could not be read ")
