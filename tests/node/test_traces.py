"""Traces of live nodes: what happened, in an order that can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from causewire.check import check
from causewire.explore.causality import Causality
from causewire.explore.held import story
from causewire.explore.run import RunData
from causewire.explore.table import read
from causewire.node import Node
from causewire.report import draw
from causewire.testing.virtual import VirtualLoop, run
from causewire.trace import HELD, HELD_FOR, LANE, open_trace


def node(loop: VirtualLoop, name: str, port: int, trace: Path, **settings: Any) -> Node:
    peers = {n: f"127.0.0.1:{p}" for n, p in (("a", 1), ("b", 2), ("c", 3)) if n != name}
    sock: Any = loop.network.socket(port)
    return Node(name, sock=sock, peers=peers, trace=trace, **settings)


def paths(folder: Path) -> list[Path]:
    return [folder / f"{name}.jsonl" for name in "abc"]


def talk(folder: Path, protocol: str, **options: Any) -> None:
    """a tells c, who is far, then b, who tells c."""

    async def main(loop: VirtualLoop) -> None:
        def fate(source: Any, to: Any, data: bytes) -> list[float]:
            return [0.5 if (source[1], to[1]) == (1, 3) else 0.001]

        loop.network.fate = fate
        settings: dict[str, Any] = {"protocol": protocol, "protocol_options": options}
        a, b, c = [
            await node(loop, path.stem, port, path, incarnation=port, **settings).start()
            for port, path in enumerate(paths(folder), 1)
        ]
        for _ in range(5):
            await a.send("c", b"first")
            await a.send(["b"], b"second!")
            await b.receive()
            await b.send("c", b"third")
            await c.receive()
            await c.receive()
        for each in (a, b, c):
            assert await each.close()

    run(main)


def test_a_causal_protocol_leaves_a_causal_trace(tmp_path: Path) -> None:
    talk(tmp_path, "csps")
    report = check(open_trace(*paths(tmp_path)))
    assert report.ordered
    assert report.messages == 15
    assert report.undelivered == 0


def test_fifo_does_not(tmp_path: Path) -> None:
    talk(tmp_path, "fifo")
    report = check(open_trace(*paths(tmp_path)))
    assert not report.ordered
    assert report.violations == 5


def test_lamport_time_is_an_order_of_the_whole_run(tmp_path: Path) -> None:
    talk(tmp_path, "csps")
    events = list(open_trace(*paths(tmp_path)).events())
    kinds = {event.kind for event in events}
    assert kinds == {"start", "send", "release", "receive", "deliver"}
    sends = {(e.origin, e.mid): e.lamport or 0 for e in events if e.kind == "send"}
    for event in events:
        if event.kind in ("receive", "deliver"):
            assert (event.lamport or 0) > sends[event.origin, event.mid]
    sizes = {e.payload_bytes for e in events if e.kind == "deliver"}
    assert sizes == {5, 7}
    assert {e.metadata_bytes for e in events if e.kind == "release"} <= set(range(4, 12))


Told = tuple[str, str, str | None, int | None, tuple[str, ...]]


def told(folder: Path) -> list[Told]:
    """Return what the traces say about messages that wait."""
    return [
        (e.process, e.kind, e.origin, e.mid, e.peers)
        for e in open_trace(*paths(folder)).events()
        if e.kind in (HELD, HELD_FOR, LANE)
    ]


def test_a_trace_of_adaptive_says_what_messages_wait_for(tmp_path: Path) -> None:
    talk(tmp_path, "adaptive")
    # The fifth time, for instance: b's fifth message waits at c for the ninth of a.
    assert told(tmp_path) == [
        row
        for k in range(1, 6)
        for row in (("c", HELD, "b", k, ("b",)), ("c", HELD_FOR, "a", 2 * k - 1, ("b",)))
    ]
    trace = open_trace(*paths(tmp_path))
    assert check(trace).ordered
    assert "b:2 in the receive buffer" in (svg := draw(list(trace.events())))
    assert "held for a:3" in svg
    table = read(trace)
    run = RunData(table, table.runs[0])
    copies = {run.message(int(send)): k for k, send in enumerate(run.copies.send)}
    sentences = story(run, run.axis(), Causality(run), [], copies["b:2"]).sentences
    assert "It lists a:3, which was not delivered to c." in sentences


def test_a_trace_of_adaptive_tells_lanes(tmp_path: Path) -> None:
    talk(tmp_path, "adaptive", cap=0)
    rows = told(tmp_path)
    # a has messages to b and to c under way, and neither may list the other.
    assert ("a", LANE, "a", 4, ("b",)) in rows
    assert ("b", LANE, "b", 2, ("c",)) in rows
    trace = open_trace(*paths(tmp_path))
    assert check(trace).ordered
    assert "in the lane of c" in draw(list(trace.events()))


def test_other_protocols_tell_nothing(tmp_path: Path) -> None:
    talk(tmp_path, "ks")
    assert not told(tmp_path)


def test_a_process_in_its_second_life_is_told_by_its_label(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        def fate(source: Any, to: Any, data: bytes) -> list[float]:
            return [0.5 if (source[1], to[1]) == (1, 3) else 0.001]

        settings: dict[str, Any] = {"protocol": "adaptive"}
        a, b, c = paths(tmp_path)
        first = await node(loop, "a", 1, a, incarnation=1, **settings).start()
        others = [
            await node(loop, path.stem, port, path, incarnation=port, **settings).start()
            for port, path in ((2, b), (3, c))
        ]
        await (await first.send(["b", "c"], b"")).delivered()
        await first.close()
        loop.network.fate = fate
        again = await node(loop, "a", 1, a, incarnation=11, **settings).start()
        await others[0].receive()
        await others[1].receive()
        await (await again.send("c", b"")).delivered()
        await others[1].receive()
        await again.send("c", b"")
        await again.send("b", b"")
        await others[0].receive()
        await others[0].send("c", b"")
        await others[1].receive()
        await others[1].receive()
        for each in (again, *others):
            await each.close()

    run(main)
    assert ("c", HELD_FOR, "a/2", 2, ("b",)) in told(tmp_path)


def test_a_second_life_has_a_name_of_its_own(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        a = await node(loop, "a", 1, tmp_path / "a.jsonl", incarnation=11).start()
        b = await node(loop, "b", 2, tmp_path / "b.jsonl", incarnation=22).start()
        for incarnation in (12, 13):
            await (await a.send("b", b"x")).delivered()
            await b.receive()
            await a.close()
            a = await node(loop, "a", 1, tmp_path / "a.jsonl", incarnation=incarnation).start()
        await (await a.send("b", b"x")).delivered()
        await (await b.send("a", b"y")).delivered()
        await a.close()
        await b.close()

    run(main)
    trace = open_trace(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    report = check(trace)
    assert report.ordered
    assert report.duplicates == 0
    assert report.undelivered == 0
    events = list(trace.events())
    assert {e.process for e in events} == {"a", "a/2", "a/3", "b"}
    assert [e.origin for e in events if e.process == "b" and e.kind == "deliver"] == [
        "a",
        "a/2",
        "a/3",
    ]
