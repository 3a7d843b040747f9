"""Crashes at random: processes with a store are killed again and again, and come back.

    python -m campaigns.crashes --runs 2000
    python -m campaigns.crashes --mutants

Each run is a small system in virtual time (`crash_world`), with lost and
duplicated datagrams, and with one to three processes that have a store and crash at random
writes, at each of the boundaries of `causewire.testing.disk`. A seed repeats its run.

`--mutants` runs variants of the store that are known to be wrong; each must be caught.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch
from zlib import crc32

from campaigns.crash_world import Outcome, crash_run, random_crashes
from causewire.node import gate
from causewire.transport import frames, heads, inbox, journal, memory, outbound

KEY = bytes(range(32))


def one(seed: int) -> tuple[dict[str, Any], Outcome]:
    """Return the options of a run, and what it has shown."""
    random = Random(seed)
    processes = random.choice((2, 3, 3, 4))
    durable = "".join(random.sample("abcd"[:processes], random.randint(1, min(3, processes))))
    options: dict[str, Any] = {
        "protocol": random.choice(("csps", "csps", "sps")),
        "key": KEY if random.random() < 0.15 else None,
        "durable": durable,
        "processes": processes,
        "loss": random.choice((0.0, 0.0, 0.1, 0.3)),
        "messages": random.choice((6, 12)),
        "pause": random.choice((0.002, 0.02)),
        "explicit": random.random() < 0.4,
    }
    often = random.choice((200, 2000, 1 << 23))
    with patch.object(journal, "SNAPSHOT_AFTER", often):
        return options, crash_run(seed, random_crashes(seed, durable, 4, 40), **options)


# -- known to be wrong ----------------------------------------------------------------


@contextmanager
def datagrams_before_commit() -> Iterator[None]:
    """Datagrams leave when their turn ends."""
    turn = gate.Gate.turn

    def early(self: gate.Gate, datagrams: list[gate.Datagram]) -> list[gate.Datagram]:
        return turn(self, []) + datagrams

    with patch.object(gate.Gate, "turn", early):
        yield


@contextmanager
def acks_before_commit() -> Iterator[None]:
    """Datagrams without messages leave when their turn ends."""
    turn = gate.Gate.turn

    def messages(data: bytes) -> bool:
        if data[0] != heads.SESSION or crc32(data[:-4]).to_bytes(4, "big") != data[-4:]:
            return True  # a greeting, or sealed
        contents = frames.read(data[heads.HEAD.size : -4])
        return bool(contents.runs or contents.pieces)

    def early(self: gate.Gate, datagrams: list[gate.Datagram]) -> list[gate.Datagram]:
        held = [each for each in datagrams if messages(each[0])]
        return turn(self, held) + [each for each in datagrams if not messages(each[0])]

    with patch.object(gate.Gate, "turn", early):
        yield


@contextmanager
def delivered_before_commit() -> Iterator[None]:
    """The application gets messages that are not in the store."""
    add = inbox.Inbox.__iadd__

    def early(self: inbox.Inbox, deliveries: Any) -> inbox.Inbox:
        add(self, deliveries)
        self.stored(self.unstored)
        return self

    finish = gate.Gate.finish

    def nothing_left(self: gate.Gate, future: Any) -> list[gate.Datagram]:
        self._count = 0
        return finish(self, future)

    with (
        patch.object(inbox.Inbox, "__iadd__", early),
        patch.object(gate.Gate, "finish", nothing_left),
    ):
        yield


@contextmanager
def missing_permits_forgotten() -> Iterator[None]:
    """A process that comes back does not know which permits it lacks."""
    restore = memory.Memory.restore

    def without(self: memory.Memory, *args: Any) -> None:
        missing = self.endpoint._missing  # type: ignore[attr-defined]
        missing.at.clear()
        missing.slide(missing.next)
        restore(self, *args)

    with patch.object(memory.Memory, "restore", without):
        yield


@contextmanager
def watermarks_not_repeated() -> Iterator[None]:
    """A process does not send again what its peer may have lost."""
    with patch.object(outbound.Outbound, "resume", lambda self: None):
        yield


@contextmanager
def handled_forgotten() -> Iterator[None]:
    """What was handled is not recorded."""
    with patch.object(memory.Memory, "_drop_handled", lambda self: None):
        yield


@contextmanager
def commits_that_are_none() -> Iterator[None]:
    """The store says that a write is done when it has only begun."""
    from causewire.testing.disk import Disk

    apply = Disk.apply
    late: dict[Disk, list[tuple[bool, bytes]]] = {}

    def lazily(self: Disk, replace: bool, data: bytes) -> None:
        waiting = late.setdefault(self, [])
        if waiting:
            apply(self, *waiting.pop())
        waiting.append((replace, data))

    with patch.object(Disk, "apply", lazily):
        yield


MUTANTS: tuple[Callable[[], Any], ...] = (
    datagrams_before_commit,
    acks_before_commit,
    delivered_before_commit,
    missing_permits_forgotten,
    watermarks_not_repeated,
    handled_forgotten,
    commits_that_are_none,
)


def caught_after(mutant: Callable[[], Any], most: int) -> tuple[int, str]:
    """Return after how many runs a mutant was caught, and by what; 0 if it was not."""
    with mutant():
        for seed in range(most):
            try:
                _, outcome = one(seed)
            except Exception as error:
                return seed + 1, f"{type(error).__name__}: {error}"
            if not outcome.ok:
                return seed + 1, outcome.faults[0]
    return 0, ""


def main() -> int:
    """Run the campaign, and return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--mutants", action="store_true", help="check that wrong ones are caught")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if chosen.mutants:
        missed = 0
        for mutant in MUTANTS:
            runs, why = caught_after(mutant, chosen.runs)
            missed += not runs
            print(f"{mutant.__name__}: {f'caught after {runs} runs: {why}' if runs else 'MISSED'}")
        return 1 if missed else 0
    seen: Counter[str] = Counter()
    bad = 0
    for seed in range(chosen.first, chosen.first + chosen.runs):
        options, outcome = one(seed)
        seen += outcome.seen
        if not outcome.ok:
            bad += 1
            print(f"seed {seed}: {options}")
            print("\n".join(f"    {fault}" for fault in outcome.faults[:5]))
    print(f"{chosen.runs} runs, {bad} of them wrong")
    print(", ".join(f"{what}: {count:,}" for what, count in sorted(seen.items())))
    return 1 if bad or not all(seen[k] for k in ("crashes", "redelivered", "handled")) else 0


if __name__ == "__main__":
    sys.exit(main())
