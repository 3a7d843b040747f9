"""Every protocol by name, with what holds of it by construction.

An explicit table: what is not listed here does not exist. The columns are those
of Almeida's Table 1, with the corrections that were measured since (ERRATA 2.11,
5.7, 6, 7.3, 9), and what a driver must know to run a protocol at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .endpoint import Endpoint, LocalProtocolError
from .csps import Csps
from .fifo import Fifo, Unordered
from .sps import Sps

__all__ = ["Protocol", "create", "describe", "names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What holds of a protocol by construction.

    Letters in complexities, as in Table 1: n processes, i senders to and o
    receivers from a process, b messages buffered, p permits missing, u
    unacknowledged, r the round-trip times from a sender to its peers.
    """

    name: str
    endpoint: type[Endpoint]
    summary: str
    paper: str
    # What it can carry.
    unicast: bool = True
    multicast: bool = True
    broadcast: bool = True
    fixed_group: bool = False
    # What it needs of the network, and what it gives.
    tolerates_loss: bool = False
    tolerates_duplication: bool = False
    needs_fifo: bool = False
    causal: bool = True
    live: bool = True
    # The rows of Table 1.
    buffering: str
    message_space: str
    process_space: str
    sender_time: str
    receiver_time: str
    latency_optimal: bool
    noncausal_latency: str
    throughput_scalable: bool
    in_transit: str
    control_messages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


_TABLE: tuple[Protocol, ...] = (
    Protocol(
        name="csps",
        endpoint=Csps,
        summary="hybrid buffering: constant metadata, extra latency bounded by round trips",
        paper="Almeida, Algorithms 1 and 3",
        tolerates_loss=True,
        tolerates_duplication=True,
        buffering="hybrid",
        message_space="O(1)",
        process_space="O(i+o+b+p+u)",
        sender_time="O(1)",
        receiver_time="O(1)",
        latency_optimal=False,
        noncausal_latency="sender, O(r)",
        throughput_scalable=True,
        in_transit="unlimited",
        control_messages=("ack", "permit"),
    ),
    Protocol(
        name="sps",
        endpoint=Sps,
        summary="hybrid buffering, earliest release by permits; delay unbounded in some patterns",
        paper="Almeida, Algorithm 2 and its multicast",
        tolerates_loss=True,
        tolerates_duplication=True,
        buffering="hybrid",
        message_space="O(1)",
        process_space="O(i+o+b+p+u)",
        sender_time="O(1)",
        receiver_time="O(1)",
        latency_optimal=False,
        noncausal_latency="sender, unbounded",
        throughput_scalable=True,
        in_transit="unlimited",
        control_messages=("ack", "permit"),
    ),
    Protocol(
        name="fifo",
        endpoint=Fifo,
        summary="per-sender order only: a known-bad for causality, and the baseline for cost",
        paper="Almeida, Algorithm 1 without permits",
        tolerates_loss=True,
        tolerates_duplication=True,
        causal=False,
        buffering="receiver",
        message_space="O(1)",
        process_space="O(i+o+b+u)",
        sender_time="O(1)",
        receiver_time="O(1)",
        latency_optimal=True,
        noncausal_latency="0",
        throughput_scalable=True,
        in_transit="unlimited",
        control_messages=("ack",),
    ),
    Protocol(
        name="unordered",
        endpoint=Unordered,
        summary="delivers on arrival: a known-bad for every order",
        paper="none",
        causal=False,
        buffering="none",
        message_space="O(1)",
        process_space="O(1)",
        sender_time="O(1)",
        receiver_time="O(1)",
        latency_optimal=True,
        noncausal_latency="0",
        throughput_scalable=True,
        in_transit="unlimited",
    ),
)

_BY_NAME = {protocol.name: protocol for protocol in _TABLE}


def names() -> list[str]:
    """The names of all protocols, in the order of the table."""
    return list(_BY_NAME)


def describe(name: str) -> Protocol:
    """What holds of the protocol of that name."""
    try:
        return _BY_NAME[name]
    except (KeyError, TypeError):
        known = ", ".join(_BY_NAME)
        raise LocalProtocolError(f"there is no protocol {name!r}; there are {known}") from None


def create(name: str, me: str, group: Iterable[str] | None = None, **options: Any) -> Endpoint:
    """A new endpoint for process `me`.

    `group` names all members, for the protocols that need to know them; the
    others do not look at it. `options` are the protocol's own.
    """
    protocol = describe(name)
    unknown = sorted(set(options) - set(protocol.options))
    if unknown:
        known = ", ".join(protocol.options) or "none"
        raise LocalProtocolError(f"{name} has no option {', '.join(unknown)}; it has {known}")
    return protocol.endpoint(me, group, **options)
