"""Small random runs, good ones and spoilt ones, for the check and brute force."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from causewire.trace import Event


@dataclass
class Planted:
    """A violation that was put into a run on purpose."""

    run: str
    process: str
    first: tuple[str, int]
    second: tuple[str, int]


def random_run(
    rng: random.Random, run: str, *, causal: bool, steps: int | None = None
) -> list[Event]:
    """One run in the order in which it happened, with Lamport times.

    A causal run delivers in causal order; the other delivers what it likes.
    Multicast, copies to oneself and rows of other kinds occur; some messages
    may stay undelivered at the end.
    """
    names = [f"p{k}" for k in range(rng.randint(1, 5))]
    steps = rng.randint(1, 40) if steps is None else steps
    fan_out = rng.choice([1, 1, 2, len(names)])
    eager = rng.random()  # how readily messages are delivered
    gap = rng.choice([1, 1, 3])
    seq = dict.fromkeys(names, 0)
    clock = dict.fromkeys(names, 0)
    sent = dict.fromkeys(names, 0)
    past: dict[str, set[Any]] = {name: set() for name in names}  # messages sent before now
    needs: dict[tuple[str, int], set[Any]] = {}  # message -> messages before it
    to: dict[tuple[str, int], set[Any]] = {}
    sent_at: dict[tuple[str, int], int] = {}
    pending: list[tuple[tuple[str, int], str]] = []
    got: dict[str, set[Any]] = {name: set() for name in names}
    events: list[Any] = []

    def add(
        p: str, kind: str, origin: Any = None, mid: Any = None, peers: Any = (), after: int = 0
    ) -> None:
        clock[p] = max(clock[p], after) + 1
        events.append(Event(run, p, seq[p], len(events), clock[p], kind, origin, mid, tuple(peers)))
        seq[p] += rng.randint(1, gap)

    def ready(copy: Any) -> bool:
        message, d = copy
        return all(m in got[d] for m in needs[message] if d in to[m])

    for _ in range(steps):
        if rng.random() < 0.1:
            add(rng.choice(names), "job_start")
        choices = [copy for copy in pending if not causal or ready(copy)]
        if choices and rng.random() < eager:
            message, d = copy = rng.choice(choices)
            pending.remove(copy)
            if rng.random() < 0.2:
                add(d, "receive", *message, [message[0]])
            add(d, "deliver", *message, [message[0]], after=sent_at[message])
            got[d].add(message)
            past[d] |= needs[message] | {message}
        else:
            p = rng.choice(names)
            sent[p] += rng.randint(1, gap)
            message = p, sent[p]
            peers = rng.sample(names, rng.randint(1, min(fan_out, len(names))))
            add(p, "send", *message, peers)
            sent_at[message] = clock[p]
            needs[message] = set(past[p])
            to[message] = set(peers)
            past[p].add(message)
            pending += [(message, d) for d in peers]
    if rng.random() < 0.7:
        while pending:
            choices = [copy for copy in pending if not causal or ready(copy)]
            message, d = copy = rng.choice(choices)
            pending.remove(copy)
            add(d, "deliver", *message, [message[0]], after=sent_at[message])
            got[d].add(message)
            past[d] |= needs[message] | {message}
    return events


def plant(rng: random.Random, events: list[Event]) -> Planted | None:
    """Spoil a causal run in place: deliver something too late, or not at all."""
    deliveries = [k for k, e in enumerate(events) if e.kind == "deliver"]
    rng.shuffle(deliveries)
    for k in deliveries:
        a = events[k]
        # Without this delivery, what still depends on the message?
        past = _pasts(events[:k] + events[k + 1 :])
        later = [
            j
            for j in range(k + 1, len(events))
            if events[j].kind == "deliver"
            and events[j].process == a.process
            and (a.origin, a.mid) in past[events[j].origin, events[j].mid]
        ]
        if later:
            j = rng.choice(later)
            b = events[j]
            if rng.random() < 0.3:
                del events[k]
            else:
                events.insert(j, events.pop(k))
                _restamp(events)
            return Planted(a.run, a.process, named(a), named(b))
    return None


def named(event: Event) -> tuple[str, int]:
    """The message that the row is about."""
    assert event.origin is not None
    assert event.mid is not None
    return event.origin, event.mid


def spoil(rng: random.Random, events: list[Event]) -> None:
    """Drop, swap, duplicate, delay or falsify some rows of a run in place."""
    for _ in range(rng.randint(1, 3)):
        if len(events) < 2:
            return
        k = rng.randrange(len(events))
        e = events[k]
        what = rng.choice(["drop", "swap", "duplicate", "delay", "falsify"])
        if what == "drop":
            del events[k]
        elif what in ("swap", "delay"):
            mine = [i for i in range(k, len(events)) if events[i].process == e.process]
            _rotate(events, mine[: 2 if what == "swap" else rng.randint(1, len(mine))])
        elif what == "duplicate":
            mine = [i for i in range(k, len(events)) if events[i].process == e.process]
            last = events[mine[-1]]
            assert last.lamport is not None
            events.append(e._replace(seq=last.seq + 1, lamport=last.lamport + 1))
        elif e.origin is not None and e.mid is not None:
            names = sorted({event.process for event in events} | {"stranger"})
            change = rng.choice(["origin", "mid", "peers", "kind"])
            if change == "origin":
                events[k] = e._replace(origin=rng.choice(names))
            elif change == "mid":
                events[k] = e._replace(mid=rng.randint(0, e.mid + 1))
            elif change == "peers":
                events[k] = e._replace(peers=tuple(rng.choices(names, k=rng.randint(0, 3))))
            else:
                events[k] = e._replace(kind=rng.choice(["send", "deliver", "receive"]))


def _rotate(events: list[Event], places: list[int]) -> None:
    """Let the first of a process's rows happen last; places and times stay."""
    rows = [events[i] for i in places]
    for i, row in zip(places, rows[1:] + rows[:1], strict=True):
        at = events[i]
        events[i] = row._replace(seq=at.seq, lamport=at.lamport, time_ns=at.time_ns)


def _restamp(events: list[Event]) -> None:
    """Give rows that were moved, but are in order, the times that belong there."""
    free: dict[str, list[int]] = {}
    for e in events:
        free.setdefault(e.process, []).append(e.seq)
    for seqs in free.values():
        seqs.sort(reverse=True)
    clock: dict[str, int] = {}
    sent: dict[Any, Any] = {}
    for k, e in enumerate(events):
        after = sent[e.origin, e.mid] if e.kind == "deliver" else 0
        clock[e.process] = max(clock.get(e.process, 0), after) + 1
        if e.kind == "send":
            sent[e.origin, e.mid] = clock[e.process]
        events[k] = e._replace(seq=free[e.process].pop(), lamport=clock[e.process], time_ns=k)


def _pasts(events: list[Event]) -> dict[Any, Any]:
    """For each message, all that happened before it (rows are in order)."""
    known: dict[str, set[Any]] = {}
    past: dict[Any, Any] = {}
    for e in events:
        mine = known.setdefault(e.process, set())
        if e.kind == "send":
            past[e.origin, e.mid] = set(mine)
            mine.add((e.origin, e.mid))
        elif e.kind == "deliver":
            mine |= past[e.origin, e.mid] | {(e.origin, e.mid)}
    return past
