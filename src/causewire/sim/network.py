"""The settings of a network: latency, bandwidth, loss, duplication, reordering.

`links.py` has the network at work. A packet goes through these steps, in this order:

    bandwidth    it waits until the uplink of its sender (or its link) is free,
                 and then occupies it for its bytes, including metadata
    loss         it may be lost, after it has used the bandwidth
    latency      drawn for each packet, from one distribution or by the regions of
                 sender and receiver; a fault may slow the link down
    reordering   it may be delayed further, so that later packets overtake it; or
                 channels are FIFO, and it never arrives before an earlier packet
                 of the same link
    duplication  a second copy may travel, with its own latency
    arrival      if the link is cut at that moment the packet is lost; if it is
                 held, the packet waits
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .errors import SimulationError
from .settings import Settings, by, choice, data_rate, flag, fraction, many, one_of, optional, text
from .times import Time, Uniform, span

__all__ = ["Regions", "SimulatedNetwork"]

MILLISECOND = 10**6


def _row(value: Any, what: str) -> tuple[Time, ...]:
    return many(span)(value, what)


def _place(value: Any, what: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise SimulationError(f"{what} must be a table of process = region, not {value!r}")
    return {text(k, what): text(v, f"{what}.{k}") for k, v in value.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions(Settings):
    """Latency by the regions of sender (row) and receiver (column).

    `place` gives the region of a process. Processes that it leaves out are
    assigned to the regions in turn, in the order of the processes.
    """

    label: ClassVar[str] = "regions"
    kind: ClassVar[str] = "regions"
    names: tuple[str, ...] = field(metadata=by(many(text)))
    matrix: tuple[tuple[Time, ...], ...] = field(metadata=by(many(_row)))
    place: Mapping[str, str] | None = field(default=None, metadata=by(optional(_place)))

    def check(self) -> None:
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        n = len(self.names)
        if not n or len(self.matrix) != n or any(len(row) != n for row in self.matrix):
            raise SimulationError(f"regions.matrix must be {n} rows of {n} latencies")

    def places(self, processes: Sequence[str]) -> list[int]:
        """Return the region of each process, by index.

        Raises:
            SimulationError: `place` names a region or a process that does not exist.
        """
        place = self.place or {}
        for process, region in place.items():
            if region not in self.names:
                raise SimulationError(f"regions.place: there is no region {region!r}")
            if process not in processes:
                raise SimulationError(f"regions.place: there is no process {process!r}")
        index = {name: i for i, name in enumerate(self.names)}
        return [
            index[place[process]] if process in place else i % len(self.names)
            for i, process in enumerate(processes)
        ]

    def longest(self) -> int:
        """Return about the longest latency to be expected between any two regions."""
        return max(entry.longest() for row in self.matrix for entry in row)


_regions = one_of(Regions)


def _latency(value: Any, what: str) -> Time | Regions:
    if isinstance(value, Regions):
        return value
    if isinstance(value, Mapping) and value.get("kind") == "regions":
        regions: Regions = _regions({k: v for k, v in value.items() if k != "kind"}, what)
        return regions
    return span(value, what)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNetwork(Settings):
    """The network of a run.

    `fifo` may be None: channels are then FIFO if the protocol needs that, and
    may reorder packets otherwise.
    """

    label: ClassVar[str] = "network"
    latency: Time | Regions = field(
        default=Uniform(1 * MILLISECOND, 9 * MILLISECOND), metadata=by(_latency)
    )
    bandwidth: int | None = field(default=None, metadata=by(optional(data_rate)))
    shared: str = field(default="uplink", metadata=by(choice("uplink", "link")))
    loss: float = field(default=0.0, metadata=by(fraction))
    duplicate: float = field(default=0.0, metadata=by(fraction))
    reorder: float = field(default=0.0, metadata=by(fraction))
    reorder_by: Time = field(default=Uniform(0, 20 * MILLISECOND), metadata=by(span))
    fifo: bool | None = field(default=None, metadata=by(optional(flag)))

    def check(self) -> None:
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        if self.loss == 1:
            raise SimulationError("network.loss must be below 1, or nothing would ever arrive")
        if self.fifo and self.reorder:
            raise SimulationError("network.reorder and network.fifo exclude each other")
