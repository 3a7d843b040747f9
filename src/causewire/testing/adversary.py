"""Random runs on an adversarial network.

A run is a function of the protocol, the profile of the network, and a seed: everything
random in it comes from one generator. So these three identify a run that failed, and
`python -m causewire.testing PROTOCOL PROFILE SEED` repeats it.

Runs are small, because most errors show with few processes and few messages, and there are
many of them. What distinguishes one from another is drawn for each run: how eager the
application is, who talks most, how much is sent in reaction, whether packets are collected
at once, which packets the network prefers and which links it holds back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from ..protocols import Protocol
from .cases import Reaction, process_names
from .network import Flying
from .play import Outcome, Play
from .profiles import PROFILES
from .promises import promised

__all__ = ["RandomWorkload", "Send", "command", "random_workload", "run", "runs"]

_GROUPS = [process_names(n) for n in range(9)]
_SIZES = (2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 7, 8)
"""Numbers of processes: it takes three to violate causality, seldom more than five."""
_NAMES = "abcdefghijklmnopqrstuvwxyz"


class Send(NamedTuple):
    """A message that the application sends, not in reaction to another."""

    process: str
    to: tuple[str, ...]
    name: str


class RandomWorkload(NamedTuple):
    """What the application does: a script in order, and reactions to deliveries."""

    processes: tuple[str, ...]
    script: tuple[Send, ...]
    reactions: tuple[Reaction, ...]


def run(
    protocol: str | Protocol,
    profile: str,
    seed: int,
    *,
    probe: Callable[[Play], None] | None = None,
    protocol_options: Mapping[str, Any] | None = None,
) -> Outcome:
    """Play one random run to its end and return how it went.

    Args:
        protocol: A name, or a `Protocol`.
        profile: The name of a network profile (`PROFILES`).
        seed: Everything that is random in the run follows from it.
        probe: Called after every step of the run.
        protocol_options: Options of the protocol.

    Example:
        >>> outcome = run("fifo", "reorder", seed=2)
        >>> outcome.kinds
        ['causal']
    """
    rng = Random(seed)
    random = rng.random
    network = PROFILES[profile]
    about = promised(protocol, protocol_options)
    workload = random_workload(about, rng)
    play = Play(
        protocol,
        workload.processes,
        network,
        reactions=workload.reactions,
        inside=random() < 0.75,
        lazy=random() < 0.25,
        ticks=not network.reliable or about.needs_retransmit or random() < 0.5,
        protocol_options=protocol_options,
    )
    steps = _steps(play, workload, rng)
    while _advance(play, steps):
        if probe is not None:
            probe(play)
    return Outcome(play)


def runs(
    protocol: str | Protocol,
    profile: str,
    seeds: Iterable[int],
    *,
    protocol_options: Mapping[str, Any] | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of one random run for each seed."""
    for seed in seeds:
        yield run(protocol, profile, seed, protocol_options=protocol_options)


def command(
    protocol: str | Protocol,
    profile: str,
    seed: int,
    protocol_options: Mapping[str, Any] | None = None,
) -> str:
    """Return the command that repeats a run of a protocol that is known by name."""
    about = promised(protocol, protocol_options)
    extra = [f"--option {name}={json.dumps(value)}" for name, value in about.chosen]
    return " ".join(["python -m causewire.testing", about.name, profile, str(seed), *extra])


def random_workload(about: Protocol, rng: Random) -> RandomWorkload:
    """Return a small workload of the kind that the protocol can carry."""
    random = rng.random
    n = _SIZES[int(random() * len(_SIZES))]
    count = 3 + int(random() * (10 if random() < 0.9 else 14))
    processes = _GROUPS[n]
    reacting = 0.8 * random()
    multicasting = random() if about.multicast else 0.0
    talking = 0.9 * random() if random() < 0.4 else 0.0
    script: list[Send] = []
    reactions: list[Reaction] = []
    sent: list[tuple[str, tuple[str, ...]]] = []
    for k in range(count):
        name = _NAMES[k] if random() < 0.9 else _NAMES[k].upper()
        if k and random() < reacting:
            trigger, witnesses = sent[int(random() * k)]
            process = witnesses[int(random() * len(witnesses))]
        else:
            trigger = ""
            process = processes[0 if random() < talking else int(random() * n)]
        if not about.unicast:
            to = processes if random() < 0.1 else tuple(p for p in processes if p != process)
        elif random() < multicasting:
            to = tuple(p for p in processes if random() < (0.1 if p == process else 0.6))
            to = to or (processes[int(random() * n)],)
        else:
            peer = processes[int(random() * n)]
            if peer == process and random() < 0.8:
                peer = processes[(processes.index(peer) + 1) % n]
            to = (peer,)
        sent.append((name, to))
        if trigger:
            reactions.append(Reaction(trigger, process, to, name))
        else:
            script.append(Send(process, to, name))
    return RandomWorkload(processes, tuple(script), tuple(reactions))


def _advance(play: Play, steps: Iterator[None]) -> bool:
    """Do the next step, or finish the run after the last; an error is part of the run."""
    try:
        for _ in steps:
            return True
        play.finish()
    except Exception as error:
        play.error = error
    return False


def _steps(play: Play, workload: RandomWorkload, rng: Random) -> Iterator[None]:
    """Do one step after another, until there is nothing to do or the limit is reached."""
    random = rng.random
    profile = play.profile
    in_flight = play.network.in_flight
    processes = workload.processes
    script = list(reversed(workload.script))
    sending = 0.1 + 0.8 * random()
    newest = 0.7 if random() < 0.25 else 0.0
    ticking = 0.04 * random()
    speed = _speeds(processes, rng) if profile.hold else None
    steady = 0.9 + 0.1 * random()
    for _ in range(40 + 12 * len(workload.script) + 6 * len(workload.reactions)):
        if script and (random() < sending or not in_flight):
            play.send(*script.pop())
        elif in_flight:
            k = len(in_flight) - 1 if random() < newest else int(random() * len(in_flight))
            if speed is not None:
                if random() < steady:
                    k = _fastest(in_flight, speed)
                else:
                    speed[in_flight[k][:2]] = random()
            if profile.fifo:
                k = play.oldest(k)
            if profile.loss and random() < profile.loss:
                play.lose(k)
            else:
                play.arrive(k)
        elif not play.lazy:
            break
        if profile.replay and random() < profile.replay:
            _replay_something(play, rng)
        if play.lazy and random() < 0.6:
            play.take(processes[int(random() * len(processes))])
        if random() < ticking:
            play.tick(processes[int(random() * len(processes))])
        yield


def _speeds(processes: tuple[str, ...], rng: Random) -> dict[tuple[str, str], float]:
    """Return a speed for each link; only which of two is faster matters."""
    return {(source, other): rng.random() for source in processes for other in processes}


def _fastest(in_flight: list[Flying], speed: dict[tuple[str, str], float]) -> int:
    """Return the first packet in flight on the fastest link that has one."""
    best = -1.0
    fastest = 0
    for k, flying in enumerate(in_flight):
        if speed[flying[:2]] > best:
            best = speed[flying[:2]]
            fastest = k
    return fastest


def _replay_something(play: Play, rng: Random) -> None:
    """Let a past packet arrive once more: the last that arrived, or any other."""
    schedule = play.schedule
    if rng.random() < 0.4 and schedule and schedule[-1][0] == "recv":
        play.act(schedule[-1])
        return
    links = list(play.network.links)
    if links:
        link = links[int(rng.random() * len(links))]
        play.act(("recv", *link, int(rng.random() * len(play.network.links[link]))))
