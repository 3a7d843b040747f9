"""Packets that no correct peer could have sent, to see that they are refused.

A forgery is certain: given what the process has sent so far, no run of correct
peers can bring that packet to it, from that source, now. So these are left out:

*   what is merely unlikely, such as a message with a very high number (its sender
    may have sent that many), or a permit for one that has not arrived (permits may
    overtake their messages);
*   what a process need not remember to be able to tell, such as a second ack for
    a message acknowledged long ago.

`forgeries` knows what is impossible under every protocol here; a test may add what
is impossible under its own. Each is made only when it is used, as packets check
their fields: a malformed one is refused before it exists, which is as good.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

from ..core.endpoint import Endpoint, Packet
from .network import Network

__all__ = ["Forgery", "forgeries", "malformed", "speaks"]

HUGE = 10**9
STRANGER = "a stranger"


class Forgery(NamedTuple):
    """Something that `source` claims to send, and why it cannot be."""

    source: str
    make: Callable[[], Any]
    why: str


class Junk:
    """Of no type that a packet has use for, except as a payload."""

    def __repr__(self) -> str:
        return "Junk()"


class Unheard(Packet):
    """A packet of no protocol."""

    __slots__ = ()
    kind = "unheard"
    fields = ("mid", "payload")

    def __new__(cls) -> Unheard:
        return tuple.__new__(cls, ("unheard", 1, "boo"))


_ACKS = ("ack", "ask")
"""Kinds of packets that say of one's own messages that they were delivered."""
_FOREIGN: tuple[Any, ...] = (None, 7, "msg", b"msg", (), ("ack", 1), [], {}, Junk(), Packet)


@cache
def speaks(endpoint: type[Endpoint], kind: type[Packet]) -> bool:
    """Whether a class of endpoints may know a kind of packet: one of its modules does."""
    return any(
        kind is known
        for base in endpoint.__mro__
        for known in vars(sys.modules[base.__module__]).values()
    )


def forgeries(
    network: Network, process: str, *, fixed_group: bool, aliens: tuple[Packet, ...] = ()
) -> Iterator[Forgery]:
    """What `process` must refuse now, whoever brings it.

    Made from the packets that went over the network so far, and from `aliens`,
    packets of other protocols.
    """
    endpoint = network.endpoints[process]
    peers = [name for name in network.endpoints if name != process]
    for source in peers:
        for thing in (*_FOREIGN, Unheard()):
            yield Forgery(source, partial(_same, thing), "no packet of any protocol")
        for alien in aliens:
            if not speaks(type(endpoint), type(alien)):
                yield Forgery(source, partial(_same, alien), "of another protocol")
    for (source, destination), packets in network.links.items():
        for packet in packets[-3:]:
            if destination == process:
                yield from _twisted(network, process, source, packet, fixed_group)
            elif source != process:
                yield from _misdirected(process, source, packet)


def _same(thing: Any) -> Any:
    return thing


def _twisted(
    network: Network, process: str, source: str, packet: Packet, fixed_group: bool
) -> Iterator[Forgery]:
    """What is wrong with a packet from `source` if something else is put for a part of it."""
    genuine = partial(_same, packet)
    yield Forgery(source, partial(tuple, packet), "a tuple, not a packet")
    yield Forgery(process, genuine, "from oneself, who sends itself nothing")
    if fixed_group:
        yield Forgery(STRANGER, genuine, "from a stranger")
    elif packet.kind in _ACKS:
        yield Forgery(STRANGER, genuine, "the ack of a process that nothing was ever sent to")
    for make, why in malformed(packet):
        yield Forgery(source, make, why)
    if packet.kind in _ACKS:
        for place, name in enumerate(packet.fields, 1):
            yield Forgery(
                source,
                partial(_changed, packet, place, HUGE),
                f"the ack of a message never sent: {name} is {HUGE}",
            )
        if "mid" in packet.fields:
            yield from _unwarranted(network, process, source, packet)


def _unwarranted(network: Network, process: str, source: str, ack: Packet) -> Iterator[Forgery]:
    """Acks of messages that were sent, but not to who acks them."""
    sent = [m for m in network.oracle.messages.values() if m.origin == process]
    last = max((m.mid for m in sent if source in m.to), default=0)
    place = 1 + ack.fields.index("mid")
    for message in sent:
        if message.mid > last:
            yield Forgery(
                source,
                partial(_changed, ack, place, message.mid),
                f"the ack of a message sent to others: {message!r}",
            )


def _misdirected(process: str, source: str, packet: Packet) -> Iterator[Forgery]:
    """A message that names its destinations, brought to somebody else."""
    if "dests" in packet.fields:
        dests = packet[1 + packet.fields.index("dests")]
        if type(dests) in (tuple, frozenset) and dests and process not in dests:
            yield Forgery(source, partial(_same, packet), f"not for here: to {sorted(dests)}")


def malformed(packet: Packet) -> Iterator[tuple[Callable[[], Packet], str]]:
    """The same packet with one field that cannot have such a value; with the reason."""
    for place, name in enumerate(packet.fields, 1):
        if name != "payload":
            for value in _impossible(packet[place]):
                why = f"malformed: {name} is {value!r:.60}"
                yield partial(_changed, packet, place, value), why


def _impossible(value: Any) -> Iterator[Any]:
    """What a field that had this value can never have."""
    yield Junk()
    yield None
    if type(value) is int:
        yield from (-1, -HUGE, 1.0, True, str(value))
    elif type(value) is bool:
        yield from (int(value), str(value))
    elif type(value) is tuple:
        yield from (-1, [*value], (*value, Junk()), (*value, -1), (Junk(), *value[1:]))
        if value and all(type(entry) is int for entry in value):
            # One entry for each member, or for each other one.
            yield from ((*value, 0), value[:-1], (HUGE,) * len(value))
    elif type(value) is frozenset:
        yield from (-1, set(value), value | {Junk()}, value | {-1})


def _changed(packet: Packet, place: int, value: Any) -> Packet:
    fields = list(packet[1:])
    fields[place - 1] = value
    return type(packet)(*fields)
