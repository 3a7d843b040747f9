"""Makes a small counterexample of a run that fails.

Greedy: leave something out, replay, and keep what still fails in the same way,
until nothing can be left out any more. Every attempt is a replay of a case, so the
result is a case again, that fails by itself and can be stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .cases import Action, Case, Reaction, process_names
from .play import Outcome, replay

__all__ = ["shrink"]


def shrink(case: Case, kind: str = "") -> Case:
    """A case that fails as `case` does (in that `kind` of failure), with less in it."""
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
    yield from _with_lower_numbers(case)
    yield from _with_fewer_destinations(case)
    yield from _with_fewer_processes(case)


def _with_lower_numbers(case: Case) -> Iterator[Case]:
    """What arrives, arrives as an earlier packet of its link: a message before is left out."""
    schedule = case.schedule
    for k, action in enumerate(schedule):
        if action[0] == "send":
            for to in action[2]:
                yield replace(
                    case, schedule=schedule[:k] + _lowered(schedule[k + 1 :], action[1], to)
                )
        elif action[0] in ("recv", "drop") and action[3]:
            lowered = _lowered(schedule[k:], action[1], action[2])
            yield replace(case, schedule=schedule[:k] + lowered)
            yield replace(case, schedule=schedule[:k] + lowered[:1] + schedule[k + 1 :])


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
