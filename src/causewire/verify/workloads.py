"""What the clients do: who sends how many messages, to whom, and when at earliest.

A program is the list of sends of one process. The client makes them in order, at
any moment it likes: the search tries every moment, those inside deliveries
included. A send may be held back until so many messages have been delivered to
its process (`after`), which is what "receive; send z" means in the programs of
Mattern and Fünfrocken.

A workload is one program for each process. To check "three processes, three
messages each" is to check all of their workloads; and since a protocol does not
know one process from another but by name, workloads that differ by a renaming
are one: of the 512 for three times three unicasts, 88 are left.

In writing: `0>1,2; 1>0+2; 2>@1 0` is process 0 sending to 1 and then to 2,
process 1 a multicast to both others, and process 2 sending to 0 once it has got
a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple, TypeAlias

from ..core.errors import CausewireError

__all__ = [
    "PROGRAMS",
    "Program",
    "Send",
    "Workload",
    "WorkloadError",
    "broadcasts",
    "expected",
    "multicasts",
    "orbit",
    "parse",
    "unicasts",
    "up_to_renaming",
    "written",
]


class WorkloadError(CausewireError, ValueError):
    """A workload that cannot be read, or makes no sense."""


class Send(NamedTuple):
    """One causal send: destinations, and the deliveries that must come before."""

    to: tuple[int, ...]
    after: int = 0


Program: TypeAlias = tuple[Send, ...]
Workload: TypeAlias = tuple[Program, ...]


def _counts(processes: int, messages: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(messages, int):
        return (messages,) * processes
    if len(messages) != processes:
        raise WorkloadError(f"{len(messages)} numbers of messages for {processes} processes")
    return tuple(messages)


def _all(choices: Iterable[Iterable[tuple[int, ...]]], counts: Sequence[int]) -> Iterator[Workload]:
    """Every assignment of destinations, given what each process may choose from."""
    programs = [
        [tuple(map(Send, program)) for program in product(list(choice), repeat=count)]
        for choice, count in zip(choices, counts, strict=True)
    ]
    yield from product(*programs)


def unicasts(processes: int, messages: int | Sequence[int]) -> Iterator[Workload]:
    """All workloads of messages to one other process each.

    `messages` is the number for each process, or one number for all.
    """
    everybody = range(processes)
    choices = [[(j,) for j in everybody if j != i] for i in everybody]
    return _all(choices, _counts(processes, messages))


def multicasts(processes: int, messages: int | Sequence[int]) -> Iterator[Workload]:
    """All workloads of messages to one or more other processes each."""
    everybody = range(processes)
    choices = []
    for i in everybody:
        others = [j for j in everybody if j != i]
        choices.append([to for size in everybody for to in combinations(others, size) if to])
    for i, choice in enumerate(choices):
        choice.append(tuple(j for j in everybody if j != i))
    choices = [list(dict.fromkeys(choice)) for choice in choices]
    return _all(choices, _counts(processes, messages))


def broadcasts(processes: int, messages: int | Sequence[int]) -> Iterator[Workload]:
    """The one workload in which every message goes to all other processes."""
    everybody = range(processes)
    choices = [[tuple(j for j in everybody if j != i)] for i in everybody]
    return _all(choices, _counts(processes, messages))


def _renamed(workload: Workload, names: Sequence[int]) -> Workload:
    programs: list[Program] = [()] * len(workload)
    for i, program in enumerate(workload):
        programs[names[i]] = tuple(
            Send(tuple(sorted(names[j] for j in send.to)), send.after) for send in program
        )
    return tuple(programs)


def orbit(workload: Workload) -> set[Workload]:
    """The workloads that are this one with its processes renamed."""
    return {_renamed(workload, names) for names in permutations(range(len(workload)))}


def up_to_renaming(workloads: Iterable[Workload]) -> Iterator[Workload]:
    """One workload of each class, the one that comes first."""
    seen: set[Workload] = set()
    for workload in workloads:
        if workload not in seen:
            seen |= orbit(workload)
            yield workload


def expected(workload: Workload) -> tuple[int, ...]:
    """How many messages each process is to deliver."""
    counts = [0] * len(workload)
    for program in workload:
        for send in program:
            for j in send.to:
                counts[j] += 1
    return tuple(counts)


def written(workload: Workload) -> str:
    """A workload in writing; `parse` reads it."""
    parts = []
    for i, program in enumerate(workload):
        sends = [
            (f"@{send.after} " if send.after else "") + "+".join(map(str, send.to))
            for send in program
        ]
        parts.append(f"{i}>{','.join(sends)}")
    return "; ".join(parts)


def parse(text: str) -> Workload:
    """The workload that `text` describes, or the one of that name in `PROGRAMS`."""
    return PROGRAMS.get(text) or _read(text)


def _read(text: str) -> Workload:
    parts = [part.strip() for part in text.split(";") if part.strip()]
    programs: list[Program] = []
    for i, part in enumerate(parts):
        name, arrow, sends = part.partition(">")
        if not arrow or name.strip() != str(i):
            raise WorkloadError(f"part {i} of a workload must start with '{i}>', not {part!r}")
        programs.append(tuple(_send(word.strip()) for word in sends.split(",") if word.strip()))
    for i, program in enumerate(programs):
        for send in program:
            if not all(0 <= j < len(programs) for j in send.to):
                raise WorkloadError(f"process {i} sends to {list(send.to)}, and not all are there")
    if not programs:
        raise WorkloadError("a workload needs at least one process")
    return tuple(programs)


def _send(word: str) -> Send:
    after = 0
    try:
        if word.startswith("@"):
            number, _, word = word[1:].partition(" ")
            after = int(number)
        to = sorted({int(name) for name in word.split("+")})
    except ValueError:
        raise WorkloadError(f"{word!r} is no send: destinations joined by '+'") from None
    return Send(tuple(to), after)


PROGRAMS: dict[str, Workload] = {
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
