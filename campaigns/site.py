"""Write the figures and the protocol pages of the documentation: python -m campaigns.site

The simulator makes every diagram and every number, so a second run writes the same
files; `tests/test_site.py` compares them. Options: --check writes nothing, and fails if
a file is not current.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from causewire import protocols
from causewire.protocols import describe
from causewire.report import draw, overtakings
from causewire.sim import Config, Summary, simulate
from causewire.trace import DELIVER, SEND, Event, trace_of

from .first_figure import first_figure

__all__ = ["main", "pages"]

DOCS = Path(__file__).parents[1] / "docs"
IDEAS: dict[str, str] = tomllib.loads(Path(__file__).with_name("ideas.toml").read_text("utf-8"))

_CONTROL = ("ack", "permit", "control")
_SHOWN = frozenset(
    {"send", "release", "receive", "deliver", *_CONTROL, *(f"{kind}_receive" for kind in _CONTROL)}
)
_MATRIX = [["1ms", "8ms", "40ms"], ["8ms", "1ms", "8ms"], ["40ms", "8ms", "1ms"]]
_NETWORK = {"latency": {"kind": "regions", "names": ["a", "b", "c"], "matrix": _MATRIX}}


def _row(seq: int, ms: int, lamport: int, who: str, kind: str, what: str, *peers: str) -> Event:
    origin, mid = what.split(":")
    return Event("story", who, seq, ms * 10**6, lamport, kind, origin, int(mid), peers)


_BROADCAST = (
    _row(0, 0, 1, "ann", SEND, "ann:1", "bob", "cy"),
    _row(0, 8, 2, "bob", DELIVER, "ann:1", "ann"),
    _row(1, 10, 3, "bob", SEND, "bob:1", "ann", "cy"),
    _row(1, 18, 4, "ann", DELIVER, "bob:1", "bob"),
    _row(0, 18, 4, "cy", DELIVER, "bob:1", "bob"),
    _row(1, 40, 5, "cy", DELIVER, "ann:1", "ann"),
)
_UNICAST = (
    _row(0, 0, 1, "ann", SEND, "ann:1", "cy"),
    _row(1, 2, 2, "ann", SEND, "ann:2", "bob"),
    _row(0, 10, 3, "bob", DELIVER, "ann:2", "ann"),
    _row(1, 12, 4, "bob", SEND, "bob:1", "cy"),
    _row(0, 20, 5, "cy", DELIVER, "bob:1", "bob"),
    _row(1, 40, 6, "cy", DELIVER, "ann:1", "ann"),
)


class _Kept:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, event: Event) -> None:
        self.events.append(event)


def told(protocol: str, story: Sequence[Event]) -> list[Event]:
    """Return the events of the story under a protocol."""
    kept = _Kept()
    workload = {"kind": "replay", "trace": trace_of(story)}
    settings: dict[str, Any] = {"protocol": protocol, "workload": workload, "network": _NETWORK}
    simulate(Config.from_dict(settings), kept, run=protocol)
    return [event for event in kept.events if event.kind in _SHOWN]


def picture(protocol: str, story: Sequence[Event]) -> str:
    """Return the story under a protocol as a diagram."""
    events = told(protocol, story)
    found = overtakings(events)
    return draw(events, processes=["ann", "bob", "cy"], violation=found[0] if found else None)


def measured(protocol: str) -> Summary:
    """Return the summary of a run of ten processes, each of which sends every 5 ms."""
    kind = "uniform" if describe(protocol).unicast else "broadcast"
    workload = {"kind": kind} if kind == "uniform" else {"kind": kind, "lockstep": False}
    return simulate(
        Config.from_dict(
            {
                "protocol": protocol,
                "workload": workload,
                "processes": {"count": 10, "think": {"kind": "exponential", "mean": "5ms"}},
                "messages": 500,
                "network": {"latency": {"kind": "uniform", "low": "1ms", "high": "9ms"}},
                "seed": 1,
            }
        )
    )


def _page(name: str) -> str:
    about = describe(name)
    run = measured(name)
    kind = "point-to-point messages" if about.unicast else "broadcasts"
    copies = max(run.copies, 1)
    yes = {True: "yes", False: "no"}
    carries = [k for k in ("unicast", "multicast", "broadcast") if getattr(about, k)]
    guarantees = [
        ("causal order", yes[about.causal]),
        ("every message is delivered", "no: it can starve" if about.starves else yes[about.live]),
        ("carries", ", ".join(carries)),
        ("tolerates loss by itself", yes[about.tolerates_loss]),
        ("tolerates duplicates", yes[about.tolerates_duplication]),
        ("any order of packets", yes[not about.needs_fifo]),
        ("members may join and leave", yes[not about.fixed_group]),
        ("messages in transit", about.in_transit),
        ("latency beyond causal order", about.noncausal_latency),
        ("space in a message", about.message_space),
    ]
    costs = [
        ("mean latency", f"{run.latency.mean_ns / 1e6:.1f} ms"),
        ("99th percentile", f"{run.latency.p99_ns / 1e6:.1f} ms"),
        ("held at the sender, mean", f"{run.held_at_sender.mean_ns / 1e6:.1f} ms"),
        ("held at the receiver, mean", f"{run.held_at_receiver.mean_ns / 1e6:.1f} ms"),
        ("metadata of a copy", f"{run.metadata_bits / copies / 8:.1f} bytes"),
        ("control packets for a message", f"{run.control_per_message:.2f}"),
    ]
    kept = "" if about.causal else " It breaks causal order, which is marked in red."
    story = (
        "ann writes to cy, over a slow link, and to bob; bob, who has read it, writes to cy. This "
        f"is what the simulator does under `{name}`.{kept} [How to read a diagram](../diagrams.md)."
    )
    setting = (
        f"One run of 500 {kind} among ten processes, each of which sends every 5 ms on average, "
        "over a network of 1 to 9 ms (`causewire simulate`, seed 1). An omniscient protocol would "
        "take about 5 ms. [Experiments](../experiments.md) has more runs, and "
        "[Measurements](../measurements/index.md) has real nodes."
    )
    lines = [
        f"# {name}",
        "",
        f"*{about.summary[0].upper()}{about.summary[1:]}.* ({about.paper})",
        "",
        IDEAS[name].strip(),
        "",
        f"![ann, bob and cy under {name}]({name}.svg)",
        "",
        story,
        "",
        "## Guarantees",
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {what} | {said} |" for what, said in guarantees),
        "",
        "## Measured",
        "",
        setting,
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {what} | {said} |" for what, said in costs),
        "",
        "[All protocols](../protocols.md), [how they are verified](../verification.md)",
        "",
    ]
    return "\n".join(lines)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every file that the simulator writes, and its contents."""
    figures = DOCS / "figures"
    yield figures / "without-causal-order.svg", first_figure(told("fifo", _BROADCAST))
    yield figures / "with-causal-order.svg", first_figure(told("adaptive", _BROADCAST))
    for name in IDEAS:
        story = _UNICAST if describe(name).unicast else _BROADCAST
        yield DOCS / "protocols" / f"{name}.svg", picture(name, story)
        yield DOCS / "protocols" / f"{name}.md", _page(name)


def main() -> int:
    """Write what is not current, or with --check say what that is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    assert set(IDEAS) <= set(protocols.names())
    stale = 0
    for path, text in pages():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(path)
        if not args.check:
            path.write_text(text, encoding="utf-8")
    return int(bool(stale and args.check))


if __name__ == "__main__":
    raise SystemExit(main())
