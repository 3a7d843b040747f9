"""Real processes on loopback, through a proxy that drops, copies, delays and damages."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest
from cluster import Cluster

from causewire.cli import main

BAD = {"seed": 5, "loss": 0.1, "duplicate": 0.05, "corrupt": 0.03, "delay": (0.0005, 0.03)}
FIVE = ["anna", "ben", "cleo", "dora", "emil"]


async def talk(folder: Path, protocol: str, key: str | None = None) -> int:
    """Five processes talk; returns how many messages were delivered."""
    async with Cluster(FIVE, folder, BAD, protocol=protocol, key=key) as cluster:
        for name in FIVE:
            cluster.tell(name, "talk 40 0.01")
        states = await cluster.quiet()
        assert all(await cluster.stop())
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
        async with Cluster(names, tmp_path, {"seed": 1, "delay": (0.0005, 0.003)}) as cluster:
            await cluster.ask("anna", "send ben,cleo,dora")
            before = [state["peak"] for state in await cluster.quiet()]

            # One stands still: what is for it waits, and who depends on that waits too.
            cluster.processes["dora"].send_signal(signal.SIGSTOP)
            await cluster.ask("anna", "send dora")
            await cluster.ask("anna", "send ben")  # flagged: its permit waits for dora
            await asyncio.sleep(0.3)
            await cluster.ask("ben", "send cleo")  # held back at ben
            await cluster.ask("cleo", "send anna")  # and this one is not
            await asyncio.sleep(3.0)
            here = (await cluster.ask("anna", "blocked"))["blocked"]
            there = (await cluster.ask("ben", "blocked"))["blocked"]
            assert any("to dora" in r and "nothing has come from dora for" in r for r in here)
            assert any("permit of anna" in r and "waits for dora" in r for r in there)
            assert (await cluster.ask("anna", "state"))["got"] == 1
            cluster.processes["dora"].send_signal(signal.SIGCONT)
            await cluster.quiet()
            assert (await cluster.ask("cleo", "state"))["got"] == 2

            # The network is cut in two, and heals.
            cluster.proxy.partition(["anna", "ben"])
            for name in names:
                cluster.tell(name, "talk 15 0.01")
            await asyncio.sleep(1.0)
            here = (await cluster.ask("anna", "blocked"))["blocked"]
            assert any("cleo" in reason or "dora" in reason for reason in here)
            cluster.proxy.partition(())
            await cluster.quiet()

            # A peer dies and comes back; the others are told, and go on.
            cluster.processes["cleo"].kill()
            await cluster.processes["cleo"].wait()
            await cluster.ask("anna", "send cleo")
            await cluster.start("cleo")
            for name in ("anna", "ben", "dora"):
                await cluster.heard(name, "PeerRestarted")
            await cluster.ask("ben", "send anna,cleo,dora")
            await cluster.ask("cleo", "send anna,ben,dora")
            states = await cluster.quiet()
            assert states[2]["got"] == 1
            for k in (0, 1, 3):
                assert states[k]["peak"] < before[k] + 40_000  # kilobytes
            assert all(await cluster.stop())

    asyncio.run(story())
    traces = [str(tmp_path / f"{name}.jsonl") for name in FIVE[:4]]
    report = checked(traces, capsys)
    assert (report["violations"], report["duplicates"]) == (0, 0)
