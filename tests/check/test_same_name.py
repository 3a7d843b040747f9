"""Two starts of a process under one name, each with a trace file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from causewire.check import check
from causewire.check.report import NEVER_SENT
from causewire.trace import Event, TraceError, open_trace, write_trace

KINDS = ("send", "receive", "deliver")
REMEDY = (
    "use one trace file for all starts of a process, or give each start another name, "
    "or another run if all processes start again"
)


def starts(
    process: str, time: int, *rows: tuple[str, str, int, str], run: str = "r"
) -> list[Event]:
    """The rows of one start of a process, which begins at a time."""
    events = [Event(run, process, 0, time, 1, "start")]
    for seq, (kind, origin, mid, peer) in enumerate(rows, 1):
        events.append(Event(run, process, seq, time + seq, seq + 1, kind, origin, mid, (peer,)))
    return events


def renamed(run: str, events: list[Event]) -> list[Event]:
    """The same rows as those of another run."""
    return [event._replace(run=run) for event in events]


SERVER = starts("a", 0, ("deliver", "client", 1, "client"), ("deliver", "client", 1, "client"))
RECEIVED = starts(
    "a",
    0,
    ("receive", "client", 1, "client"),
    ("deliver", "client", 1, "client"),
    ("receive", "client", 1, "client"),
    ("deliver", "client", 1, "client"),
)
"""A node whose client was started twice; its trace was written before clients were told apart."""
FIRST = starts("client", 10, ("send", "client", 1, "a"))
OTHER = starts("client", 20, ("send", "client", 1, "b"))
ALIKE = starts("client", 20, ("send", "client", 1, "a"))
"""Like `FIRST`, but for the times."""


DUPLICATE = [
    Event("q", "c", 1, 1, 1, "send", "c", 1, ("d",)),
    Event("q", "d", 1, 1, 2, "deliver", "c", 1, ("c",)),
    Event("q", "d", 2, 1, 3, "deliver", "c", 1, ("c",)),
]
"""A message that was delivered twice, in another run."""
OVERTAKEN = [
    Event("v", "x", 1, 1, 1, "send", "x", 1, ("z",)),
    Event("v", "x", 2, 1, 2, "send", "x", 2, ("z",)),
    Event("v", "z", 1, 1, 3, "deliver", "x", 2, ("x",)),
    Event("v", "z", 2, 1, 4, "deliver", "x", 1, ("x",)),
]
"""A violation, in another run."""
RECEIVED_TWICE = starts(
    "a",
    0,
    ("receive", "client", 1, "client"),
    ("receive", "client", 1, "client"),
    ("deliver", "client", 1, "client"),
)
"""A node that received a message twice, and delivered it once."""
THREE_TIMES = [*RECEIVED, *(e._replace(seq=e.seq + 4) for e in RECEIVED[1:3])]
"""A node whose client was started three times."""


def files(folder: Path, **events: list[Event]) -> list[Path]:
    paths = [folder / f"{name}.jsonl" for name in events]
    for path, rows in zip(paths, events.values(), strict=True):
        write_trace(path, rows)
    return paths


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_the_error_names_both_files_and_a_remedy(tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    write_trace(one, FIRST)
    write_trace(two, OTHER)
    with pytest.raises(TraceError) as caught:
        check(open_trace(one, two))
    assert (caught.value.file, caught.value.row) == (str(one), 1)
    assert caught.value.reason == (
        "process 'client' of run 'r' has two rows with seq 0, "
        f"the other is row 1 of {two}: {REMEDY}"
    )


def test_starts_whose_messages_are_alike_are_no_duplicate_rows(tmp_path: Path) -> None:
    """Their times tell them from a log in which each row is there twice."""
    with pytest.raises(TraceError, match=r"two rows with seq 0, the other is row 1 of .*alike"):
        check(open_trace(*files(tmp_path, a=SERVER, first=FIRST, alike=ALIKE)))


def test_starts_whose_rows_do_not_collide(tmp_path: Path) -> None:
    later = [ALIKE[0], Event("r", "client", 7, 30, 9, "send", "client", 2, ("a",))]
    with pytest.raises(TraceError, match=r"two rows with seq 0, the other is row 1 of .*later"):
        check(open_trace(*files(tmp_path, first=FIRST, later=later)))


def test_rows_that_collide_without_a_row_for_the_start(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"two rows with seq 1, the other is row 1 of .*other"):
        check(open_trace(*files(tmp_path, first=FIRST[1:], other=OTHER[1:])))


def test_a_log_in_which_each_row_is_twice_is_no_second_start(tmp_path: Path) -> None:
    report = check(open_trace(*files(tmp_path, a=SERVER[:2], first=FIRST, again=FIRST)))
    assert (report.verdict, report.identical) == ("causally ordered", 1)


def test_events_in_memory_have_rows_and_no_files() -> None:
    with pytest.raises(TraceError, match=r"two rows with seq 1, the other is row 2$") as caught:
        check([*FIRST[1:], *OTHER[1:]])
    assert caught.value.row == 1


def test_identical_rows_need_no_remedy_when_they_are_refused() -> None:
    with pytest.raises(TraceError, match=r"two rows with seq 1, the other is row 4$"):
        check([*FIRST, *FIRST], strict=True)


def test_what_a_node_received_from_two_incarnations_was_not_delivered_twice() -> None:
    """The send of the second message is in a file that was left out."""
    report = check([*RECEIVED, *FIRST])
    assert (report.duplicates, report.bad.total(), report.conclusive) == (0, 1, False)
    assert report.verdict == (
        f"cannot tell: 1 message came from another incarnation with the same name ({REMEDY})"
    )
    (row,) = report.bad_rows
    assert str(row) == (
        "process 'a' of run 'r', seq 3: message client:1 received again, "
        "from another incarnation with the same name"
    )


def test_what_a_node_received_once_and_delivered_twice_is_a_duplicate() -> None:
    again = [event for event in RECEIVED if event.seq != 3]
    report = check([*again, *FIRST])
    assert (report.duplicates, report.verdict) == (1, "causally ordered")
    report = check([*again, *again, *FIRST])  # each row of the node is there twice
    assert (report.duplicates, report.verdict) == (1, "causally ordered")


def test_a_network_that_repeats_messages_has_no_incarnations() -> None:
    """In a simulation, a process receives what comes."""
    report = check([*RECEIVED[1:], *FIRST])
    assert (report.duplicates, report.verdict) == (1, "causally ordered")


def test_an_answer_to_one_incarnation_is_not_overtaken_at_another() -> None:
    """Each got its answer; the file of the first incarnation was left out."""
    asked = ("receive", "client", 1, "client"), ("deliver", "client", 1, "client")
    server = starts("a", 0, *asked, ("send", "a", 1, "client"), *asked, ("send", "a", 2, "client"))
    second = starts("client", 20, ("send", "client", 1, "a"), ("deliver", "a", 2, "a"))
    report = check([*server, *second])
    assert report.verdict == (
        f"cannot tell: 1 message came from another incarnation with the same name ({REMEDY}), "
        "which may explain 1 violation"
    )
    assert not report.conclusive


def test_a_violation_in_another_run_stays_one() -> None:
    report = check([*RECEIVED, *FIRST, *OVERTAKEN])
    assert (report.violations, report.bad.total()) == (1, 1)
    assert report.verdict == "NOT causally ordered: 1 violation"
    report = check([*RECEIVED, *FIRST, *renamed("r", OVERTAKEN)])
    assert "which may explain 1 violation" in report.verdict


def test_violations_are_counted_in_blocks_of_origins_as_well() -> None:
    many = [Event("r", f"p{k}", 0, 0, 1, "join") for k in range(70)]
    rows = [*RECEIVED, *FIRST, *many, *renamed("r", OVERTAKEN), *OVERTAKEN]
    whole, blocks = check(rows), check(rows, memory=1)
    assert (whole.violations, whole.verdict) == (2, "NOT causally ordered: 1 violation")
    assert blocks == whole


def test_what_was_received_again_and_not_delivered_does_not_count() -> None:
    assert check([*RECEIVED_TWICE, *FIRST]).verdict == "causally ordered"
    report = check([*RECEIVED_TWICE, *FIRST, *DUPLICATE])
    assert (report.duplicates, report.verdict) == (1, "causally ordered")


def test_more_than_two_incarnations() -> None:
    report = check([*THREE_TIMES, *FIRST])
    assert (report.duplicates, report.bad.total(), len(report.bad_rows)) == (0, 2, 1)


def test_only_runs_with_duplicates_have_namesakes() -> None:
    """Without the send, both deliveries are bad rows already."""
    report = check([*RECEIVED, *DUPLICATE])
    assert (report.duplicates, report.bad) == (1, {NEVER_SENT: 2})


def test_bad_rows_are_in_the_order_of_their_runs() -> None:
    rows = [*renamed("a", [*RECEIVED, *FIRST]), Event("b", "d", 1, 1, 2, "deliver", "c", 1, ())]
    assert [row.run for row in check(rows).bad_rows] == ["a", "b"]
    (row,) = check(rows, examples=1).bad_rows
    assert (row.run, row.seq) == ("a", 3)


def test_rows_that_name_no_message() -> None:
    nameless = [RECEIVED[1]._replace(seq=seq, origin=None, mid=None) for seq in (8, 9)]
    numberless = [RECEIVED[1]._replace(seq=seq, mid=None) for seq in (10, 11)]
    report = check([*RECEIVED, *nameless, *numberless, *FIRST])
    assert (report.duplicates, report.bad.total()) == (0, 1)


def test_only_rows_about_odd_deliveries_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    concat = pa.concat_tables

    def noted(tables: Any) -> pa.Table:
        whole = concat(tables)
        asked.append(whole.num_rows)
        return whole

    monkeypatch.setattr("causewire.check.namesakes.pa.concat_tables", noted)
    many = starts("b", 0, *((kind, "b", mid, "b") for mid in range(2, 99) for kind in KINDS))
    report = check([*RECEIVED, *FIRST, *many])
    assert report.bad.total() == 1
    assert asked
    assert max(asked) == 4
