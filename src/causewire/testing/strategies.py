"""Hypothesis strategies for what applications and networks do.

`outcomes(protocol)` is all that a conformance test needs:

    @given(outcomes("csps"))
    def test_it(outcome):
        assert outcome.ok, outcome.explain()

It consists of `workloads` (scripts and reactions), `moves` (schedules and faults, as
choices that are meaningful whatever is in flight, so that they shrink well) and `played`,
which plays a workload with these moves. This module needs Hypothesis, unlike the rest of
`causewire.testing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ..protocols import Protocol
from .adversary import RandomWorkload, Send
from .cases import Reaction, process_names
from .play import Outcome, Play
from .profiles import PROFILES, Profile
from .promises import promised, tolerated_networks

__all__ = ["Move", "destinations", "moves", "outcomes", "played", "profiles", "workloads"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Move(NamedTuple):
    """A choice of the network or of the application.

    `what` is `send` (the next of the script), `arrive`, `lose`, `replay`, `tick` or
    `take`; `which` picks among the packets or processes there are, modulo their
    number. What is impossible when its turn comes is passed over.
    """

    what: str
    which: int


def profiles(
    protocol: str | Protocol, protocol_options: Mapping[str, Any] | None = None
) -> st.SearchStrategy[Profile]:
    """Return a strategy for networks on which a protocol must keep all that it promises."""
    return st.sampled_from(tolerated_networks(protocol, protocol_options))


def destinations(
    about: Protocol, processes: Sequence[str], sender: str
) -> st.SearchStrategy[tuple[str, ...]]:
    """Return a strategy for destinations that a protocol supports, at times with the sender."""
    others = tuple(name for name in processes if name != sender)
    if not about.unicast:
        return st.sampled_from([others, tuple(processes)])
    one = st.sampled_from(processes).map(lambda name: (name,))
    if not about.multicast:
        return one
    return one | st.sets(st.sampled_from(processes), min_size=1).map(lambda s: tuple(sorted(s)))


@st.composite
def workloads(
    draw: st.DrawFn,
    /,
    protocol: str | Protocol,
    *,
    max_processes: int = 8,
    max_messages: int = 12,
    protocol_options: Mapping[str, Any] | None = None,
) -> RandomWorkload:
    """Draw what the application does: messages that it sends, some of them in reaction."""
    about = promised(protocol, protocol_options)
    processes = process_names(draw(st.integers(2, max_processes)))
    script: list[Send] = []
    reactions: list[Reaction] = []
    sent: list[tuple[str, tuple[str, ...]]] = []
    for letter in _LETTERS[: draw(st.integers(1, max_messages))]:
        name = letter.upper() if draw(st.integers(0, 9)) == 9 else letter
        reacts: bool = bool(sent) and draw(st.booleans())
        if reacts:
            trigger, witnesses = draw(st.sampled_from(sent))
            process = draw(st.sampled_from(witnesses))
            to = draw(destinations(about, processes, process))
            reactions.append(Reaction(trigger, process, to, name))
        else:
            process = draw(st.sampled_from(processes))
            to = draw(destinations(about, processes, process))
            script.append(Send(process, to, name))
        sent.append((name, to))
    return RandomWorkload(processes, tuple(script), tuple(reactions))


def moves(profile: Profile, *, max_size: int = 80) -> st.SearchStrategy[list[Move]]:
    """Return a strategy for schedules with the faults that the profile allows."""
    kinds = [*["send"] * 3, *["arrive"] * 6, "take", "tick"]
    kinds += ["lose"] if profile.loss else []
    kinds += ["replay"] if profile.replay else []
    move = st.builds(Move, st.sampled_from(kinds), st.integers(0, 63))
    # Left to itself, Hypothesis makes lists of five: too short to get anywhere.
    return st.integers(0, max_size).flatmap(
        lambda size: st.lists(move, min_size=size, max_size=size)
    )


def played(play: Play, script: Sequence[Send], schedule: Sequence[Move]) -> Outcome:
    """Make the moves, send the rest of the script, and let everything arrive."""
    rest = iter(script)
    try:
        for move in schedule:
            if move.what == "send":
                send = next(rest, None)
                if send is not None:
                    play.send(*send)
            else:
                _make(play, move)
        for send in rest:
            play.send(*send)
        play.finish()
    except Exception as error:
        play.error = error
    return Outcome(play)


def _make(play: Play, move: Move) -> None:
    network = play.network
    processes = tuple(network.endpoints)
    if move.what in ("tick", "take"):
        play.act((move.what, processes[move.which % len(processes)]))
    elif move.what == "replay":
        past = [(*link, k) for link, sent in network.links.items() for k in range(len(sent))]
        if past:
            play.act(("recv", *past[move.which % len(past)]))
    elif network.in_flight:
        k = move.which % len(network.in_flight)
        if play.profile.fifo:
            k = play.oldest(k)
        if move.what == "lose":
            play.lose(k)
        else:
            play.arrive(k)


@st.composite
def outcomes(
    draw: st.DrawFn,
    /,
    protocol: str | Protocol,
    profile: str | None = None,
    *,
    max_processes: int = 8,
    max_messages: int = 12,
    protocol_options: Mapping[str, Any] | None = None,
) -> Outcome:
    """Outcomes of runs: of any workload, on any network that the protocol must tolerate."""
    about = promised(protocol, protocol_options)
    network = draw(profiles(about)) if profile is None else PROFILES[profile]
    workload = draw(workloads(about, max_processes=max_processes, max_messages=max_messages))
    needed = not network.reliable or about.needs_retransmit
    play = Play(
        about,
        workload.processes,
        network,
        reactions=workload.reactions,
        inside=draw(st.booleans()),
        lazy=draw(st.booleans()),
        ticks=needed or draw(st.booleans()),
    )
    return played(play, workload.script, draw(moves(network)))
