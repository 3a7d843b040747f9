"""`causewire replay`: the messages of a trace again, under every protocol."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from .. import protocols
from ..core.errors import LocalProtocolError
from ..protocols import Protocol
from ..sim import Config, SimulationError, Summary, simulate
from ..sim.workloads import Replay
from ..trace import TraceError
from ..trace.formats.names import SPAN_FORMATS
from .assignments import assign, table_of
from .errors import CommandError
from .named import OWN, protocol_named
from .output import count, duration, print_json, say, table
from .progress import Progress
from .traces import Counted, add_trace_arguments, format_of, open_traces, span_options, unreadable

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire replay run.parquet
  causewire replay spans.json --protocol csps --protocol adaptive --set network.latency=0.25ms
  causewire replay jaeger-export/ --no-pace --set network.loss=0.01 --json

Every message is sent again when everything has been delivered that its send depended on. Of spans
(OTLP, Jaeger, Zipkin), calls, replies and messages in queues are sent between service instances;
requests that an instance handles at the same time do not depend on each other. Without --protocol,
all protocols that can carry the messages are compared. docs/simulation.md has the settings.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_trace_arguments(parser)
    add = parser.add_argument
    add(
        "--protocol",
        action="append",
        metavar="P",
        help=f"a protocol, {OWN}; may be repeated; default: all that can",
    )
    add("--run", metavar="NAME", help="the run to replay; default: the only one, or all spans")
    add("--no-pace", action="store_true", help="send as soon as possible: do not keep pauses")
    add("--seed", type=int, default=0, metavar="S", help="of every random draw; default: 0")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the simulation, such as network.latency=5ms; may be repeated",
    )
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    try:
        workload = _workload(args)
        summaries, refused = _runs(args, workload)
    except (SimulationError, TraceError, LocalProtocolError) as error:
        raise unreadable(error) from None
    if args.json:
        found = {name: summary.to_dict() for name, summary in summaries.items()}
        print_json({"protocols": found, "refused": refused})
        return 0
    say(_told(args, workload, summaries, list(refused)))
    return 0


def _told(
    args: argparse.Namespace, workload: Replay, summaries: dict[str, Summary], refused: list[str]
) -> str:
    script = workload.script
    among = count(len(script.names), "process", "processes")
    undelivered = any(summary.undelivered is not None for summary in summaries.values())
    rows = [_heading(undelivered)]
    rows += [_row(name, summary, undelivered) for name, summary in summaries.items()]
    lines = [
        f"{count(script.messages, 'message')} among {among}, seed {args.seed}",
        "",
        table(rows),
        "",
    ]
    compared = _protocols(args)
    others = [name for name in summaries if not compared[name].causal]
    if others:
        lines.append(f"do not keep causal order: {', '.join(others)}")
    if refused:
        lines.append(f"cannot carry these messages: {', '.join(refused)}")
    return "\n".join(lines).rstrip("\n")


def _workload(args: argparse.Namespace) -> Replay:
    by_request = format_of(args) in SPAN_FORMATS and span_options(args).process_by == "request"
    trace = open_traces(args).trace
    total = trace.about_rows()
    with Progress("reading") as progress:
        read = Counted(trace, lambda done: progress.about(done, total, "events"))
        return Replay(trace=read, run=args.run, pace=not args.no_pace, by_request=by_request)


def _runs(args: argparse.Namespace, workload: Replay) -> tuple[dict[str, Summary], dict[str, str]]:
    """Return the summary under each protocol, and why others cannot carry the messages."""
    settings: dict[str, Any] = {}
    for assignment in args.set:
        assign(settings, assignment)
    table_of(settings, "network")
    summaries: dict[str, Summary] = {}
    refused: dict[str, str] = {}
    chosen_protocols = _protocols(args)
    for number, (name, protocol) in enumerate(chosen_protocols.items(), 1):
        chosen = {**settings, "protocol": protocol, "seed": args.seed, "workload": workload}
        try:
            config = Config.from_dict(chosen)
        except SimulationError as error:
            if args.protocol:
                raise
            refused[name] = str(error)
            continue
        with Progress(f"{name}, {number} of {len(chosen_protocols)} protocols") as progress:
            summaries[name] = simulate(config, progress=partial(_show, progress))
    if not summaries:
        raise CommandError(next(iter(refused.values())))
    return summaries, refused


def _protocols(args: argparse.Namespace) -> dict[str, Protocol]:
    """Return the protocols to compare, by name: those asked for, or all that are live."""
    if args.protocol:
        chosen = map(protocol_named, args.protocol)
        return {protocol.name: protocol for protocol in chosen}
    every = map(protocols.describe, protocols.names())
    return {protocol.name: protocol for protocol in every if protocol.live}


def _show(progress: Progress, sent: int, total: int) -> None:
    progress.of(sent, total, "messages sent")


_HEADING = (
    "protocol",
    "latency",
    "99 %",
    "held at\nsender",
    "held at\nreceiver",
    "bits of\nmetadata",
    "control\npackets",
    "not\ndelivered",
)


def _heading(undelivered: bool) -> tuple[str, ...]:
    return _HEADING if undelivered else _HEADING[:-1]


def _row(name: str, s: Summary, undelivered: bool) -> tuple[str, ...]:
    cells = (
        name,
        duration(s.latency.mean_ns),
        duration(s.latency.p99_ns),
        duration(s.held_at_sender.mean_ns),
        duration(s.held_at_receiver.mean_ns),
        f"{s.metadata_bits / max(s.copies, 1):,.0f}",
        f"{s.control_per_message:.2f}",
        "0" if s.undelivered is None else f"{s.undelivered.copies:,}",
    )
    return cells if undelivered else cells[:-1]
