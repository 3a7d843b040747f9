"""ShiViz logs: ours there and back, and other people's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from causewire.check import check
from causewire.trace import Event, TraceError, read_shiviz, write_shiviz
from causewire.trace.formats.shiviz_log import read_log
from causewire.trace.shiviz import DELIMITER, PATTERN


def rows(*specs: Any, run: str = "r") -> Any:
    """Rows from (process, kind, origin, mid, peers), in the order they happened."""
    seq: dict[Any, Any] = {}
    clock: dict[Any, Any] = {}
    sent: dict[Any, Any] = {}
    events: list[Any] = []
    for process, kind, origin, mid, *peers in specs:
        clock[process] = clock.get(process, 0) + 1
        if kind == "deliver":
            clock[process] = max(clock[process], sent[origin, mid] + 1)
        if kind == "send":
            sent[origin, mid] = clock[process]
        seq[process] = seq.get(process, -1) + 1
        events.append(
            Event(run, process, seq[process], None, clock[process], kind, origin, mid, tuple(peers))
        )
    return events


TRIANGLE = rows(
    ("a", "send", "a", 1, "c"),
    ("a", "send", "a", 2, "b"),
    ("b", "deliver", "a", 2, "a"),
    ("b", "send", "b", 1, "c", "b"),
    ("b", "deliver", "b", 1, "b"),
    ("c", "deliver", "b", 1, "b"),
    ("c", "deliver", "a", 1, "a"),
)


def shape(events: list[Event]) -> Any:
    """What happened at each process, in order, and nothing else."""
    result: dict[Any, Any] = {}
    for e in sorted(events, key=lambda e: e.seq):
        what = e.kind, e.origin, e.mid, e.peers
        result.setdefault((e.run, e.process), []).append(what)
    return result


def log(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "log"
    path.write_text(text)
    return path


# -- ours --------------------------------------------------------------------------------


def test_there_and_back(tmp_path: Path) -> None:
    other = rows(("x", "send", "x", 7, "y"), ("y", "deliver", "x", 7, "x"), run="other run")
    assert write_shiviz(tmp_path / "log", TRIANGLE + other) == 9
    back = read_shiviz(tmp_path / "log")
    assert back.messages == "text"
    assert shape(back.events) == shape(TRIANGLE + other)
    assert [check(events).violations for events in (TRIANGLE, back.events)] == [1, 1]


def test_the_text_and_the_clocks(tmp_path: Path) -> None:
    write_shiviz(tmp_path / "log", TRIANGLE[:3])
    assert (tmp_path / "log").read_text() == (
        "=== r ===\n"
        'a {"a":1}\n'
        'send {"origin":"a","mid":1,"peers":["c"]}\n'
        'a {"a":2}\n'
        'send {"origin":"a","mid":2,"peers":["b"]}\n'
        'b {"a":2,"b":1}\n'
        'deliver {"origin":"a","mid":2,"peers":["a"]}\n'
    )


def test_shiviz_would_open_it(tmp_path: Path) -> None:
    """The rules of ShiViz's own parser and model, written down from its source."""
    write_shiviz(tmp_path / "log", TRIANGLE)
    text = (tmp_path / "log").read_text()
    pattern = re.compile(PATTERN.replace("(?<", "(?P<"))
    found = [(m["host"], json.loads(m["clock"])) for m in pattern.finditer(text)]
    assert len(found) == len(TRIANGLE)
    hosts: dict[Any, Any] = {}
    for host, clock in found:
        hosts.setdefault(host, []).append(clock)
    for host, clocks in hosts.items():
        assert [clock[host] for clock in clocks] == list(range(1, len(clocks) + 1))
        for clock in clocks:
            assert all(1 <= known <= len(hosts[other]) for other, known in clock.items())


def test_other_kinds_are_written_when_asked_for(tmp_path: Path) -> None:
    events = [*TRIANGLE, Event("r", "c", 9, None, 9, "crash")]
    assert write_shiviz(tmp_path / "log", events) == 7
    assert write_shiviz(tmp_path / "log", events, kinds=None) == 8
    back = read_shiviz(tmp_path / "log")
    assert back.messages == "text"
    assert back.events[-1].kind == "crash"


def test_rows_without_times_stay_as_they_are(tmp_path: Path) -> None:
    events = [event._replace(lamport=None) for event in TRIANGLE]
    write_shiviz(tmp_path / "log", events)
    assert shape(read_shiviz(tmp_path / "log").events) == shape(TRIANGLE)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "log"
    bad = rows(("a b", "send", "a b", 1, "c"))
    with pytest.raises(TraceError, match=r"no hosts with white space: 'a b'"):
        write_shiviz(path, bad)
    with pytest.raises(TraceError, match="a:2 is delivered before it is sent"):
        write_shiviz(path, TRIANGLE[2:])
    with pytest.raises(TraceError, match="No such file"):
        write_shiviz(tmp_path / "none" / "log", TRIANGLE)
    assert list(tmp_path.iterdir()) == []


