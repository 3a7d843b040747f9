"""Programs: what each process sends, to whom, and when at the earliest.

The client of a process makes its sends in order, each at any moment: the search tries
every moment, including those inside deliveries. A send can be made to wait until a
number of messages have been delivered to its process (`after`), which is what "receive;
send z" means in the programs of Mattern and Fünfrocken, or until certain messages have
been (`needs`).

To check "three processes, three messages each" is to check all programs of that size.
A protocol does not know one process from another except by name, so one program stands
for all that are renamings of it: of the 512 programs of three times three unicasts, 88
are left.

In writing: `0>1,2; 1>0+2; 2>@1 0` is process 0 sending to 1 and then to 2, process 1 a
multicast to both others, and process 2 sending to 0 once a message has been delivered to
it. `2>@0:2 0` waits for the second message of process 0, and `@0:2&1:1` for two messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple, TypeAlias

from ..core.errors import CausewireError

__all__ = [
    "PROGRAMS",
    "Program",
    "ProgramError",
    "Send",
    "Sends",
    "broadcasts",
    "expected",
    "multicasts",
    "orbit",
    "parse",
    "unicasts",
    "up_to_renaming",
    "written",
]


class ProgramError(CausewireError, ValueError):
    """A program cannot be read, or is inconsistent."""


class Send(NamedTuple):
    """One causal send: destinations, and the deliveries that must come before."""

    to: tuple[int, ...]
    after: int = 0
    """How many messages must have been delivered to the sender."""
    needs: tuple[tuple[int, int], ...] = ()
    """Messages, by sender and number, that must have been delivered to the sender."""

    def ready(self, got: Sequence[int]) -> bool:
        """Return whether it may happen, given the messages of each process got, as bits."""
        if self.after and self.after > sum(bits.bit_count() for bits in got):
            return False
        return all(got[sender] >> mid & 1 for sender, mid in self.needs)


Sends: TypeAlias = tuple[Send, ...]
"""What one process sends, in order."""

Program: TypeAlias = tuple[Sends, ...]
"""What each process sends."""


def _counts(processes: int, messages: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(messages, int):
        return (messages,) * processes
    if len(messages) != processes:
        raise ProgramError(f"{len(messages)} numbers of messages for {processes} processes")
    return tuple(messages)


def _all(choices: Iterable[Iterable[tuple[int, ...]]], counts: Sequence[int]) -> Iterator[Program]:
    """Every assignment of destinations, given what each process may choose from."""
    parts = [
        [tuple(map(Send, sends)) for sends in product(list(choice), repeat=count)]
        for choice, count in zip(choices, counts, strict=True)
    ]
    yield from product(*parts)


def unicasts(processes: int, messages: int | Sequence[int]) -> Iterator[Program]:
    """All programs of messages to one other process each.

    `messages` is the number for each process, or one number for all.
    """
    everybody = range(processes)
    choices = [[(j,) for j in everybody if j != i] for i in everybody]
    return _all(choices, _counts(processes, messages))


def multicasts(processes: int, messages: int | Sequence[int]) -> Iterator[Program]:
    """All programs of messages to one or more other processes each."""
    everybody = range(processes)
    choices = []
    for i in everybody:
        others = [j for j in everybody if j != i]
        choices.append([to for size in everybody for to in combinations(others, size) if to])
    for i, choice in enumerate(choices):
        choice.append(tuple(j for j in everybody if j != i))
    choices = [list(dict.fromkeys(choice)) for choice in choices]
    return _all(choices, _counts(processes, messages))


def broadcasts(processes: int, messages: int | Sequence[int]) -> Iterator[Program]:
    """The one program in which every message goes to all other processes."""
    everybody = range(processes)
    choices = [[tuple(j for j in everybody if j != i)] for i in everybody]
    return _all(choices, _counts(processes, messages))


def _renamed(program: Program, names: Sequence[int]) -> Program:
    parts: list[Sends] = [()] * len(program)
    for i, sends in enumerate(program):
        parts[names[i]] = tuple(
            Send(
                tuple(sorted(names[j] for j in send.to)),
                send.after,
                tuple(sorted((names[j], mid) for j, mid in send.needs)),
            )
            for send in sends
        )
    return tuple(parts)


def orbit(program: Program) -> set[Program]:
    """The programs that are this one with its processes renamed."""
    return {_renamed(program, names) for names in permutations(range(len(program)))}


def up_to_renaming(programs: Iterable[Program]) -> Iterator[Program]:
    """One program of each class, the one that comes first."""
    seen: set[Program] = set()
    for program in programs:
        if program not in seen:
            seen |= orbit(program)
            yield program


def expected(program: Program) -> list[list[int]]:
    """Return, for each process and each sender, the messages that it is to get, as bits."""
    everybody = range(len(program))
    return [
        [sum(1 << mid for mid, send in enumerate(sends, 1) if j in send.to) for sends in program]
        for j in everybody
    ]


def written(program: Program) -> str:
    """A program in writing; `parse` reads it."""
    parts = []
    for i, sends in enumerate(program):
        words = [_condition(send) + "+".join(map(str, send.to)) for send in sends]
        parts.append(f"{i}>{','.join(words)}")
    return "; ".join(parts)


def _condition(send: Send) -> str:
    words = [str(send.after)] if send.after else []
    words += [f"{sender}:{mid}" for sender, mid in send.needs]
    return f"@{'&'.join(words)} " if words else ""


def parse(text: str) -> Program:
    """The program that `text` describes, or the one of that name in `PROGRAMS`."""
    return PROGRAMS.get(text) or _read(text)


def _read(text: str) -> Program:
    pieces = [piece.strip() for piece in text.split(";") if piece.strip()]
    parts: list[Sends] = []
    for i, piece in enumerate(pieces):
        name, arrow, words = piece.partition(">")
        if not arrow or name.strip() != str(i):
            raise ProgramError(f"part {i} of a program must start with '{i}>', not {piece!r}")
        parts.append(tuple(_send(word.strip()) for word in words.split(",") if word.strip()))
    for i, sends in enumerate(parts):
        for send in sends:
            if not all(0 <= j < len(parts) for j in send.to):
                raise ProgramError(f"process {i} sends to {list(send.to)}, and not all are there")
            for j, mid in send.needs:
                sent = 0 <= j < len(parts) and 0 < mid <= len(parts[j])
                if not sent or i not in parts[j][mid - 1].to:
                    raise ProgramError(f"process {i} waits for {j}:{mid}, which it never gets")
    if not parts:
        raise ProgramError("a program needs at least one process")
    return tuple(parts)


def _send(word: str) -> Send:
    after = 0
    needs = set()
    try:
        if word.startswith("@"):
            condition, _, word = word[1:].partition(" ")
            for each in condition.split("&"):
                sender, colon, mid = each.partition(":")
                if colon:
                    needs.add((int(sender), int(mid)))
                else:
                    after = int(each)
        to = sorted({int(name) for name in word.split("+")})
    except ValueError:
        raise ProgramError(f"{word!r} is no send: destinations joined by '+'") from None
    return Send(tuple(to), after, tuple(sorted(needs)))


PROGRAMS: dict[str, Program] = {
    "mf-first": _read("0>2,1; 1>@1 2; 2>"),
    "mf-second": _read("0>1,2; 1>2,0; 2>0,1"),
    "mf-third": _read("0>1; 1>; 2>1"),
}
"""The three-process programs of Mattern and Fünfrocken, section 4, by name.

P1, P2 and P3 are 0, 1 and 2. The first has x, y and z, with z sent after the
receipt of y; the second the six messages of the crowns of Figs. 7 and 8; in the
third two processes send to one. (Which of its messages a process chooses to look
at first, "receive from P1", is its own affair, and nothing that a protocol sees.)
"""
