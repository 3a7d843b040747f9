"""What the processes of a cluster answer, however long."""

from __future__ import annotations

import asyncio
from pathlib import Path

from causewire.testing.cluster import Cluster

PROGRAM = """
import json
print(json.dumps({"port": 1}), flush=True)
input()
print(json.dumps({"counts": list(range(50_000))}), flush=True)
"""


def test_an_answer_of_many_numbers(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    async def ask() -> None:
        async with Cluster(["ann"], program) as cluster:
            assert len((await cluster.ask("ann", "counts"))["counts"]) == 50_000

    asyncio.run(ask())
