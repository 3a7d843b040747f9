"""Real processes on loopback, through a proxy that drops, copies, delays and damages."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from causewire.cli import main

from .cluster import Cluster

pytestmark = pytest.mark.slow

BAD = {"seed": 5, "loss": 0.1, "duplicate": 0.05, "corrupt": 0.03, "delay": (0.0005, 0.03)}
GROWTH = 40_000
"""Kilobytes that a process may grow by, whatever happens to the others."""
FLOOD = 8000
"""Messages of 8,000 bytes: more than that, and much more than a node keeps for one peer."""
FIVE = ["anna", "ben", "cleo", "dora", "emil"]


async def talk(folder: Path, protocol: str, key: str | None = None) -> int:
    """Five processes talk; returns how many messages were delivered."""
    async with Cluster(FIVE, folder, BAD, protocol=protocol, key=key) as cluster:
        for name in FIVE:
            cluster.tell(name, "talk 40 0.01")
        states = await cluster.quiet()
        assert await cluster.close()
        assert cluster.proxy.lost > 50
        return sum(state["got"] for state in states)


def checked(traces: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    capsys.readouterr()
    status = main(["check", *traces, "--json"])
    report: dict[str, int] = json.loads(capsys.readouterr().out)
    assert status == (1 if report["violations"] else 0)
    return report


@pytest.mark.parametrize("key", [None, "a key for the cluster"], ids=["plain", "sealed"])
def test_causal_on_a_bad_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str | None
) -> None:
    got = asyncio.run(talk(tmp_path, "csps", key))
    report = checked([str(tmp_path / f"{name}.jsonl") for name in FIVE], capsys)
    assert got > 300
    assert report["messages"] > 250
    assert (report["violations"], report["duplicates"], report["undelivered"]) == (0, 0, 0)


def test_fifo_is_not_causal_on_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(talk(tmp_path, "fifo"))
    report = checked([str(tmp_path / f"{name}.jsonl") for name in FIVE], capsys)
    assert report["violations"] > 0
    assert (report["duplicates"], report["undelivered"]) == (0, 0)


def test_a_stopped_process_a_cut_network_and_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest keeps going, `blocked` names the culprit meanwhile, memory stays bounded."""

    async def story() -> None:
        names = FIVE[:4]
        async with Cluster(
            names, tmp_path, {"seed": 1, "delay": (0.0005, 0.003)}, protocol="csps"
        ) as cluster:
            await cluster.ask("anna", "send ben,cleo,dora")
            before = [state["peak"] for state in await cluster.quiet()]

            # One stands still: what is for it waits, and who depends on that waits too.
            cluster.processes["dora"].send_signal(signal.SIGSTOP)
            await cluster.ask("anna", "send dora")
            await cluster.ask("anna", "send ben")  # flagged: its permit waits for dora
            await cluster.until("ben", "state", "'got': 2")
            await cluster.ask("ben", "send cleo")  # held back at ben
            await cluster.ask("cleo", "send anna")  # and this one is not
            await cluster.until("anna", "state", "'got': 1")
            await cluster.until("anna", "blocked", "nothing has come from dora for")
            await cluster.until("ben", "blocked", "which waits for dora")
            assert (await cluster.ask("cleo", "state"))["got"] == 1

            # Whoever sends to it all the same has to wait, and not in memory.
            cluster.tell("anna", f"flood dora {FLOOD} 8000")
            accepted = await cluster.stalled("anna")
            assert 2 < accepted < FLOOD / 2
            cluster.processes["dora"].send_signal(signal.SIGCONT)
            await cluster.quiet()
            assert (await cluster.ask("dora", "state"))["got"] == 2 + FLOOD
            assert (await cluster.ask("cleo", "state"))["got"] == 2

            # The network is cut in two: each half goes on, and knows whom it misses.
            cluster.proxy.partition(["anna", "ben"])
            for name, other in (("anna", "ben"), ("cleo", "dora")):
                await cluster.ask(name, f"send {other}")
            await cluster.until("ben", "state", "'got': 3")
            await cluster.until("dora", "state", f"'got': {3 + FLOOD}")
            for name in names:
                cluster.tell(name, "talk 15 0.01")
            for name, missing in (("anna", "cleo"), ("dora", "ben")):
                await cluster.until(name, "blocked", f"to {missing}")
            cluster.proxy.partition(())
            await cluster.quiet()

            # A peer dies and comes back; the others are told, and go on.
            cluster.processes["cleo"].kill()
            await cluster.processes["cleo"].wait()
            await cluster.ask("anna", "send cleo")
            await cluster.start("cleo")
            for name in ("anna", "ben", "dora"):
                await cluster.until(name, "state", "PeerRestarted")
            await cluster.ask("ben", "send anna,cleo,dora")
            await cluster.ask("cleo", "send anna,ben,dora")
            states = await cluster.quiet()
            assert states[2]["got"] == 1
            for k in (0, 1, 3):
                assert states[k]["peak"] < before[k] + GROWTH
            assert await cluster.close()

    asyncio.run(story())
    traces = [str(tmp_path / f"{name}.jsonl") for name in FIVE[:4]]
    report = checked(traces, capsys)
    assert (report["violations"], report["duplicates"]) == (0, 0)
