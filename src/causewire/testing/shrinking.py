"""Makes a small counterexample of a run that fails.

The method is greedy: leave something out, replay, and keep the result if it still fails in
the same way, until nothing can be left out. Every attempt is a replay of a case, so the
result is a case as well, which can be stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .cases import Action, Case, Reaction, process_names
from .play import Outcome, replay

__all__ = ["shrink"]


def shrink(case: Case, kind: str = "") -> Case:
    """Return a smaller case that fails in the same way.

    Args:
        case: A case that fails.
        kind: The kind of failure to keep (`Outcome.kinds`); by default the first.

    Raises:
        ValueError: The case does not fail.
    """
    outcome = replay(case)
    if not outcome.kinds:
        raise ValueError("nothing is wrong with this case")
    kind = kind or outcome.kinds[0]
    case = _as_played(case, outcome)
    attempts = _attempts(case)
    while (attempt := next(attempts, None)) is not None:
        outcome = replay(attempt)
        if kind in outcome.kinds:
            # What the replay had to skip is gone for good. Start over from here.
            case = _as_played(attempt, outcome)
            attempts = _attempts(case)
    return _renamed(case)


def _as_played(case: Case, outcome: Outcome) -> Case:
    """The case with what really happened: its schedule, and the reactions that came."""
    sent = {message.name for message in outcome.play.network.oracle.messages.values()}
    reactions = tuple(reaction for reaction in case.reactions if reaction.name in sent)
    return replace(case, schedule=tuple(outcome.play.schedule), reactions=reactions)


def _attempts(case: Case) -> Iterator[Case]:
    """Cases with less in them, those that leave out most first."""
    schedule = case.schedule
    size = len(schedule)
    width = size
    while width:
        for start in range(size - width, -1, -width):
            yield replace(case, schedule=schedule[:start] + schedule[start + width :])
        width //= 2
    for k in range(len(case.reactions)):
        yield replace(case, reactions=case.reactions[:k] + case.reactions[k + 1 :])
    if case.lazy:
        yield replace(case, lazy=False)
    if not case.inside:
        yield replace(case, inside=True)
    yield from _with_payloads(case)
    yield from _with_plain_sends(case)
    yield from _with_lower_numbers(case)
    yield from _with_fewer_destinations(case)
    yield from _with_fewer_processes(case)
    if size < 50:
        yield from _without_an_exchange(case)


def _with_payloads(case: Case) -> Iterator[Case]:
    """All messages have a payload: no name is in capitals."""
    schedule = tuple(
        (*action[:3], action[3].lower()) if action[0] == "send" else action
        for action in case.schedule
    )
    reactions = tuple(
        reaction._replace(trigger=reaction.trigger.lower(), name=reaction.name.lower())
        for reaction in case.reactions
    )
    if (schedule, reactions) != (case.schedule, case.reactions):
        yield replace(case, schedule=schedule, reactions=reactions)


def _with_plain_sends(case: Case) -> Iterator[Case]:
    """What was sent in reaction to something is sent anyway, at some time."""
    for k, reaction in enumerate(case.reactions):
        others = case.reactions[:k] + case.reactions[k + 1 :]
        send = ("send", reaction.process, reaction.to, reaction.name)
        for at in range(len(case.schedule), -1, -1):
            schedule = (*case.schedule[:at], send, *case.schedule[at:])
            yield replace(case, reactions=others, schedule=schedule)


def _with_lower_numbers(case: Case) -> Iterator[Case]:
    """What arrives is an earlier packet of its link, as some message before is left out."""
    schedule = case.schedule
    for k, action in enumerate(schedule):
        if action[0] == "send":
            for to in action[2]:
                rest = _lowered(schedule[k + 1 :], action[1], to)
                yield replace(case, schedule=schedule[:k] + rest)
        elif action[0] in ("recv", "drop") and action[3]:
            lowered = _lowered(schedule[k:], action[1], action[2])
            yield replace(case, schedule=schedule[:k] + lowered)
            yield replace(case, schedule=schedule[:k] + lowered[:1] + schedule[k + 1 :])


def _without_an_exchange(case: Case) -> Iterator[Case]:
    """Without a message, its arrival, and the arrival of some answer to it.

    Each of the three alone is often needed to make sense of the others, and the
    packets behind them go by other numbers without them.
    """
    schedule = case.schedule
    for i, send in enumerate(schedule):
        if send[0] != "send":
            continue
        for j, recv in enumerate(schedule[i + 1 :], i + 1):
            if recv[0] != "recv" or recv[1] != send[1] or recv[2] not in send[2]:
                continue
            here, there = recv[1], recv[2]
            less = schedule[i + 1 : j] + _lowered(schedule[j + 1 :], here, there)
            yield replace(case, schedule=schedule[:i] + less)
            for k, answer in enumerate(less):
                if answer[:3] == ("recv", there, here):
                    rest = _lowered(less[k + 1 :], there, here)
                    yield replace(case, schedule=schedule[:i] + less[:k] + rest)


def _lowered(actions: tuple[Action, ...], source: str, destination: str) -> tuple[Action, ...]:
    """The same actions, with all packets of a link numbered one lower."""
    return tuple(
        (*action[:3], action[3] - 1)
        if action[1:3] == (source, destination) and action[3]
        else action
        for action in actions
    )


def _with_fewer_destinations(case: Case) -> Iterator[Case]:
    for k, action in enumerate(case.schedule):
        if action[0] == "send" and len(action[2]) > 1:
            for out in action[2]:
                fewer = ("send", action[1], _without(action[2], out), action[3])
                yield replace(case, schedule=(*case.schedule[:k], fewer, *case.schedule[k + 1 :]))
    for k, reaction in enumerate(case.reactions):
        if len(reaction.to) > 1:
            for out in reaction.to:
                less = reaction._replace(to=_without(reaction.to, out))
                yield replace(case, reactions=(*case.reactions[:k], less, *case.reactions[k + 1 :]))


def _without(names: tuple[str, ...], out: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != out)


def _with_fewer_processes(case: Case) -> Iterator[Case]:
    """One process less: nothing is left of it, nobody sends to it."""
    for out in case.processes:
        schedule = []
        for action in case.schedule:
            if action[0] == "send":
                to = _without(action[2], out)
                if action[1] != out and to:
                    schedule.append(("send", action[1], to, action[3]))
            elif out not in action:
                schedule.append(action)
        reactions = [
            reaction._replace(to=_without(reaction.to, out))
            for reaction in case.reactions
            if reaction.process != out and _without(reaction.to, out)
        ]
        yield replace(
            case,
            processes=_without(case.processes, out),
            schedule=tuple(schedule),
            reactions=tuple(reactions),
        )


def _renamed(case: Case) -> Case:
    """The same case with processes p0, p1, ... and messages a, b, ... in order."""
    process = dict(zip(case.processes, process_names(len(case.processes)), strict=True))
    order = replay(case).play.network.oracle.messages.values()
    letters = "abcdefghijklmnopqrstuvwxyz"
    name = {
        message.name: letter.upper() if message.name.isupper() else letter
        for message, letter in zip(order, letters, strict=False)
    }

    def action(entry: Action) -> Action:
        if entry[0] == "send":
            _, sender, to, old = entry
            return ("send", process[sender], tuple(process[p] for p in to), name.get(old, old))
        return tuple(process.get(x, x) for x in entry)

    return replace(
        case,
        processes=tuple(process.values()),
        schedule=tuple(map(action, case.schedule)),
        reactions=tuple(
            Reaction(
                name.get(r.trigger, r.trigger),
                process[r.process],
                tuple(process[p] for p in r.to),
                name.get(r.name, r.name),
            )
            for r in case.reactions
        ),
    )
