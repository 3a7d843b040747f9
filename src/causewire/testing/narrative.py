"""Describes what happens in a case, step by step."""

from __future__ import annotations

from collections.abc import Iterator

from .. import protocols
from .cases import Action, Case
from .oracle import Event
from .play import Play, replay, stage

__all__ = ["narrate"]


def narrate(case: Case) -> str:
    """Return a description of what happens in a case, step by step."""
    how = "inside the delivery" if case.inside else "after it"
    about = protocols.describe(case.protocol).with_options(**case.options)
    options = "".join(f", {key}={value}" for key, value in about.chosen)
    lines = [
        f"{about.name}{options}, network {case.net}: {len(case.processes)} processes",
        *(
            f"      {process} sends {name} to {', '.join(to)} on delivering {trigger}, {how}"
            for trigger, process, to, name in case.reactions
        ),
    ]
    lines += [f"{k:4}. {line}" for k, line in enumerate(_narration(case), 1)]
    outcome = replay(case)
    lines += ["in the end:", *(f"      {line}" for line in outcome.explain().splitlines())]
    if outcome.ok:
        lines.append("      all is well")
    return "\n".join(lines)


def _narration(case: Case) -> Iterator[str]:
    play = stage(case)
    history = play.network.oracle.history
    for action in case.schedule:
        seen = len(history)
        try:
            if not play.act(action):
                continue
        except Exception as error:
            yield f"{_describe(play, action)}: {type(error).__name__}: {error}"
            return
        events = history[seen + (action[0] == "send") :]
        yield ", ".join([_describe(play, action), *map(_happened, events)])
    seen = len(history)
    try:
        play.finish()
    except Exception as error:
        yield f"all packets arrive: {type(error).__name__}: {error}"
        return
    for event in history[seen:]:
        yield f"all packets arrive: {event.process} {_happened(event)}"


def _describe(play: Play, action: Action) -> str:
    kind = action[0]
    if kind == "send":
        return f"{action[1]} sends {action[3]} to {', '.join(action[2])}"
    if kind == "tick":
        return f"{action[1]} retransmits"
    if kind == "take":
        return f"the packets of {action[1]} are collected"
    _, source, destination, number = action
    packet = play.network.links[source, destination][number]
    if kind == "drop":
        return f"{packet} from {source} to {destination} is lost"
    return f"{destination} receives {packet} from {source}"


def _happened(event: Event) -> str:
    _, kind, message = event
    if kind == "send":
        return f"sends {message} to {', '.join(message.to)}"
    return f"delivers {message}"