# -- messages with names ---------------------------------------------------------------------

NAMED = (
    r"(?<host>\w+) (?<clock>{.*}) "
    r"(?<event>sent (?<send>\w+)(?: to (?<to>[\w, ]+))?|got (?<deliver>\w+)|.*)"
)
SAID = """\
a {"a":1} sent m1
a {"a":2} sent m2
b {"b":1,"a":2} got m2
b {"b":2,"a":2} sent m3
c {"c":1,"b":2,"a":2} got m3
c {"c":2,"b":2,"a":2} got m1
c {"c":3,"b":2,"a":2} thinking
"""


def test_named_messages_show_a_violation(tmp_path: Path) -> None:
    found = read_shiviz(log(tmp_path, SAID), NAMED, run="mine")
    assert found.messages == "names"
    report = check(found.events)
    assert (report.events, report.messages, report.violations) == (7, 3, 1)
    (violation,) = report.examples
    assert (violation.run, violation.process) == ("mine", "c")
    assert [str(link.message) for link in violation.chain] == ["a:1", "a:2", "b:2"]
    assert found.events[-1].kind == "local"


def test_named_destinations_show_what_is_missing(tmp_path: Path) -> None:
    text = SAID.replace("sent m1", "sent m1 to c, d").replace("sent m3", "sent m3 to c")
    report = check(read_shiviz(log(tmp_path, text), NAMED).events)
    assert (report.undelivered, report.violations) == (1, 1)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("sent m2", "sent m1", "row 2: message 'm1' is sent twice (line 1)"),
        ("got m1", "got m9", "row 6: message 'm9' is never sent"),
        ('{"b":1,"a":2} got', '{"b":1,"a":1} got', "row 3: message 'm2' is delivered, but"),
    ],
)
def test_names_that_make_no_sense(tmp_path: Path, old: Any, new: Any, told: Any) -> None:
    with pytest.raises(TraceError) as info:
        read_shiviz(log(tmp_path, SAID.replace(old, new)), NAMED)
    assert str(info.value).startswith(f"{tmp_path / 'log'}: {told}")


# -- messages inferred from clocks ---------------------------------------------------------------

GOVECTOR = """\
server {"server":1}
Initialization Complete
client {"client":1}
Initialization Complete
client {"client":2}
Sending request
server {"server":2, "client":2}
Received request
server {"server":3, "client":2}
Sending reply
client {"client":3, "server":3}
Received reply
"""


def test_govector(tmp_path: Path) -> None:
    found = read_shiviz(log(tmp_path, GOVECTOR))
    assert found.messages == "clocks"
    assert shape(found.events) == {
        ("", "server"): [
            ("local", None, None, ()),
            ("deliver", "client", 2, ("client",)),
            ("send", "server", 3, ("client",)),
        ],
        ("", "client"): [
            ("local", None, None, ()),
            ("send", "client", 2, ("server",)),
            ("deliver", "server", 3, ("server",)),
        ],
    }
    report = check(found.events)
    assert (report.messages, report.violations, report.undelivered) == (2, 0, 0)


def test_only_the_latest_events_are_senders(tmp_path: Path) -> None:
    """b learnt of a; c hears from b only, although it newly knows of a as well."""
    text = """\
a {"a":1}
x
b {"a":1,"b":1}
x
c {"a":1,"b":1,"c":1}
x
d {"d":1}
x
c {"a":1,"b":1,"c":2,"d":1}
x
e {"a":1,"b":1,"d":1,"e":1}
two at once
"""
    found = read_shiviz(log(tmp_path, text))
    assert shape(found.events)["", "c"] == [
        ("deliver", "b", 1, ("b",)),
        ("deliver", "d", 1, ("d",)),
    ]
    assert shape(found.events)["", "b"] == [
        ("deliver", "a", 1, ("a",)),
        ("send", "b", 1, ("c", "e")),
    ]
    assert [what[1] for what in shape(found.events)["", "e"]] == ["b", "d"]


def test_lamport_times_fit(tmp_path: Path) -> None:
    for text, pattern in ((GOVECTOR, PATTERN), (SAID, NAMED)):
        events = read_shiviz(log(tmp_path, text), pattern).events
        sent: dict[Any, Any] = {(e.origin, e.mid): e.lamport for e in events if e.kind == "send"}
        last: dict[Any, Any] = {}
        for e in events:
            assert e.lamport is not None
            assert e.lamport > last.get(e.process, 0)
            last[e.process] = e.lamport
            if e.kind == "deliver":
                assert e.lamport > sent[e.origin, e.mid]


def test_several_runs(tmp_path: Path) -> None:
    text = f"=== one ===\n{GOVECTOR}=== two ===\n{GOVECTOR}"
    runs = {event.run for event in read_shiviz(log(tmp_path, text)).events}
    assert runs == {"one", "two"}
    numbered = read_shiviz(log(tmp_path, text), delimiter="^=== .* ===$").events
    assert {event.run for event in numbered} == {"1", "2"}
    assert DELIMITER.startswith("^===")


