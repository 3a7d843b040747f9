"""A network in memory that joins endpoints, under the control of a test.

Nothing happens by itself and nothing is random: a packet arrives when the test
says so, and the test may lose it, copy it, or bring it back long after. What the
application sees goes to an `Oracle`, which judges it.

    >>> from causewire.testing import Network
    >>> network = Network.of("fifo", ["alice", "bob", "carol"])
    >>> a = network.send("alice", {"bob", "carol"}, "have you heard?")
    >>> network.arrive(1)  # at carol, who answers
    >>> b = network.send("carol", "bob", "oh no!")
    >>> network.arrive(2)  # at bob, before the question
    >>> print(network.oracle.explain(network.oracle.violations[0]))
    bob delivered carol#1 before alice#1, which happened before it:
        carol delivered alice#1 before it sent carol#1

The application is one function, `react`, which is called for every delivery. What it
sends is sent from inside the delivery (through `Endpoint.on_delivery`) or, if the network
is created with `inside=False`, after the endpoint has handled the packet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple, Self

from .. import protocols
from ..core.endpoint import Delivery, Endpoint, LocalProtocolError, Packet, destinations
from ..core.errors import CausewireError
from ..protocols import Protocol
from .oracle import Oracle, SentMessage

__all__ = ["Flying", "Network", "RestlessError"]


class Flying(NamedTuple):
    """A packet in flight: the `number`-th, from 0, that went over its link."""

    source: str
    destination: str
    number: int
    packet: Packet


class Network:
    """Endpoints, the packets in flight between them, and the oracle's record.

    Packets are collected from an endpoint after everything that it does. A `lazy` network
    leaves them there until `collect`, like a driver that is slow to take them, or lets
    acks accumulate to send them together.
    """

    __slots__ = (
        "_inside",
        "_lazy",
        "_mids",
        "_nested",
        "endpoints",
        "in_flight",
        "links",
        "oracle",
        "react",
    )

    def __init__(
        self, endpoints: Iterable[Endpoint], *, inside: bool = True, lazy: bool = False
    ) -> None:
        self.endpoints = {endpoint.me: endpoint for endpoint in endpoints}
        self.in_flight: list[Flying] = []
        """Packets on their way, in the order in which they were sent."""
        self.links: dict[tuple[str, str], list[Packet]] = {}
        """Everything that was ever put on each link (source, destination)."""
        self.oracle = Oracle()
        self.react: Callable[[str, SentMessage], object] | None = None
        """The application: called with the process and the message it delivered."""
        self._inside = inside
        self._lazy = lazy
        self._nested = 0
        """The number of nested calls of the application."""
        self._mids = dict.fromkeys(self.endpoints, 0)
        if inside:
            for name, endpoint in self.endpoints.items():
                endpoint.on_delivery = self._listener(name)

    @classmethod
    def of(
        cls,
        protocol: str | Protocol,
        processes: Collection[str],
        *,
        inside: bool = True,
        lazy: bool = False,
        protocol_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return a network of new endpoints of one protocol.

        Args:
            protocol: A name, or a `Protocol`.
            processes: The names of the processes, which are also the group.
            inside: Whether the application sends from inside deliveries.
            lazy: Whether packets stay at their endpoint until `collect`.
            protocol_options: Options of the protocol.

        Raises:
            LocalProtocolError: An unknown protocol or option, or a bad name.
        """
        about = protocols.describe(protocol).with_options(**(protocol_options or {}))
        endpoints = [protocols.create(about, name, processes) for name in processes]
        return cls(endpoints, inside=inside, lazy=lazy)

    def __copy__(self) -> Self:
        """Return an independent network in the same state, without an application."""
        endpoints = map(copy, self.endpoints.values())
        twin = type(self)(endpoints, inside=self._inside, lazy=self._lazy)
        twin.in_flight = self.in_flight[:]
        twin.links = {link: packets[:] for link, packets in self.links.items()}
        twin.oracle = copy(self.oracle)
        twin._mids = self._mids.copy()
        return twin

    # -- what the application does --------------------------------------------

    def send(
        self, process: str, to: str | Collection[str], payload: Any = None, name: str = ""
    ) -> SentMessage:
        """Send a message from `process`, and return the oracle's record of it.

        Args:
            process: The sender.
            to: One destination, or several.
            payload: The payload.
            name: What explanations call the message; by default its sender and number.

        Raises:
            LocalProtocolError: The protocol cannot send to these destinations.
        """
        endpoint = self.endpoints[process]
        mid = self._mids[process] + 1
        # The oracle must know of it first: a copy to oneself is delivered inside.
        message = self.oracle.sent(process, mid, destinations(to), payload, name)
        self._mids[process] = mid
        try:
            number = endpoint.send(to, payload)
        except LocalProtocolError:
            self.oracle.retract(message)
            self._mids[process] = mid - 1
            raise
        if number != mid:
            raise AssertionError(f"{process} numbered its message {mid} as {number}")
        if not self._nested:
            self._after(endpoint)
        return message

    # -- what the network does ------------------------------------------------

    def arrive(self, k: int = 0) -> None:
        """Let the `k`-th packet in flight arrive."""
        source, destination, _, packet = self.in_flight.pop(k)
        endpoint = self.endpoints[destination]
        endpoint.receive(source, packet)
        self._after(endpoint)

    def lose(self, k: int = 0) -> None:
        """Lose the `k`-th packet in flight."""
        del self.in_flight[k]

    def duplicate(self, k: int = 0) -> None:
        """Duplicate the `k`-th packet in flight; the copy is right behind it."""
        self.in_flight.insert(k, self.in_flight[k])

    def replay(self, source: str, destination: str, number: int) -> None:
        """Let a packet that was ever sent over a link arrive once more."""
        endpoint = self.endpoints[destination]
        endpoint.receive(source, self.links[source, destination][number])
        self._after(endpoint)

    def retransmit(self, process: str) -> None:
        """Run the periodic block of a process."""
        endpoint = self.endpoints[process]
        endpoint.retransmit()
        self._after(endpoint)

    def collect(self, process: str) -> None:
        """Put on the network what the endpoint of `process` has to send."""
        for destination, packet in self.endpoints[process].take_packets():
            link = self.links.setdefault((process, destination), [])
            self.in_flight.append(tuple.__new__(Flying, (process, destination, len(link), packet)))
            link.append(packet)

    # -- the end --------------------------------------------------------------

    def arrive_all(self, limit: int = 100_000) -> None:
        """Let all packets arrive in the order they were sent, and all that follow from them.

        Raises:
            RestlessError: Packets keep coming.
        """
        while True:
            if self._lazy:
                for process in self.endpoints:
                    self.collect(process)
            if not self.in_flight:
                return
            while self.in_flight:
                limit -= 1
                if limit < 0:
                    raise RestlessError("packets keep coming")
                self.arrive(0)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight and no endpoint has anything left to do."""
        return not self.in_flight and all(e.idle for e in self.endpoints.values())

    def settle(self, *, retransmit: bool = True, rounds: int = 100) -> bool:
        """Let everything arrive, and the periodic blocks run, until nothing changes.

        Returns whether the network came to rest with nothing left to do.

        Raises:
            RestlessError: The periodic blocks never finish.
        """
        self.arrive_all()
        if not retransmit:
            return self.idle
        quiet = 0
        while not self.idle:
            before = self.state()
            for process in self.endpoints:
                self.retransmit(process)
            self.arrive_all()
            # Two rounds, as what one round sends may only show in the next.
            quiet = quiet + 1 if self.state() == before else 0
            if quiet == 2:
                return False
            rounds -= 1
            if not rounds:
                raise RestlessError("periodic blocks keep changing things, and never finish")
        return True

    def state(self) -> tuple[int, ...]:
        """Return a summary of all endpoints: equal if nothing changed, whatever was sent."""
        return tuple(map(hash, self.endpoints.values()))

    # -- inside ---------------------------------------------------------------

    def _listener(self, process: str) -> Callable[[Delivery], None]:
        def on_delivery(delivery: Delivery) -> None:
            message = self.oracle.delivered(process, *delivery)
            if message is not None and self.react is not None:
                self._nested += 1
                try:
                    self.react(process, message)
                finally:
                    self._nested -= 1

        return on_delivery

    def _after(self, endpoint: Endpoint) -> None:
        """Take deliveries and packets from an endpoint that has done something."""
        if not self._inside:
            self._hand_over(endpoint)
        if not self._lazy:
            self.collect(endpoint.me)

    def _hand_over(self, endpoint: Endpoint) -> None:
        """Give the application what was delivered, and let it react to that."""
        process = endpoint.me
        delivered = [
            self.oracle.delivered(process, *delivery) for delivery in endpoint.take_deliveries()
        ]
        if self.react is not None:
            for message in delivered:
                if message is not None:
                    self.react(process, message)


class RestlessError(CausewireError):
    """A network does not come to rest."""
