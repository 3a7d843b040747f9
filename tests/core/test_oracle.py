"""The oracle is judged by the definition of causal order itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

import causewire.testing.network
import causewire.testing.oracle
from causewire.testing import Oracle
from causewire.testing.oracle import SentMessage


def any_history(rng: Random) -> Oracle:
    """Sends and deliveries in any order at all, as no protocol would have them."""
    oracle = Oracle()
    processes = [f"p{k}" for k in range(rng.randint(2, 6))]
    sent: list[SentMessage] = []
    for _ in range(rng.randint(2, 30)):
        process = rng.choice(processes)
        mine = [m for m in sent if process in m.to]
        if not mine or rng.random() < 0.4:
            to = rng.sample(processes, rng.choice([1, 1, 2, len(processes)]))
            mid = 1 + sum(m.origin == process for m in sent)
            sent.append(oracle.sent(process, mid, to))
        else:
            message = rng.choice(mine)
            oracle.delivered(process, message.origin, message.mid)
    return oracle


Pairs = set[tuple[SentMessage, SentMessage]]


def by_rule(oracle: Oracle) -> Pairs:
    """What happened before what by one of the two rules of the definition (Almeida, 4.1)."""
    history = oracle.history
    return {
        (earlier.message, message)
        for k, (process, kind, message) in enumerate(history)
        if kind == "send"
        for earlier in history[:k]
        if earlier.process == process
    }


def then(first: Pairs, second: Pairs) -> Pairs:
    return {(a, d) for a, b in first for c, d in second if b is c}


def happened_before(oracle: Oracle) -> Pairs:
    """The definition to the letter: two rules, and the transitive closure."""
    hb = by_rule(oracle)
    while not (more := then(hb, hb)) <= hb:
        hb |= more
    return hb


def first_deliveries(oracle: Oracle, process: str) -> list[SentMessage]:
    return list(dict.fromkeys(e.message for e in oracle.history if e[:2] == (process, "deliver")))


def test_the_oracle_agrees_with_the_definition() -> None:
    rng = Random(1)
    found = 0
    for _ in range(400):
        oracle = any_history(rng)
        hb = happened_before(oracle)
        expected = set()
        for process in {event.process for event in oracle.history}:
            order = first_deliveries(oracle, process)
            for k, second in enumerate(order):
                for first in oracle.messages.values():
                    if (first, second) in hb and process in first.to and first not in order[:k]:
                        expected.add((process, first, second))
        causal = [v for v in oracle.violations if v.kind == "causal"]
        assert {(v.process, v.earlier, v.message) for v in causal} == expected
        assert len(causal) == len(expected)
        found += len(expected)
        pairs = len(oracle.messages) * (len(oracle.messages) - 1) // 2
        assert oracle.concurrent() == pairs - len(hb)
    assert found > 100


def test_chains_are_true_and_shortest() -> None:
    rng = Random(2)
    lengths = set()
    for _ in range(150):
        oracle = any_history(rng)
        step = by_rule(oracle)
        reached: Pairs = set()
        pairs = step
        length = 2
        while pairs - reached:
            for first, second in pairs - reached:
                chain = oracle.chain(first, second)
                assert len(chain) == length
                assert (chain[0], chain[-1]) == (first, second)
                assert step.issuperset(pairwise(chain))
                lengths.add(length)
            reached |= pairs
            pairs = then(pairs, step)
            length += 1
        messages = oracle.messages.values()
        assert not any(
            oracle.chain(a, b) for a in messages for b in messages if (a, b) not in reached
        )
    assert {2, 3, 4} <= lengths


def test_the_oracle_sees_every_other_wrong() -> None:
    oracle = Oracle()
    a = oracle.sent("p", 1, ["q", "r"], "hello", "a")
    assert oracle.delivered("q", "p", 1, "hello") is a
    assert oracle.delivered("q", "p", 1, "hello") is None
    assert oracle.delivered("s", "p", 1, "hello") is None
    assert oracle.delivered("q", "p", 2, "hello") is None
    assert oracle.delivered("r", "p", 1, "hullo") is a
    oracle.sent("p", 2, ["q"], None, "b")
    violations = [*oracle.violations, *oracle.undelivered()]
    assert [v.kind for v in violations] == [
        "duplicate",
        "misaddressed",
        "unsent",
        "altered",
        "undelivered",
    ]
    assert [oracle.explain(v) for v in violations] == [
        "q delivered a of p more than once",
        "s delivered a of p, not sent to it",
        "q delivered p#2 of p, which was never sent",
        "r delivered a of p with another payload",
        "q never delivered b of p",
    ]
    assert oracle.deliveries == 2


def test_the_oracle_explains_causality() -> None:
    oracle = Oracle()
    oracle.sent("p", 1, ["r"], name="a")
    oracle.sent("p", 2, ["q"], name="b")
    oracle.delivered("q", "p", 2)
    oracle.sent("q", 1, ["r"], name="c")
    oracle.delivered("r", "q", 1)
    (violation,) = oracle.violations
    assert not violation.fifo
    assert oracle.explain(violation) == (
        "r delivered c before a, which happened before it:\n"
        "    p sent a before it sent b\n"
        "    q delivered b before it sent c"
    )


def test_the_oracle_takes_back_only_the_last_send() -> None:
    oracle = Oracle()
    a = oracle.sent("p", 1, ["q"])
    b = oracle.sent("p", 2, ["q"])
    with pytest.raises(ValueError, match="not the last"):
        oracle.retract(a)
    with pytest.raises(ValueError, match="sent message 1 before"):
        oracle.sent("p", 1, ["q"])
    oracle.retract(b)
    assert list(oracle.messages.values()) == [a]
    assert [v.message for v in oracle.undelivered()] == [a]
    assert oracle.sent("p", 2, ["q"]).past == a.bit


def test_the_oracle_shares_no_code_with_what_it_judges() -> None:
    tree = ast.parse(Path(causewire.testing.oracle.__file__).read_text(encoding="utf-8"))
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= {"__future__", "collections", "collections.abc", "itertools", "typing"}


def test_hypothesis_is_needed_by_the_strategies_alone() -> None:
    check = "import sys, causewire.testing; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
