"""`causewire protocols`: the known protocols, as tables that fit on a terminal."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable
from typing import Any

from ..protocols import Protocol, names
from .named import protocol_named
from .output import fitted, print_json, say, table

__all__ = ["configure", "run"]

_KEY = """\
scales: throughput does not fall with distance. extra latency: beyond what
causality demands. message, process: space. time: at the sender, at the
receiver. With n processes, i senders to and o receivers from a process, b
messages buffered, p permits missing, u unacknowledged, r round-trip times, e
eager messages that lack their YCT."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="tell all about these")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.epilog = "examples:\n  causewire protocols\n  causewire protocols csps ks"


def run(args: argparse.Namespace) -> int:
    chosen = [protocol_named(name) for name in args.names or names()]
    if args.json:
        print_json({"protocols": [to_json(protocol) for protocol in chosen]})
    elif args.names:
        say("\n\n".join(map(_in_full, chosen)))
    else:
        print(_overview(chosen))
    return 0


def to_json(protocol: Protocol) -> dict[str, Any]:
    """Return the properties of a protocol as plain values."""
    return {
        field.name: getattr(protocol, field.name)
        for field in dataclasses.fields(protocol)
        if field.name not in ("endpoint", "option_effects", "chosen")
    }


def _overview(protocols: Iterable[Protocol]) -> str:
    """Return several tables, because one would be wider than a terminal."""
    does = [("name", "what it does")]
    gives = [("name", "causal", "carries", "tolerates", "group", "buffers")]
    costs = [("name", "message", "process", "time", "control packets")]
    delays = [("name", "extra latency", "in transit", "scales")]
    for p in protocols:
        does.append((p.name, p.summary))
        gives.append(
            (
                p.name,
                _causal(p),
                _carries(p),
                _bears(p),
                "fixed" if p.fixed_group else "open",
                p.buffering,
            )
        )
        costs.append(
            (
                p.name,
                p.message_space,
                p.process_space,
                f"{p.sender_time}, {p.receiver_time}",
                ", ".join(p.control_messages) or "none",
            )
        )
        delays.append((p.name, p.noncausal_latency, p.in_transit, _yes(p.throughput_scalable)))
    tables = [table(each) for each in (does, gives, costs, delays)]
    return "\n\n".join([*(fitted(text, 80) for text in tables), _KEY])


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _causal(p: Protocol) -> str:
    if not p.causal:
        return "NO"
    return "starves" if p.starves else "yes"


def _carries(p: Protocol) -> str:
    if p.unicast and p.multicast:
        return "any"
    return "unicast" if p.unicast else "broadcast"


def _bears(p: Protocol) -> str:
    """Return what a network may do to packets, in short."""
    borne = {
        "loss": p.tolerates_loss,
        "dups": p.tolerates_duplication,
        "disorder": not p.needs_fifo,
    }
    return ", ".join(word for word, is_borne in borne.items() if is_borne) or "nothing"


def _in_full(p: Protocol) -> str:
    rows = [
        ("from", p.paper),
        ("causal order", _yes(p.causal)),
        ("carries", ", ".join(w for w in ("unicast", "multicast", "broadcast") if getattr(p, w))),
        ("group", "fixed, known to all" if p.fixed_group else "open"),
        ("network", _network(p)),
        ("liveness", _liveness(p)),
        ("buffering", p.buffering),
        ("space", f"{p.message_space} in a message, {p.process_space} at a process"),
        ("time", f"{p.sender_time} at the sender, {p.receiver_time} at the receiver"),
        ("extra latency", p.noncausal_latency),
        ("as early as can be", _yes(p.latency_optimal)),
        ("in transit", p.in_transit),
        (
            "throughput",
            "does not fall with distance" if p.throughput_scalable else "falls with distance",
        ),
        ("control packets", ", ".join(p.control_messages) or "none"),
        ("options", ", ".join(p.options) or "none"),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{p.name}: {p.summary}"]
    lines += [f"  {name.ljust(width)}  {value}" for name, value in rows]
    return "\n".join(lines)


def _network(p: Protocol) -> str:
    if p.needs_fifo:
        return "must be reliable, with FIFO links"
    ills = ["reordering"]
    ills += ["duplication"] if p.tolerates_duplication else []
    ills += ["loss"] if p.tolerates_loss else []
    return "tolerates " + ", ".join(ills)


def _liveness(p: Protocol) -> str:
    if not p.live:
        return "may get stuck"
    if p.starves:
        return "a message may wait for ever while others keep sending"
    return "everything is delivered in the end"
