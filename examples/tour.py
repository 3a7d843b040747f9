"""See causality break, hold, and why: one small story under several protocols.

    python examples/tour.py

Ann tells Bob and Cy that she lost her ring; Bob, who hears it first, answers both
that he found it. Ann's words are slow to reach Cy. What does Cy make of it?
"""

from __future__ import annotations

from causewire import protocols
from causewire.testing import Network, Oracle
from causewire.testing.network import Flying

PROTOCOLS = ["fifo", "adaptive", "csps", "sps", "rst", "ks", "bss"]


def integers(network: Network) -> int:
    """Metadata that travelled, in integers and identifiers."""
    packets = [packet for link in network.links.values() for packet in link]
    return sum(packet.integers + packet.identifiers for packet in packets)


def heard(oracle: Oracle, process: str) -> str:
    events = [
        message.payload
        for who, what, message in oracle.history
        if (who, what) == (process, "deliver")
    ]
    return ", then ".join(f"“{words}”" for words in events)


def play(protocol: str) -> None:
    print(f"{protocol}: {protocols.describe(protocol).summary}")
    network = Network.of(protocol, ["ann", "bob", "cy"])

    def react(process: str, message: object) -> None:
        if process == "bob":
            network.send("bob", ["ann", "cy"], "Found it!")

    network.react = react
    network.send("ann", ["bob", "cy"], "Lost my ring.")

    def slow(flying: Flying) -> bool:
        return (flying.source, flying.destination, flying.number) == ("ann", "cy", 0)

    while not all(map(slow, network.in_flight)):
        network.arrive([slow(flying) for flying in network.in_flight].index(False))
    for endpoint in network.endpoints.values():
        for blocked in endpoint.blocked():
            print(f"  meanwhile  {blocked}")
    network.settle()
    print(f"  Cy hears   {heard(network.oracle, 'cy')}")
    for violation in network.oracle.violations:
        print("  VIOLATION  " + network.oracle.explain(violation).replace("\n", "\n           "))
    if not network.oracle.violations:
        packets = sum(map(len, network.links.values()))
        print(f"  in order, with {packets} packets and {integers(network)} integers of metadata")
    print()


def main() -> None:
    print(__doc__.partition("\n\n")[2].partition("\n\n")[2])
    for protocol in PROTOCOLS:
        play(protocol)


if __name__ == "__main__":
    main()
