"""Traces of live nodes: what happened, in an order that can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from causewire.check import check
from causewire.node import Node
from causewire.testing.virtual import VirtualLoop, run
from causewire.trace import open_trace


def node(loop: VirtualLoop, name: str, port: int, trace: Path, **settings: Any) -> Node:
    peers = {n: f"127.0.0.1:{p}" for n, p in (("a", 1), ("b", 2), ("c", 3)) if n != name}
    sock: Any = loop.network.socket(port)
    return Node(name, sock=sock, peers=peers, trace=trace, **settings)


def paths(folder: Path) -> list[Path]:
    return [folder / f"{name}.jsonl" for name in "abc"]


def talk(folder: Path, protocol: str) -> None:
    """a tells c, who is far, then b, who tells c."""

    async def main(loop: VirtualLoop) -> None:
        def fate(source: Any, to: Any, data: bytes) -> list[float]:
            return [0.5 if (source[1], to[1]) == (1, 3) else 0.001]

        loop.network.fate = fate
        a, b, c = [
            await node(loop, path.stem, port, path, protocol=protocol, incarnation=port).start()
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
