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
from causewire.core import saved
from causewire.core.adaptive import Adaptive
from causewire.core.adaptive_lanes import LaneEndpoint
from causewire.node import gate
from causewire.transport import (
    frames,
    greeter,
    heads,
    inbox,
    journal,
    listed_journal,
    listing,
    lists,
    memory,
    outbound,
    resumption,
    varint,
)

KEY = bytes(range(32))


def one(seed: int, protocol: str = "") -> tuple[dict[str, Any], Outcome]:
    """Return the options of a run, of any protocol or of this one, and what it has shown."""
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
    if protocol or random.random() < 0.4:
        options["protocol"] = protocol or "adaptive"
    if options["protocol"] == "adaptive":
        options["options"] = random.choice(({}, {"cap": 0}, {"cap": 1}, {"cap": 2, "groups": 1}))
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
        missing = getattr(self.endpoint, "_missing", None)
        if missing is not None:
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


@contextmanager
def control_not_repeated() -> Iterator[None]:
    """News and parts that were on their way are lost, so lists stay, and messages wait."""
    with patch.object(Adaptive, "repeat_control", lambda self, names: None):
        yield


@contextmanager
def news_not_repeated() -> Iterator[None]:
    """News that was on its way is lost, so lists stay; messages do not wait for that."""
    repeat = LaneEndpoint._repeat

    def parts(self: LaneEndpoint, peer: Any) -> None:
        unseen, peer.unseen = peer.unseen, ()
        repeat(self, peer)
        peer.unseen = unseen

    with patch.object(LaneEndpoint, "_repeat", parts):
        yield


@contextmanager
def stream_not_begun_anew() -> Iterator[None]:
    """A process that was there all the time goes on with the stream of control packets."""
    resume = resumption.resume

    def going_on(peers: Any, session: Any, *args: Any) -> bool:
        stream = session.stream
        done = resume(peers, session, *args)
        session.stream = stream
        return done

    with patch.object(greeter, "resume", going_on):
        yield


@contextmanager
def tables_begun_anew() -> Iterator[None]:
    """A process that comes back writes lists with new tables, which its peers do not have."""
    restarted = listing.Listing.restarted

    def without(self: listing.Listing, *args: Any) -> None:
        restarted(self, *args)
        for channel in self._channels.values():
            channel.messages_out = lists.ListWriter(self._identities.process)

    with patch.object(listing.Listing, "restarted", without):
        yield


@contextmanager
def lists_made_anew() -> Iterator[None]:
    """A process that comes back writes the lists of messages in flight once more."""
    in_flight = listing.Listing.in_flight

    def written(self: listing.Listing, name: str) -> Any:
        channel = self._channels.get(name)
        if channel is not None:
            again = []
            for run in saved.unacknowledged(self.endpoint, name):
                for mid, payload in zip(run.mids, run.payloads, strict=True):
                    if run.per:
                        entry = channel.messages_out.write(payload[1], payload[2])
                        again.append((mid, varint.put(len(entry)) + entry))
            channel.listed.clear()
            channel.listed.extend(again)
        return in_flight(self, name)

    with patch.object(listing.Listing, "in_flight", written):
        yield


@contextmanager
def ends_of_bursts_not_recorded() -> Iterator[None]:
    """Only what left is recorded, so that lists are made at another time at replay."""
    take = listed_journal.ListedJournal.take_runs

    def untold(self: listed_journal.ListedJournal) -> Any:
        before = len(self._records)
        runs = take(self)
        if not runs:
            del self._records[before:]
        return runs

    with patch.object(listed_journal.ListedJournal, "take_runs", untold):
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

MUTANTS_OF_ADAPTIVE: tuple[Callable[[], Any], ...] = (
    *[mutant for mutant in MUTANTS if mutant is not missing_permits_forgotten],
    control_not_repeated,
    news_not_repeated,
    stream_not_begun_anew,
    tables_begun_anew,
    lists_made_anew,
    ends_of_bursts_not_recorded,
)


def caught_after(mutant: Callable[[], Any], most: int, protocol: str = "") -> tuple[int, str]:
    """Return after how many runs a mutant was caught, and by what; 0 if it was not."""
    with mutant():
        for seed in range(most):
            try:
                _, outcome = one(seed, protocol)
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
    parser.add_argument("--protocol", default="", help="only this one")
    parser.add_argument("--mutants", action="store_true", help="check that wrong ones are caught")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if chosen.mutants:
        missed = 0
        for protocol, mutants in (("csps", MUTANTS), ("adaptive", MUTANTS_OF_ADAPTIVE)):
            for mutant in mutants if chosen.protocol in ("", protocol) else ():
                runs, why = caught_after(mutant, chosen.runs, protocol)
                missed += not runs
                found = f"caught after {runs} runs: {why}" if runs else "MISSED"
                print(f"{protocol}, {mutant.__name__}: {found}")
        return 1 if missed else 0
    seen: Counter[str] = Counter()
    bad = 0
    for seed in range(chosen.first, chosen.first + chosen.runs):
        options, outcome = one(seed, chosen.protocol)
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
