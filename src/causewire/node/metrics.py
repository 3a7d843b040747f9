"""The counters and gauges of a node in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..transport import PeerStatus, Status

__all__ = ["metrics"]

_COUNTERS = {
    "sent": "Messages accepted for sending, a multicast counts once.",
    "delivered": "Messages delivered to the application's queue.",
    "failed": "Copies of messages whose receiver is gone.",
    "datagrams_in": "Datagrams received.",
    "datagrams_out": "Datagrams sent.",
    "bytes_in": "Bytes received.",
    "bytes_out": "Bytes sent.",
    "lost": "Datagrams considered lost.",
    "resent": "Messages sent again.",
    "timeouts": "Retransmission timers that expired.",
    "trace_failed": "Traces that ended because they could not be written.",
}


def metrics(node: str, status: Status, queued: int) -> str:
    """Return all counters, and gauges for each peer.

    Args:
        node: The name of the node.
        status: The status of its transport.
        queued: The number of messages that wait for the application.
    """
    lines: list[str] = []
    who = f'node="{_quoted(node)}"'

    def family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> None:
        lines.append(f"# HELP causewire_{name} {text}")
        lines.append(f"# TYPE causewire_{name} {kind}")
        for labels, value in samples:
            lines.append(f"causewire_{name}{{{who}{labels}}} {value:.9g}")

    counts = status.counters
    for name, text in _COUNTERS.items():
        family(f"{name}_total", "counter", text, [("", counts[name])])
    dropped = sorted(counts["dropped"].items())
    reasons = [(f',reason="{_quoted(why)}"', n) for why, n in dropped]
    family("dropped_total", "counter", "Datagrams dropped, by reason.", reasons)
    family("queue_messages", "gauge", "Messages that wait for the application.", [("", queued)])
    peers = [(f',peer="{_quoted(name)}"', peer) for name, peer in status.peers.items()]
    gauges: tuple[tuple[str, str, Callable[[PeerStatus], float]], ...] = (
        ("peer_up", "Whether a peer answers.", lambda peer: peer.up),
        ("peer_messages", "Accepted for a peer, not yet delivered there.", lambda p: p.messages),
        ("peer_held", "Of these, held back by the protocol.", lambda peer: peer.held),
        ("peer_round_trip_seconds", "Smoothed round-trip time.", lambda peer: peer.round_trip),
    )
    for name, text, value in gauges:
        family(name, "gauge", text, [(label, value(peer)) for label, peer in peers])
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
