"""The counters of a node in the text format of Prometheus."""

from __future__ import annotations

from ..transport import Transport

__all__ = ["metrics"]

_COUNTERS = {
    "sent": "Messages accepted for sending, a multicast as one.",
    "delivered": "Messages delivered to the application's queue.",
    "failed": "Copies of messages whose receiver is gone.",
    "datagrams_in": "Datagrams received.",
    "datagrams_out": "Datagrams sent.",
    "bytes_in": "Bytes received.",
    "bytes_out": "Bytes sent.",
    "lost": "Datagrams taken for lost.",
    "resent": "Messages sent again.",
    "timeouts": "Retransmission timers that expired.",
}


def metrics(transport: Transport) -> str:
    """All counters, and gauges for each peer."""
    lines: list[str] = []
    node = f'node="{_quoted(transport.name)}"'

    def family(name: str, kind: str, text: str, samples: list[tuple[str, float]]) -> None:
        lines.append(f"# HELP causewire_{name} {text}")
        lines.append(f"# TYPE causewire_{name} {kind}")
        for labels, value in samples:
            lines.append(f"causewire_{name}{{{node}{labels}}} {value:.9g}")

    counts = transport.counters()
    for name, text in _COUNTERS.items():
        family(f"{name}_total", "counter", text, [("", int(counts[name]))])  # type: ignore[arg-type]
    dropped = sorted(transport.stats.dropped.items())
    reasons = [(f',reason="{_quoted(why)}"', n) for why, n in dropped]
    family("dropped_total", "counter", "Datagrams dropped.", list(reasons))
    family("queue_messages", "gauge", "Waiting for the application.", [("", len(transport.queue))])
    peers = [(f',peer="{_quoted(name)}"', s) for name, s in sorted(transport.live.items())]
    family(
        "peer_up",
        "gauge",
        "Whether a peer answers.",
        [(label, s.established and not s.silent) for label, s in peers],
    )
    family(
        "peer_messages",
        "gauge",
        "Accepted for a peer, not yet delivered there.",
        [(label, s.has_messages) for label, s in peers],
    )
    family(
        "peer_held",
        "gauge",
        "Of these, held back by the protocol.",
        [(label, s.held) for label, s in peers],
    )
    family(
        "peer_round_trip_seconds",
        "gauge",
        "Smoothed round-trip time.",
        [(label, s.recovery.round_trip.smoothed) for label, s in peers],
    )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
