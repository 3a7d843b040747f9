"""Everything about a run, as one value.

The same value, with the same seed, gives the same run: the same rows in the same
order. It can be written in Python, or come from a plain dict (an experiment
file), in which a part may be given by its kind alone if nothing else about it is
set:

    SimulationConfig.from_dict({
        "protocol": "csps", "processes": 20, "messages": 1000, "seed": 7,
        "workload": "relay",
        "network": {"latency": {"kind": "lognormal", "median": "5ms"}, "loss": 0.01},
        "faults": [{"kind": "partition", "at": "100ms", "sides": 2},
                   {"kind": "heal", "at": "300ms"}],
    })
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .. import protocols
from ..core.endpoint import Endpoint, LocalProtocolError
from ..protocols import Protocol
from .errors import SimulationError
from .faults import Fault, Timeline, fault
from .network import Regions, SimulatedNetwork
from .process import Processes
from .settings import Settings, by, flag, integer, many, one_of, optional, optional_duration, text
from .sizes import Sizes
from .workloads import Uniform, Workload, workload

__all__ = ["SimulationConfig"]

MILLISECOND = 10**6
SECOND = 10**9


def _protocol(value: Any, what: str) -> str | Protocol:
    if isinstance(value, Protocol):
        return value
    try:
        return protocols.describe(text(value, what)).name
    except LocalProtocolError as error:
        raise SimulationError(f"{what}: {error}") from None


def _options(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SimulationError(f"{what} must be a table of the protocol's options, not {value!r}")
    return dict(value)


_table = one_of(Processes)


def _processes(value: Any, what: str) -> Processes:
    processes: Processes = Processes(count=value) if type(value) is int else _table(value, what)
    return processes


def _workload(value: Any, what: str) -> Workload:
    chosen: Workload = workload({"kind": value} if isinstance(value, str) else value, what)
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationConfig(Settings):
    """Everything about a run: protocol, workload, processes, network, faults, seed."""

    label: ClassVar[str] = "run"
    protocol: str | Protocol = field(metadata=by(_protocol))
    """The name of a protocol, or a `Protocol` (which may be of your own making)."""
    options: Mapping[str, Any] = field(default_factory=dict, metadata=by(_options))
    """Options of the protocol, by name."""
    workload: Workload = field(default=Uniform(), metadata=by(_workload))
    processes: Processes = field(default=Processes(), metadata=by(_processes))
    messages: int | None = field(default=None, metadata=by(optional(integer(0))))
    """The number of messages sent in all, including replies and relays; by default 1,000."""
    network: SimulatedNetwork = field(
        default=SimulatedNetwork(), metadata=by(one_of(SimulatedNetwork))
    )
    sizes: Sizes = field(default=Sizes(), metadata=by(one_of(Sizes)))
    faults: tuple[Fault, ...] = field(default=(), metadata=by(many(fault)))
    retransmission: int | None = field(default=None, metadata=by(optional_duration))
    """The period of `retransmit`, and the age at which a message is sent again.

    If not given, four times what a packet may be expected to take.
    """
    patience: int = field(default=64, metadata=by(integer(1)))
    """Periods without a send, a delivery or a fault after which nothing is sent again."""
    until: int | None = field(default=None, metadata=by(optional_duration))
    """End the run at this time, even if something is left to do."""
    seed: int = field(default=0, metadata=by(integer(0)))
    allow_worse_network: bool = field(default=False, metadata=by(flag))
    """Run the protocol on a network worse than it claims to tolerate."""

    def check(self) -> None:
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        kind = self.workload.kind
        own = self.workload.own_names()
        if own is not None:
            if self.processes.count not in (None, len(own)):
                raise SimulationError(
                    f"the {kind} workload has {len(own)} processes, not {self.processes.count}"
                )
            if self.processes.names not in ((), own):
                raise SimulationError(f"the {kind} workload names its processes itself")
        messages = self.workload.own_messages()
        if messages is not None and self.messages not in (None, messages):
            raise SimulationError(
                f"the {kind} workload has {messages} messages, not {self.messages}"
            )
        if self.retransmission == 0:
            raise SimulationError("run.retransmission must be more than 0")
        self._everything_exists()
        self._can_carry()
        self._network_is_good_enough()

    @property
    def about(self) -> Protocol:
        """The protocol with its options, and the properties that it has with them."""
        return protocols.describe(self.protocol).with_options(**self.options)

    def group(self) -> tuple[str, ...] | None:
        """Return the members of the group, or None if the protocol needs no fixed group."""
        return self.names() if self.about.fixed_group else None

    def names(self) -> tuple[str, ...]:
        """Return the names of the processes of the run, in order."""
        own = self.workload.own_names()
        return self.processes.all_names() if own is None else own

    def number_of_messages(self) -> int:
        """Return the number of messages that are sent in all."""
        own = self.workload.own_messages()
        if own is not None:
            return own
        return 1000 if self.messages is None else self.messages

    def fifo(self) -> bool:
        """Return whether channels are FIFO: as set, or else as the protocol needs."""
        if self.network.fifo is None:
            return self.about.needs_fifo
        return self.network.fifo

    def period(self) -> int:
        """Return the retransmission time-out."""
        if self.retransmission is not None:
            return self.retransmission
        longest = self.network.latency.longest()
        if self.network.reorder:
            longest += self.network.reorder_by.longest()
        if self.network.bandwidth:
            size = self.sizes.payload + self.sizes.message
            longest += size * SECOND // self.network.bandwidth
        return max(4 * longest, MILLISECOND)

    def ticks(self) -> bool:
        """Return whether the retransmission timers run at all.

        Where nothing is lost, a protocol that tolerates loss has nothing to repeat.
        Other protocols may use `retransmit` for something else, such as Newtop's
        null messages.
        """
        protocol = self.about
        if protocol.tolerates_loss:
            return self.network.loss > 0 or any(fault.cuts for fault in self.faults)
        return protocol.endpoint.retransmit is not Endpoint.retransmit

    def _everything_exists(self) -> None:
        """Refuse options, processes and faults that do not exist."""
        names = self.names()
        try:
            protocols.create(self.about, names[0], self.group())
        except (LocalProtocolError, TypeError, ValueError) as error:
            raise SimulationError(f"run.options: {error}") from None
        Timeline(self.faults, names)
        if isinstance(self.network.latency, Regions):
            self.network.latency.places(names)

    def _can_carry(self) -> None:
        """Refuse a workload whose messages the protocol cannot send."""
        protocol = self.about
        names = self.names()
        everybody = len(names) - 1
        for reach in self.workload.reach(names):
            if reach == everybody and protocol.broadcast:
                continue
            if protocol.unicast if reach <= 1 else protocol.multicast:
                continue
            can = "only broadcasts" if not protocol.unicast else "has no multicast"
            raise SimulationError(
                f"{protocol.name} {can}, and cannot carry the {self.workload.kind} workload "
                f"(messages to {reach} of {everybody} others)"
            )

    def _network_is_good_enough(self) -> None:
        """Refuse a network that is worse than the protocol claims to tolerate."""
        if self.allow_worse_network:
            return
        protocol = self.about
        problem = None
        if not protocol.tolerates_loss:
            if self.network.loss:
                problem = f"tolerates no loss (network.loss = {self.network.loss})"
            elif cutting := [fault.kind for fault in self.faults if fault.cuts]:
                problem = f"tolerates no loss (a {cutting[0]} loses packets)"
        if not protocol.tolerates_duplication and self.network.duplicate:
            problem = f"tolerates no duplication (network.duplicate = {self.network.duplicate})"
        if protocol.needs_fifo and self.network.fifo is False:
            problem = "needs FIFO channels (network.fifo = false)"
        if problem:
            raise SimulationError(f"{protocol.name} {problem}; allow_worse_network lets it run")
