"""Real processes whose protocol knows its members, killed with SIGKILL and started again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from causewire.cli import main

from .cluster import Cluster

NAMES = ["anna", "ben", "cleo"]
BAD = {"seed": 3, "loss": 0.05, "duplicate": 0.05, "delay": (0.0005, 0.02)}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["ks", "bss"])
def test_a_member_is_killed_and_comes_back_in_the_middle_of_traffic(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> None:
        async with Cluster(NAMES, tmp_path, BAD, protocol=protocol, give_up_after=5.0) as cluster:
            for name in NAMES:
                cluster.tell(name, "talk 60 0.02")
            await cluster.until("anna", "state", "'got': ")
            await asyncio.sleep(0.5)
            cluster.processes["cleo"].kill()
            await cluster.processes["cleo"].wait()
            await cluster.start("cleo")
            cluster.tell("cleo", "talk 20 0.02")
            for name in ("anna", "ben"):
                await cluster.until(name, "state", "PeerRestarted")
            states = await cluster.quiet()
            assert states[2]["got"] > 0
            assert await cluster.close()

    asyncio.run(story())
    capsys.readouterr()
    main(["check", *[str(tmp_path / f"{name}.jsonl") for name in NAMES], "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["messages"] > 100
    assert (report["violations"], report["duplicates"], report["undelivered"]) == (0, 0, 0), report