# -- what is wrong with a log -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the expression matches no events"),
        ("nothing to see\n", "the expression matches no events"),
        ('a {"a":1}\nx\na {"a":3}\nx\n', "row 3: the own entries of 'a' must be 1, 2, 3, ...: 3"),
        ('a {"a":0}\nx\n', "row 1: the own entries of 'a' must be 1, 2, 3, ...: 0"),
        ('a {"b":1}\nx\n', "row 1: the clock has no entry for its host 'a'"),
        ('a {"a":1,"b":1}\nx\n', "row 1: the clock knows event 1 of 'b', which is absent"),
        ('b {"b":1}\nx\na {"a":1,"b":1}\nx\na {"a":2}\nx\n', "row 5: the clock forgets what"),
        ("a {nonsense}\nx\n", "row 1: the clock is not JSON: {nonsense}"),
        ('a {"a":"1"}\nx\n', "row 1: the clock must be a JSON object of integers"),
    ],
)
def test_bad_logs(tmp_path: Path, text: str, told: Any) -> None:
    with pytest.raises(TraceError) as info:
        read_shiviz(log(tmp_path, text))
    assert str(info.value).startswith(f"{tmp_path / 'log'}: {told}")


def test_bad_expressions_and_files(tmp_path: Path) -> None:
    path = log(tmp_path, GOVECTOR)
    with pytest.raises(TraceError, match=r"the expression has no group clock, event"):
        read_shiviz(path, r"(?<host>\S+)")
    with pytest.raises(TraceError, match="bad expression"):
        read_shiviz(path, r"(?<host>")
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read_shiviz(tmp_path / "none")
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(TraceError, match="is not text"):
        read_shiviz(path)


# -- logs of other tools ----------------------------------------------------------------------

BY_NAME = r"(?<host>\S*) (?<clock>{.*})\n(?<event>(send (?<send>\w+)|deliver (?<deliver>\w+)|.*).*)"
FROM = BY_NAME.replace(r"deliver (?<deliver>\w+)", r"deliver (?<deliver>\w+) from (?<from>\w+)")


def test_escaped_quotes_in_clocks(tmp_path: Path) -> None:
    plain = 'a {"a":1}\nhello\nb {"a":1,"b":1}\nhello\n'
    path = log(tmp_path, plain.replace('"', '\\"'))
    assert shape(read_shiviz(path).events) == shape(read_shiviz(log(tmp_path, plain)).events)


def test_the_clock_on_the_second_line(tmp_path: Path) -> None:
    """With the default expression, texts and clocks would be joined across events."""
    path = log(tmp_path, 'first\na {"a":1}\nsecond\nb {"a":1,"b":1}\n')
    events = read_shiviz(path).events
    assert [(e.process, e.kind) for e in events] == [("a", "send"), ("b", "deliver")]
    ours = [
        'send {"origin":"a","mid":1,"peers":["b"]}\na {"a":1}',
        'deliver {"origin":"a","mid":1,"peers":["a"]}\nb {"a":1,"b":1}',
    ]
    read = read_shiviz(log(tmp_path, "\n".join(ours)))
    assert read.messages == "text"
    assert [(e.process, e.kind) for e in read.events] == [("a", "send"), ("b", "deliver")]


def test_names_that_are_unique_for_each_sender(tmp_path: Path) -> None:
    text = """a {"a":1}
send m1
b {"b":1}
send m1
c {"c":1,"b":1}
deliver m1
c {"c":2,"b":1,"a":1}
deliver m1
"""
    events = read_shiviz(log(tmp_path, text), BY_NAME).events
    assert [(e.origin, e.mid) for e in events if e.kind == "deliver"] == [("b", 1), ("a", 1)]
    both = text.replace('"c":1,"b":1', '"c":1,"b":1,"a":1')
    with pytest.raises(TraceError, match="sent by a and b: the expression should tell the sender"):
        read_shiviz(log(tmp_path, both), BY_NAME)
    told = both.replace("deliver m1", "deliver m1 from a", 1).replace(
        "deliver m1\n", "deliver m1 from b\n"
    )
    events = read_shiviz(log(tmp_path, told), FROM).events
    assert [(e.origin, e.mid) for e in events if e.kind == "deliver"] == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("pattern", [PATTERN, r"(?<host>\S*) (?<clock>{.*})\r?\n(?<event>.*)"])
def test_a_log_that_was_written_on_windows(encoding: str, pattern: str, tmp_path: Path) -> None:
    text = 'a {"a":1}\nstart\na {"a":2}\nsend\nb {"b":1, "a":2}\nreceived\n'
    (tmp_path / "unix.log").write_text(text)
    wanted = read_shiviz(tmp_path / "unix.log")
    file = tmp_path / "windows.log"
    file.write_bytes(text.replace("\n", "\r\n").encode(encoding))
    assert read_shiviz(file, pattern) == wanted
    (batch,) = read_log(str(file), pattern, run="")
    assert batch.column("reason").null_count == batch.num_rows == len(wanted.events)
