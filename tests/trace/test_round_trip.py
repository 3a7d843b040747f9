"""A check of what `causewire convert` writes has the verdict of a check of what it read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from causewire.cli import main
from causewire.trace import Event, write_shiviz, write_trace
from causewire.trace.marks import InputMark, marks_of, write_mark

from .shop import in_order, otlp, overtaken
from .test_foreign import EXPORTS

OUTPUTS = ("out.jsonl", "out.parquet", "out", "out.shiviz")
NAMED = r"(?<host>\S*) (?<clock>{.*})\n(?:send (?<send>\S+)|got (?<deliver>\S+)|(?<event>.*))"


def checked(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """Return what a check says of the order, and its exit status."""
    status = main(["check", *map(str, arguments), "--json"])
    told = json.loads(capsys.readouterr().out)
    names = ("verdict", "violations", "messages", "runs", "inferred", "unread")
    return {"status": status, **{name: told[name] for name in names}}


def round_trip(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, *arguments: object
) -> dict[str, Any]:
    """Check an input, and what it is converted to, in every form; return what they all say."""
    wanted = checked(capsys, *arguments)
    for name in OUTPUTS:
        output = tmp_path / "converted" / name
        output.parent.mkdir(exist_ok=True)
        assert main(["convert", *map(str, arguments), "-o", str(output)]) == 0
        capsys.readouterr()
        assert checked(capsys, output) == wanted, name
    return wanted


@pytest.mark.parametrize("name", EXPORTS)
def test_spans(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spans"
    file.write_bytes(EXPORTS[name][1](overtaken()))
    assert round_trip(capsys, tmp_path, file)["violations"] == 1


def test_spans_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spans"
    file.write_bytes(otlp(in_order()))
    assert round_trip(capsys, tmp_path, file)["verdict"] == "causally ordered"


def test_spans_of_which_a_file_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check cannot tell, and neither can a check of what could be converted."""
    (tmp_path / "a.json").write_bytes(otlp(in_order()))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(otlp(in_order(2)))[:-20])
    paths = [tmp_path / "a.json", tmp_path / "b.json.gz"]
    told = round_trip(capsys, tmp_path, *paths, "--format", "otlp")
    assert told["status"] == 1
    assert told["verdict"].startswith("cannot tell: 1 file could not be read")
    assert checked(capsys, tmp_path / "converted")["status"] == 1  # in a directory, too


@pytest.mark.parametrize(
    ("log", "more", "inferred"),
    [
        ('a {"a":1}\nsend x\nb {"a":1,"b":1}\ngot x\n', (), True),
        ('a {"a":1}\nsend x\nb {"a":1,"b":1}\ngot x\n', ("--regex", NAMED), False),
    ],
    ids=["clocks", "names"],
)
def test_logs(
    log: str,
    more: tuple[str, ...],
    inferred: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "app.log"
    file.write_text(log)
    told = round_trip(capsys, tmp_path, file, *more)
    assert (told["inferred"], told["messages"]) == (inferred, 1)


@pytest.mark.parametrize("name", ["in.shiviz", "in.jsonl"])
def test_our_own_logs_and_traces(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        Event("r", "a", 0, 1, 1, "send", "a", 1, ("b",)),
        Event("r", "a", 1, 2, 2, "send", "a", 2, ("b",)),
        Event("r", "b", 0, 3, 3, "deliver", "a", 2, ("a",)),
        Event("r", "b", 1, 4, 4, "deliver", "a", 1, ("a",)),
    ]
    write_shiviz(tmp_path / "in.shiviz", events)
    write_trace(tmp_path / "in.jsonl", events)
    assert round_trip(capsys, tmp_path, tmp_path / name)["violations"] == 1


def test_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.csv").write_text("host,n,kind,id,to\na,0,send,1,b\nb,0,deliver,1,\n")
    mapping = {"process": "host", "seq": "n", "kind": "kind", "mid": "id"}
    mapping |= {"origin": {"value": "a"}, "run": {"value": "r"}}  # type: ignore[dict-item]
    columns = {**mapping, "peers": {"column": "to", "split": ","}}
    (tmp_path / "columns.json").write_text(json.dumps(columns))
    told = round_trip(
        capsys, tmp_path, tmp_path / "log.csv", "--columns", tmp_path / "columns.json"
    )
    assert (told["messages"], told["status"]) == (1, 0)


def test_a_mark_is_for_one_state_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text("one\n")
    mark = InputMark(inferred=True, spans=True, unread=("x: gone",))
    write_mark(file, mark)
    assert marks_of([file]) == marks_of([tmp_path]) == mark
    file.write_text("another one\n")
    assert marks_of([file]) == InputMark()
    write_mark(file, mark)
    write_mark(file, InputMark())
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
