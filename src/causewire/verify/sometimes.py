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

from ..core.endpoint import Packet
from .event import SEND
from .machine import Stage
from .setup import Network

__all__ = ["SOMETIMES", "met", "needed"]

SOMETIMES = ("concurrent", "reordered", "held", "chained", "reaction")


def needed(network: Network, ghost: str) -> frozenset[str]:
    """What a check on this network must have met."""
    wanted = set(SOMETIMES)
    if network.fifo:
        wanted.discard("reordered")
    if ghost != "marked":
        wanted.discard("chained")
    return frozenset(wanted)


def met(stage: Stage) -> frozenset[str]:
    """What the searches on a stage have met."""
    seen = set()
    if _held(stage):
        seen.add("held")
    if _chained(stage):
        seen.add("chained")
    if _reaction(stage):
        seen.add("reaction")
    post = stage.post
    for j, inboxes in enumerate(post.inboxes):
        packets = post.packets[j].values
        for inbox in inboxes.values:
            pending = [packets[k] for k, _ in post.ready(inbox)]
            messages = [source for source, packet in pending if _is_message(packet)]
            senders = [source for source, _ in pending]
            if len(messages) > 1:
                seen.add("concurrent")
            if len(set(senders)) < len(senders):
                seen.add("reordered")
            if {"concurrent", "reordered"} <= seen:
                return frozenset(seen)
    return frozenset(seen)


def _is_message(packet: Packet) -> bool:
    return "payload" in type(packet).fields


def _held(stage: Stage) -> bool:
    return any(local.endpoint.blocked() for actor in stage.everybody() for local in actor.locals)


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
