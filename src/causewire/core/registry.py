"""`Protocol`, the description of a protocol, and the table of those in this package.

`causewire.protocols` finds protocols by name, in this table and in other packages'
entry points. The columns are those of Almeida's Table 1, with corrections that were
measured since (ERRATA 2.11, 5.7, 6, 7.3, 9), and what a driver must know to run a
protocol at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from .adaptive import Adaptive
from .bss import Bss
from .csps import Csps
from .cykas import Cykas, CykasAsPrinted, CykasSecretSends
from .endpoint import Endpoint
from .errors import LocalProtocolError
from .fifo import Fifo, Unordered
from .ks import Ks
from .mf import Mf
from .newtop import Newtop
from .pak import Pak, PakCredit, PakNak
from .rst import Rst
from .sps import Sps

__all__ = ["TABLE", "Protocol"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A protocol: its endpoint class, and what holds of it by construction.

    Only `name` and `endpoint` are required; the defaults promise nothing about cost.
    Letters in complexities are those of Table 1: n processes, i senders to and o
    receivers from a process, b messages buffered, p permits missing, u messages
    unacknowledged, r round trips. The round trips that matter are those between the
    processes that a process has heard from and their receivers, not its own. In
    addition, e is the number of eager messages that lack their YCT, which has no bound
    while one receiver does not acknowledge a message.
    """

    name: str
    endpoint: type[Endpoint]
    summary: str = ""
    paper: str = ""
    # What it can carry.
    unicast: bool = True
    multicast: bool = True
    broadcast: bool = True
    fixed_group: bool = False
    # What it needs of the network, and what it gives.
    tolerates_loss: bool = False
    tolerates_duplication: bool = False
    needs_fifo: bool = False
    needs_retransmit: bool = False
    """`retransmit` must be called now and then even if the network loses nothing."""
    forgets: bool = False
    """`Endpoint.forget` works: a process can go on without another one."""
    causal: bool = True
    live: bool = True
    """Everything is delivered once the senders stop."""
    starves: bool = False
    """A message may wait for ever while others keep sending."""
    # The rows of Table 1.
    buffering: str = "unknown"
    message_space: str = "unknown"
    process_space: str = "unknown"
    sender_time: str = "unknown"
    receiver_time: str = "unknown"
    latency_optimal: bool = False
    noncausal_latency: str = "unknown"
    throughput_scalable: bool = True
    in_transit: str = "unknown"
    control_messages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Names of the keyword arguments that the endpoint class takes."""
    option_effects: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    """Properties that change when an option is set: (option, ((property, value), ...))."""
    chosen: tuple[tuple[str, Any], ...] = ()
    """Values of options, in the order of their names (`with_options`)."""
    node_options: tuple[tuple[str, Any], ...] = ()
    """Options that a node chooses unless others are given. Without them, the endpoint is
    what its paper describes; with them, it sends the same packets, and some of them earlier."""

    def with_options(self, **options: Any) -> Self:
        """Return this protocol with options chosen, and with the properties it then has.

        Raises:
            LocalProtocolError: The protocol has no such option.
        """
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            known = ", ".join(self.options) or "none"
            raise LocalProtocolError(
                f"{self.name} has no option {', '.join(unknown)}; its options are: {known}"
            )
        if not options:
            return self
        changed = {
            name: value
            for option, effects in self.option_effects
            if options.get(option)
            for name, value in effects
        }
        chosen = tuple(sorted((dict(self.chosen) | options).items()))
        return replace(self, chosen=chosen, **changed)

    def in_node(self, **options: Any) -> Self:
        """Return this protocol as nodes run it, with these options.

        Raises:
            LocalProtocolError: The protocol has no such option.
        """
        return self.with_options(**(dict(self.node_options) | dict(self.chosen) | options))


_CYKAS: dict[str, Any] = {
    "buffering": "sender",
    "message_space": "O(1)",
    "process_space": "O(i+b+eo)",
    "sender_time": "O(o+e)",
    "receiver_time": "O(1)",
    "noncausal_latency": "sender, unbounded",
    "throughput_scalable": False,
    "in_transit": "1 per receiver",
    "control_messages": ("ack", "yct"),
}

_PAK: dict[str, Any] = {
    "unicast": False,
    "multicast": False,
    "fixed_group": True,
    "needs_fifo": True,
    "buffering": "both",
    "message_space": "O(n)",
    "process_space": "O(n+b)",
    "sender_time": "O(n)",
    "receiver_time": "O(n)",
    "noncausal_latency": "sender, O(br)",
    "throughput_scalable": False,
    "in_transit": "ct per sender",
    "control_messages": ("ack",),
}

TABLE: tuple[Protocol, ...] = (
    Protocol(
        name="adaptive",
        endpoint=Adaptive,
        summary="lists what is undelivered; a silent process delays only messages to itself",
        paper="Almeida, section 6 (the question)",
        tolerates_loss=True,
        tolerates_duplication=True,
        buffering="receiver",
        message_space="O(K)",
        process_space="O(n²+b+u)",
        sender_time="O(K)",
        receiver_time="O(K)",
        latency_optimal=True,
        noncausal_latency="0 up to K entries",
        in_transit="unlimited",
        control_messages=("ack", "news"),
        forgets=True,
        options=("cap", "groups"),
    ),
    Protocol(
        name="csps",
        endpoint=Csps,
        forgets=True,
        summary="hybrid buffering: constant metadata, delay bounded by senders' round trips",
        paper="Almeida, Algorithms 1 and 3",
        tolerates_loss=True,
        tolerates_duplication=True,
        buffering="hybrid",
        message_space="O(1)",
        process_space="O(i+o+b+p+u)",
        sender_time="O(1)",
        receiver_time="O(1)",
        noncausal_latency="sender, O(r) of those heard from",
        in_transit="unlimited",
        control_messages=("ack", "permit"),
        options=("replies_early",),
        node_options=(("replies_early", True),),
    ),
    Protocol(
        name="sps",
        endpoint=Sps,
        forgets=True,
        summary="hybrid buffering, released as early as permits allow; delay unbounded at times",
        paper="Almeida, Algorithm 2 and its multicast",
        tolerates_loss=True,
        tolerates_duplication=True,
        buffering="hybrid",
        message_space="O(1)",
        process_space="O(i+o+b+p+u)",
        sender_time="O(1)",
        receiver_time="O(1)",
        noncausal_latency="sender, unbounded",
        in_transit="unlimited",
        control_messages=("ack", "permit"),
    ),
    Protocol(
        name="mf",
        endpoint=Mf,
        forgets=True,
        summary="one message at a time: the next leaves when the last is acknowledged",
        paper="Mattern and Fünfrocken",
        multicast=False,
        broadcast=False,
        tolerates_loss=True,
        tolerates_duplication=True,
        buffering="sender",
        message_space="O(1)",
        process_space="O(i+o+b)",
        sender_time="O(1)",
        receiver_time="O(1)",
        noncausal_latency="sender, O(br)",
        throughput_scalable=False,
        in_transit="1 per sender",
        control_messages=("ack",),
        options=("fifo",),
        option_effects=(
            (
                "fifo",
                (
                    ("needs_fifo", True),
                    ("tolerates_loss", False),
                    ("tolerates_duplication", False),
                ),
            ),
        ),
    ),
    Protocol(
        name="cykas",
        endpoint=Cykas,
        forgets=True,
        summary="eager sends, kept secret until their sender says: you can tell",
        paper="Tong, Liittschwager and Kuper, repaired (ERRATA 5)",
        multicast=False,
        broadcast=False,
        starves=True,
        **_CYKAS,
    ),
    Protocol(
        name="cykas-as-printed",
        endpoint=CykasAsPrinted,
        forgets=True,
        summary="Algorithm 4 to the letter, neither live nor safe: a known-bad",
        paper="Tong, Liittschwager and Kuper, Algorithm 4",
        multicast=False,
        broadcast=False,
        causal=False,
        live=False,
        starves=True,
        **_CYKAS,
    ),
    Protocol(
        name="cykas-secret-sends",
        endpoint=CykasSecretSends,
        forgets=True,
        summary="sends in secret mode to the last eager sender: a known-bad",
        paper="Tong, Liittschwager and Kuper, section 2.3",
        multicast=False,
        broadcast=False,
        causal=False,
        starves=True,
        **_CYKAS,
    ),
    Protocol(
        name="rst",
        endpoint=Rst,
        forgets=True,
        summary="a matrix with every message: delivered as early as possible",
        paper="Raynal, Schiper and Toueg",
        fixed_group=True,
        tolerates_duplication=True,
        buffering="receiver",
        message_space="O(n²)",
        process_space="O(n²b)",
        sender_time="O(n)",
        receiver_time="O(n²)",
        latency_optimal=True,
        noncausal_latency="0",
        in_transit="unlimited",
    ),
    Protocol(
        name="ks",
        endpoint=Ks,
        summary="the least information that early delivery needs, and no more",
        paper="Kshemkalyani and Singhal",
        tolerates_duplication=True,
        buffering="receiver",
        message_space="O(n²)",
        process_space="O(n²b)",
        sender_time="O(n²)",
        receiver_time="O(n²)",
        latency_optimal=True,
        noncausal_latency="0",
        in_transit="unlimited",
        options=("hardware_multicast", "complement", "broadcast"),
        option_effects=(
            ("complement", (("fixed_group", True),)),
            (
                "broadcast",
                (
                    ("unicast", False),
                    ("multicast", False),
                    ("fixed_group", True),
                    ("forgets", True),
                ),
            ),
        ),
    ),
    Protocol(
        name="newtop",
        endpoint=Newtop,
        forgets=True,
        summary="Lamport clocks: delivered when everybody's clock has passed",
        paper="Ezhilchelvan, Macêdo and Shrivastava",
        needs_retransmit=True,
        unicast=False,
        multicast=False,
        fixed_group=True,
        needs_fifo=True,
        buffering="receiver",
        message_space="O(1)",
        process_space="O(n+b)",
        sender_time="O(1)",
        receiver_time="O(n)",
        noncausal_latency="receiver, until nulls come",
        in_transit="unlimited",
        control_messages=("null",),
        options=("eager_nulls",),
        option_effects=(("eager_nulls", (("needs_retransmit", False),)),),
    ),
    Protocol(
        name="pak",
        endpoint=Pak,
        forgets=True,
        summary="broadcast with vector time modulo 3: one message per sender at a time",
        paper="Baldoni, stop-and-wait",
        options=("k",),
        **_PAK | {"in_transit": "1 per sender"},
    ),
    Protocol(
        name="pak-credit",
        endpoint=PakCredit,
        forgets=True,
        summary="broadcast with vector time modulo 2ct+1: up to ct messages unacknowledged",
        paper="Baldoni, credits",
        options=("ct", "k", "wr"),
        option_effects=(("wr", (("needs_retransmit", True),)),),
        **_PAK,
    ),
    Protocol(
        name="pak-nak",
        endpoint=PakNak,
        forgets=True,
        summary="broadcast with vector time modulo k: every ct-th message is acknowledged",
        paper="Baldoni, PAK-NAK",
        options=("ct", "k"),
        **_PAK,
    ),
    Protocol(
        name="bss",
        endpoint=Bss,
        forgets=True,
        summary="a vector clock with every broadcast: delivered as early as possible",
        paper="Birman, Schiper and Stephenson; Baldoni, Fig. 1",
        unicast=False,
        multicast=False,
        fixed_group=True,
        tolerates_duplication=True,
        buffering="receiver",
        message_space="O(n)",
        process_space="O(n+nb)",
        sender_time="O(n)",
        receiver_time="O(n)",
        latency_optimal=True,
        noncausal_latency="0",
        in_transit="unlimited",
    ),
    Protocol(
        name="fifo",
        endpoint=Fifo,
        forgets=True,
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
        in_transit="unlimited",
        control_messages=("ack",),
    ),
    Protocol(
        name="unordered",
        endpoint=Unordered,
        forgets=True,
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
        in_transit="unlimited",
    ),
)
