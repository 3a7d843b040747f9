"""Drivers: the calls by which a process of the model drives its endpoint.

    packets     `receive` for each packet that arrives, `take_packets` after each event,
                and a client that may send from inside a delivery (`on_delivery`): how
                the simulator and the fake network drive an endpoint, and how a node
                drives a protocol that runs on links
    runs        `receive_run` for messages that arrive together, `receive` for an ack or
                a permit, and `take_runs`, `take_acks`, `take_permits` and `take_control`
                whenever the driver chooses (a *pump*): how a node drives `fifo`,
                `csps`, `sps` and `adaptive`

With `packets`, every packet is one message or one control packet, and leaves in the
event that released it. With `runs`, messages that were sent, released or delivered
between two pumps leave together, so all the ways in which a busy node batches its work
are covered: several sends before a pump, several receipts before a send, an ack for
many messages, a departure in `csps`.

What lies between two nodes is modelled as the transport provides it. The messages from
one process to another are a chain: they arrive once each and in order, but cut into
runs at any place, since datagrams are filled anew (a run never mixes messages with and
without the flag `per`). Acks, permits and other control packets are sent outside the
chain, so they arrive at any time and in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from ..core.adaptive import Adaptive
from ..core.endpoint import Endpoint, Outgoing, Packet
from ..core.errors import LocalProtocolError
from ..core.fifo import Ack, FifoEndpoint
from ..core.hybrid import Permit
from ..core.run import MessageRun

__all__ = ["DRIVERS", "ArrivingRun", "ChainedMessage", "Driver", "driver_named", "joined"]


class ChainedMessage(Packet):
    """A message on its way between two nodes; `per`: its permit will follow."""

    __slots__ = ()
    kind = "msg"
    fields = ("mid", "pid", "payload", "per")
    numbers = ("mid", "pid")

    def __new__(cls, mid: int, pid: int, payload: Any, per: bool) -> Self:
        return tuple.__new__(cls, (cls.kind, mid, pid, payload, per))


class ArrivingRun(Packet):
    """Messages of a chain that arrive together."""

    __slots__ = ()
    kind = "run"
    fields = ("mids", "pid", "payloads", "per")

    def __new__(cls, mids: tuple[int, ...], pid: int, payloads: tuple[Any, ...], per: bool) -> Self:
        return tuple.__new__(cls, (cls.kind, mids, pid, payloads, per))


def joined(messages: Iterable[Packet]) -> ArrivingRun:
    """Return the run of some messages that follow each other in a chain."""
    each = list(messages)
    _, _, pid, _, per = each[0]
    mids = tuple([message[1] for message in each])
    return ArrivingRun(mids, pid, tuple([message[3] for message in each]), per)


class Driver(ABC):
    """The calls by which an endpoint is driven."""

    name: ClassVar[str]
    reacts: ClassVar[bool]
    """Whether the client is called at each delivery (`on_delivery`), so that it may send
    from inside one; otherwise the driver takes deliveries after each event."""
    pumps: ClassVar[bool]
    """Whether packets leave in events of their own; otherwise, in the event that
    released them."""

    def check(self, endpoint: Endpoint) -> None:  # noqa: B027 - nothing to check is fine
        """Raise `LocalProtocolError` if the endpoint cannot be driven like this."""

    @abstractmethod
    def receive(self, endpoint: Endpoint, source: str, packet: Packet) -> None:
        """Hand over what arrived."""

    @abstractmethod
    def take(self, endpoint: Endpoint) -> list[Outgoing]:
        """Return what the endpoint puts on the network."""


class PacketDriver(Driver):
    """One packet at a time, as in the simulator."""

    name = "packets"
    reacts = True
    pumps = False

    def receive(self, endpoint: Endpoint, source: str, packet: Packet) -> None:
        endpoint.receive(source, packet)

    def take(self, endpoint: Endpoint) -> list[Outgoing]:
        return endpoint.take_packets()


class RunDriver(Driver):
    """Messages in runs, as in a node."""

    name = "runs"
    reacts = False
    pumps = True

    def check(self, endpoint: Endpoint) -> None:
        """Check rules that concern several settings at once.

        Raises:
            LocalProtocolError: The endpoint has no `take_runs` and `receive_run`.
        """
        if not isinstance(endpoint, FifoEndpoint):
            raise LocalProtocolError(
                f"{type(endpoint).__name__} has no take_runs and receive_run: "
                "check it with the driver packets"
            )

    def receive(self, endpoint: Endpoint, source: str, packet: Packet) -> None:
        assert isinstance(endpoint, FifoEndpoint)
        if isinstance(packet, ArrivingRun):
            _, mids, pid, payloads, per = packet
            endpoint.receive_run(source, MessageRun(mids, pid, payloads, per))
        else:
            endpoint.receive(source, packet)

    def take(self, endpoint: Endpoint) -> list[Outgoing]:
        assert isinstance(endpoint, FifoEndpoint)
        packets: list[Outgoing] = []
        while runs := endpoint.take_runs():
            for to, run in runs:
                pid = run.pid
                for mid, payload in zip(run.mids, run.payloads, strict=True):
                    packets.append((to, ChainedMessage(mid, pid, payload, run.per)))
                    pid = mid
        packets += [(to, Ack(mid)) for to, mid in endpoint.take_acks().items()]
        packets += [(to, Permit(mid)) for to, mid in endpoint.take_permits().items()]
        if isinstance(endpoint, Adaptive):
            packets += endpoint.take_control()
        return packets


DRIVERS: dict[str, Driver] = {driver.name: driver for driver in (PacketDriver(), RunDriver())}


def driver_named(name: str) -> Driver:
    """Return a driver by its name.

    Raises:
        LocalProtocolError: There is none of that name.
    """
    try:
        return DRIVERS[name]
    except KeyError:
        known = " and ".join(DRIVERS)
        raise LocalProtocolError(f"there is no driver {name!r}; there are {known}") from None
