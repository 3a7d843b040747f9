"""What must have happened at least once, for a check to mean anything.

"No violation" is also what a check says that never let two messages meet. So a
check notes whether it has seen

    concurrent   two messages on their way to the same process at once
    reordered    two packets of one process pending in one inbox, any of which may
                 be taken first
    held         a message held back, at its sender or at its receiver
    chained      a message sent by a process that knew of one not delivered yet,
                 so that there was something to overtake
    reaction     a message sent from inside a delivery

and one that lacks any of those that its network allows for is vacuous. (FIFO
channels do not reorder; a search without marks has no chains.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ..core.endpoint import Packet
from .event import SEND
from .machine import Stage
from .obituaries import opened
from .selfcheck import asked
from .setup import Setup

__all__ = ["SOMETIMES", "met", "needed"]

SOMETIMES = ("concurrent", "reordered", "held", "chained", "reaction")


def needed(setup: Setup, ghost: str) -> frozenset[str]:
    """Return what a check of this setup must have met."""
    wanted = set(SOMETIMES)
    if setup.network.fifo:
        wanted.discard("reordered")
    if not setup.calls.reacts:
        wanted.discard("reaction")
    if ghost != "marked" or setup.network.forgets:
        wanted.discard("chained")
    return frozenset(wanted)


def met(stage: Stage, wanted: Collection[str]) -> frozenset[str]:
    """Which of these the searches on a stage have met."""
    return frozenset(each for each in wanted if _LOOK[each](stage))


def _pending(stage: Stage) -> Iterator[list[tuple[int, Packet]]]:
    """For each inbox what is ready in it: senders and packets."""
    post = stage.post
    for j, inboxes in enumerate(post.inboxes):
        packets = post.packets[j].values
        for inbox in inboxes.values:
            yield [packets[k] for k, _ in post.ready(j, inbox)]


def _concurrent(stage: Stage) -> bool:
    return any(sum(_is_message(packet) for _, packet in pending) > 1 for pending in _pending(stage))


def _reordered(stage: Stage) -> bool:
    return any(len({sender for sender, _ in pending}) < len(pending) for pending in _pending(stage))


def _is_message(packet: Packet) -> bool:
    inner = opened(packet)[1]
    return inner is not None and bool({"payload", "payloads"} & set(inner.fields))


def _held(stage: Stage) -> bool:
    return any(
        asked(local.endpoint, "blocked") for actor in stage.everybody() for local in actor.locals
    )


def _chained(stage: Stage) -> bool:
    return any(
        event == SEND and actor.ghost.marks and actor.locals[local].ghost
        for actor in stage.everybody()
        for local, event in actor.known_events()
    )


def _reaction(stage: Stage) -> bool:
    return any(
        event >= 0 and any(any(outcome.script) for outcome in actor.outcomes(local, event))
        for actor in stage.everybody()
        for local, event in actor.known_events()
    )


_LOOK: dict[str, Callable[[Stage], bool]] = {
    "concurrent": _concurrent,
    "reordered": _reordered,
    "held": _held,
    "chained": _chained,
    "reaction": _reaction,
}
