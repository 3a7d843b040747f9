"""Playing the figures of a paper: which packet arrives next, and what that led to."""

from __future__ import annotations

from causewire.testing import Network


def arrive(network: Network, source: str, destination: str, kind: str = "") -> None:
    """The oldest packet (of a kind) on its way from one process to another arrives."""
    for n, flying in enumerate(network.in_flight):
        if flying[:2] == (source, destination) and kind in ("", flying.packet.kind):
            network.arrive(n)
            return
    raise AssertionError(f"no {kind} from {source} to {destination} in {network.in_flight}")


def payloads(network: Network, process: str) -> list[str]:
    """What a process delivered, in order."""
    return [
        message.payload
        for who, what, message in network.oracle.history
        if (who, what) == (process, "deliver")
    ]


def kinds(network: Network) -> list[tuple[str, str, str]]:
    """What is on its way."""
    return [(source, to, packet.kind) for source, to, _, packet in network.in_flight]
