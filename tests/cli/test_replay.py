"""`causewire replay`: one table for all protocols, from traces and from spans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..trace import shop
from .command_line import CommandLine


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_spans_under_every_protocol_that_can(causewire: CommandLine) -> None:
    Path("spans.json").write_bytes(shop.otlp(shop.in_order()))
    status, out, err = causewire("replay", "spans.json")
    assert (status, err) == (0, "")
    assert out.startswith("6 messages among 4 processes, seed 0\n")
    rows = {line.split()[0] for line in out.splitlines()[4:] if line}
    assert {"csps", "sps", "mf", "ks", "adaptive", "fifo"} <= rows
    assert "cykas-as-printed" not in rows
    assert "delivered" not in out  # everything was
    assert "do not keep causal order: cykas-secret-sends, fifo, unordered" in out
    assert "cannot carry these messages: newtop, pak" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_trace_as_json(causewire: CommandLine) -> None:
    asked = "simulate --protocol fifo --messages 40 --workload relay --trace run.jsonl"
    assert causewire(*asked.split())[0] == 0
    asked = "replay run.jsonl --protocol csps --protocol ks --json --set network.latency=2ms"
    status, out, _ = causewire(*asked.split())
    assert status == 0
    found = json.loads(out)
    assert list(found["protocols"]) == ["csps", "ks"]
    assert found["protocols"]["ks"]["deliveries"] == 40
    assert found["protocols"]["ks"]["latency"]["mean_ns"] >= 2e6


def test_process_by_instance_orders_everything_at_an_instance(causewire: CommandLine) -> None:
    ops = [op for k in (1, 2) for op in shop.in_order(k)]
    Path("spans.json").write_bytes(shop.otlp(ops))
    asked = "replay spans.json --protocol ks --json --process-by instance --run-by all"
    status, out, _ = causewire(*asked.split())
    assert status == 0
    # Four instances, and the receiver of the partition, which hands its messages on.
    assert json.loads(out)["protocols"]["ks"]["processes"] == 5
    assert json.loads(out)["protocols"]["ks"]["deliveries"] == 2 * (4 + 2)  # no replies here


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("none.json", "no such file"),
        ("spans.json --protocol cps", "there is no protocol 'cps'"),
        ("spans.json --protocol bss", "bss only broadcasts"),
        ("spans.json --set network.loss=2", "loss"),
        ("spans.json --run none", "nothing is sent in run 'none'"),
    ],
)
def test_what_cannot_be_replayed(arguments: str, says: str, causewire: CommandLine) -> None:
    Path("spans.json").write_bytes(shop.otlp(shop.in_order()))
    status, out, err = causewire("replay", *arguments.split())
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
