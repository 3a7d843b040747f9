"""Input of other systems that is incomplete or damaged: every command says so."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ..trace.shop import in_order, otlp, overtaken
from .command_line import ORDERED, CommandLine, written

COLUMNS = {
    "run": {"value": "prod"},
    "process": "svc",
    "seq": "pos",
    "kind": {"column": "what", "values": {"OUT": "send", "IN": "deliver"}},
    "origin": "snd",
    "mid": "msg",
    "peers": {"column": "dst", "split": "|"},
}
TABLE = "svc,pos,what,snd,msg,dst\napi,1,OUT,api,1,idx\nidx,1,IN,api,1,\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("good.json").write_bytes(otlp(in_order()))
    Path("cut.json").write_bytes(otlp(overtaken())[:-200])
    Path("columns.json").write_text(json.dumps(COLUMNS))
    return tmp_path


def test_a_file_that_cannot_be_read_fails_the_check(here: Path, causewire: CommandLine) -> None:
    done = causewire("check cut.json good.json --format otlp")
    assert done.status == 1
    lines = done.out.splitlines()
    said = "cannot tell: 1 file could not be read (cut.json: not a JSON document)"
    assert lines[1] == said
    assert "1 row not understood: not a JSON document (cut.json row 1)" in lines
    done = causewire("check cut.json good.json --format otlp --json")
    assert (done.status, done.json["unread"]) == (1, ["cut.json: not a JSON document"])
    assert done.json["verdict"] == said
    [refused] = done.json["quarantine"]
    assert (refused["file"], refused["row"]) == ("cut.json", 1)


def test_a_table_that_cannot_be_read_to_its_end(here: Path, causewire: CommandLine) -> None:
    rows = "".join(f"api,{k},OUT,api,{k},idx\n" for k in range(2, 5000))
    Path("log.csv.gz").write_bytes(gzip.compress((TABLE + rows).encode())[:-2000])
    done = causewire("check log.csv.gz --columns columns.json")
    assert done.status == 1
    assert "cannot tell: 1 file could not be read" in done.out
    assert "cannot be read to its end" in done.out


def test_the_trace_of_one_node_cannot_tell(here: Path, causewire: CommandLine) -> None:
    written(Path("cy.jsonl"), [event for event in ORDERED if event.process == "cy"])
    said = (
        "cannot tell: the sends of 2 deliveries of ann and bob are missing "
        "(give the files of all nodes)"
    )
    done = causewire("check cy.jsonl")
    assert done.status == 1
    assert done.out.splitlines()[1] == said
    assert "causally ordered" not in done.out
    done = causewire("report cy.jsonl")
    assert done.status == 1
    assert said in done.out
    page = Path("cy-report/index.html").read_text()
    assert "Cannot tell: the sends of 2 deliveries of ann and bob are missing" in page
    assert '<p class="answer good">' not in page


def test_every_command_mentions_rows_that_were_refused(here: Path, causewire: CommandLine) -> None:
    Path("log.csv").write_text(TABLE + "idx,x,IN,api,2,\nidx,y,IN,api,3,\n")
    read = "log.csv --columns columns.json"
    said = "2 rows not understood: seq must be an integer (log.csv row 3, log.csv row 4)\n"
    done = causewire(f"check {read}")
    assert said in done.out
    assert done.status == 0
    for command in ("convert {} -o log.jsonl", "draw {} -o log.svg", "report {} --json"):
        done = causewire(command.format(read))
        assert (done.status, done.err) == (0, said), command
    assert (done.json["quarantined"], done.json["unread"]) == (2, [])
    assert "not understood: seq must be an integer" in Path("log-report/index.html").read_text()


def test_convert_says_that_messages_were_inferred(here: Path, causewire: CommandLine) -> None:
    Path("app.shiviz").write_text('a {"a":1}\nhello\nb {"a":1,"b":1}\nwell\n')
    done = causewire("convert app.shiviz -o app.jsonl")
    assert done.status == 0
    assert done.err.startswith("messages were inferred from vector clocks")
    said = "cannot tell: messages were inferred from vector clocks"
    for name in ("app.shiviz", "app.jsonl"):
        done = causewire(f"check {name} --json")
        assert (done.status, done.json["inferred"]) == (1, True)
        assert done.json["verdict"].startswith(said)
    done = causewire("report app.shiviz --json")
    assert (done.status, done.json["inferred"]) == (1, True)
    assert done.json["verdict"].startswith(said)
    page = Path("app-report/index.html").read_text()
    assert "Cannot tell: messages were inferred from vector clocks" in page


def test_a_report_of_spans_compares_no_clocks(here: Path, causewire: CommandLine) -> None:
    done = causewire("report good.json")
    assert done.status == 0
    page = Path("good-report/index.html").read_text()
    assert "times of different clocks are not compared" in page
    assert "A message took" not in page


def test_the_report_of_several_files_is_next_to_their_directory(
    here: Path, causewire: CommandLine
) -> None:
    Path("t").mkdir()
    for name in ("ann", "bob", "cy"):
        written(Path(f"t/{name}.jsonl"), [event for event in ORDERED if event.process == name])
    done = causewire("report t/ann.jsonl t/bob.jsonl t/cy.jsonl")
    assert (done.status, done.out.partition(":")[0]) == (0, "t-report/index.html")
    assert "none recorded" in Path("t-report/index.html").read_text()
    assert sorted(file.name for file in Path("t").iterdir()) == [
        "ann.jsonl",
        "bob.jsonl",
        "cy.jsonl",
    ]


def test_spans_as_a_shiviz_log(here: Path, causewire: CommandLine) -> None:
    Path("bad.json").write_bytes(otlp(overtaken()))
    assert causewire("convert bad.json -o bad.shiviz").status == 0
    assert "NOT causally ordered: 1 violation" in causewire("check bad.shiviz").out


def test_a_pattern_without_files(here: Path, causewire: CommandLine) -> None:
    done = causewire("check 'none/*.json'")
    assert (done.status, done.err) == (2, "causewire check: none/*.json: no file matches\n")


LOG = """\
a {"a":1} sends m1 to c
a {"a":2} sends m2 to b
b {"b":1, "a":2} got m2
b {"b":2, "a":2} sends m3 to c
c {"c":1, "b":2, "a":2} got m3
c {"c":2, "b":2, "a":2} got m1
"""
NAMED = (
    r"(?<host>\w+) (?<clock>{.*}) (?<event>sends (?<send>\w+) to (?<to>\w+)|got (?<deliver>\w+))"
)


@pytest.fixture
def logs(here: Path) -> Path:
    for name, text in (("a.log", LOG), ("b.log", "a remark\n" + LOG)):
        Path("logs", name).parent.mkdir(exist_ok=True)
        Path("logs", name).write_text(text)
    return here


@pytest.mark.parametrize("place", ["logs", "'logs/*.log'", "{}/logs", "logs/a.log logs/b.log"])
def test_logs_wherever_they_are(place: str, logs: Path, causewire: CommandLine) -> None:
    read = f"{place.format(logs.as_uri())} --regex '{NAMED}'"
    done = causewire(f"check {read} --json")
    found = done.json
    assert (done.status, found["runs"], found["violations"], found["inferred"]) == (1, 2, 2, False)
    assert found["refused"] == {"the expression does not match": 1}
    assert causewire(f"draw {read} --run b -o b.svg").status == 0


def test_a_log_that_contradicts_itself_is_refused(logs: Path, causewire: CommandLine) -> None:
    Path("logs/b.log").write_text(LOG.replace('a {"a":1}', 'a {"a":one}'))
    done = causewire(f"check logs --regex '{NAMED}'")
    said = "logs/b.log: row 1: the clock is not JSON"
    assert (done.status, done.err) == (2, f"causewire check: {said}\n")


def test_a_log_that_is_none_is_not_passed_over(logs: Path, causewire: CommandLine) -> None:
    Path("logs/b.log").write_text("no such thing\n")
    Path("logs/a.log").write_text(LOG[: LOG.index("c {")])
    Path("logs/c.log").write_bytes(gzip.compress(LOG.encode())[:-20])
    done = causewire(f"check logs --regex '{NAMED}' --json")
    unread = ["b.log: the expression matches no events", "c.log: cannot be read: Compressed file"]
    assert done.status == 1
    assert [a[: len(b) + 5] for a, b in zip(done.json["unread"], unread, strict=True)] == [
        f"logs/{b}" for b in unread
    ]
    assert done.json["verdict"].startswith("cannot tell: 2 files could not be read")
