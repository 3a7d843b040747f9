"""Programs whose messages depend on each other: relays, crossings, late third parties.

The errors of a protocol that lists dependencies lie deep: four processes, six messages,
each sent because of another. Among all programs of that size such chains are rare. Here
programs are made of them:

    relay       a process sends because of a message that it got
    crossing    two processes send to each other at the same time
    late        a message goes to a process to which something in its past is on its
                way, so that it could overtake it
    fresh       a process sends for no reason

`sampled` draws programs at random, `all_relays` lists all programs of a bounded size in
which every message but the first is a relay of an earlier one or late, so that the whole
program is one piece.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from .programs import Program, Send, orbit

__all__ = ["all_relays", "sampled"]


class _Message(NamedTuple):
    origin: int
    to: tuple[int, ...]
    cause: int
    """Index of the message that it is a reaction to; -1 for none."""


def _program(processes: int, messages: list[_Message]) -> Program:
    """Return the program of a list of messages in an order that respects their causes."""
    parts: list[list[Send]] = [[] for _ in range(processes)]
    numbers: list[tuple[int, int]] = []
    for message in messages:
        needs = () if message.cause < 0 else (numbers[message.cause],)
        parts[message.origin].append(Send(message.to, 0, needs))
        numbers.append((message.origin, len(parts[message.origin])))
    return tuple(map(tuple, parts))


def _past(messages: list[_Message], origin: int, cause: int) -> set[int]:
    """Return the indexes of messages that happen before a send of `origin` because of `cause`."""
    past: set[int] = set()
    todo = [k for k, each in enumerate(messages) if each.origin == origin]
    todo += [cause] if cause >= 0 else []
    while todo:
        k = todo.pop()
        if k not in past:
            past.add(k)
            before = [j for j in range(k) if messages[j].origin == messages[k].origin]
            todo += before + ([messages[k].cause] if messages[k].cause >= 0 else [])
    return past


def sampled(
    processes: int, messages: int, count: int, seed: int = 0, *, multicast: bool = False
) -> Iterator[Program]:
    """Yield random programs, none of which is a renaming of another.

    Args:
        processes: How many processes there are.
        messages: How many messages are sent in all.
        count: How many programs to yield at most.
        seed: What the choices depend on.
        multicast: Whether messages may go to several processes.
    """
    chance = random.Random(seed)
    seen: set[Program] = set()
    everybody = range(processes)
    for _ in range(100 * count):
        if count <= 0:
            return
        made: list[_Message] = []
        while len(made) < messages:
            _add(made, processes, chance, multicast=multicast)
        program = _program(processes, made[:messages])
        if program not in seen and all(program[i] or _gets(program, i) for i in everybody):
            seen |= orbit(program)
            count -= 1
            yield program


def _gets(program: Program, i: int) -> bool:
    return any(i in send.to for sends in program for send in sends)


def _add(made: list[_Message], processes: int, chance: random.Random, *, multicast: bool) -> None:
    """Append one message, or two that cross."""
    kind = chance.choice(("relay", "relay", "relay", "crossing", "late", "fresh"))
    origin, cause = chance.randrange(processes), -1
    if made and kind in ("relay", "late"):
        cause = chance.randrange(len(made))
        origin = chance.choice(made[cause].to)
    others = [j for j in range(processes) if j != origin]
    to = [chance.choice(others)]
    if kind in ("relay", "late") and cause >= 0:
        past = _past(made, origin, cause)
        overtaken = {j for k in past for j in made[k].to} - {origin}
        if overtaken and (kind == "late" or chance.random() < 0.5):
            to = [chance.choice(sorted(overtaken))]
    if multicast and chance.random() < 0.25:
        to = sorted(chance.sample(others, chance.randint(1, len(others))))
    made.append(_Message(origin, tuple(to), cause))
    if kind == "crossing" and len(to) == 1:
        made.append(_Message(to[0], (origin,), -1))


def all_relays(processes: int, messages: int) -> Iterator[Program]:
    """Yield all programs of unicasts in which each message after the first is connected.

    A message is connected if it is a relay of an earlier one, or its sender sent before.
    None is a renaming of another.
    """
    seen: set[Program] = set()
    yield from _extended([_Message(0, (1,), -1)], processes, messages, seen)


def _extended(
    made: list[_Message], processes: int, messages: int, seen: set[Program]
) -> Iterator[Program]:
    if len(made) == messages:
        program = _program(processes, made)
        if program not in seen:
            seen |= orbit(program)
            yield program
        return
    choices = [(j, k) for k, each in enumerate(made) for j in each.to]
    choices += [(origin, -1) for origin in {each.origin for each in made}]
    for origin, cause in choices:
        for to in range(processes):
            if to != origin:
                message = _Message(origin, (to,), cause)
                yield from _extended([*made, message], processes, messages, seen)
