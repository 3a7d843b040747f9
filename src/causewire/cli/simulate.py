"""`causewire simulate`: one run in simulated time, and its summary.

A TOML file (`--config`) can set everything about a run (docs/simulation.md). The
arguments set what is needed most often, and take precedence over the file.
"""

from __future__ import annotations

import argparse
import tomllib
from typing import Any

from ..protocols import DEFAULT
from ..sim import Config, Constant, SimulationError, Summary, Times, Uniform, simulate
from ..sim.workloads import KINDS
from ..trace import TraceError, TraceWriter, open_writer
from .assignments import assign, table_of
from .errors import CommandError
from .named import OWN, protocol_named
from .output import count, duration, print_json, say, table
from .progress import Progress
from .quantities import nanoseconds

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire simulate --protocol csps --processes 20 --messages 5000 --workload hotspot --seed 7
  causewire simulate --protocol fifo --workload relay --set workload.hops=5 --trace run.parquet
  causewire simulate --config system.toml --seed 8 --json
  causewire simulate --workload replay --set workload.trace='"run.parquet"'

Durations have a unit: 250us, 5ms, 1.5s. Without --latency and --jitter a packet takes 1 to
9 ms. The same arguments and seed give the same trace, byte for byte.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add = parser.add_argument
    add(
        "--protocol",
        metavar="P",
        help=f"one that causewire protocols lists, {OWN}; default: {DEFAULT}",
    )
    add("--processes", type=int, metavar="N", help="default: 10")
    add(
        "--messages", type=int, metavar="M", help="messages in all, replies included; default: 1000"
    )
    add("--workload", metavar="W", help=f"one of {', '.join(KINDS)}; default: uniform")
    add("--seed", type=int, metavar="S", help="of every random draw; default: 0")
    add("--loss", type=float, metavar="P", help="probability that a packet is lost")
    add("--duplicate", type=float, metavar="P", help="probability that a packet comes twice")
    add("--latency", metavar="D", help="what each packet takes at least")
    add("--jitter", metavar="D", help="and up to how much more, drawn for each")
    add(
        "--bandwidth",
        metavar="B",
        help="of each process's uplink: 1MB/s, 10Mbit/s, or bytes a second",
    )
    add("--config", metavar="FILE.toml", help="everything else: regions, faults, jobs, sizes, ...")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one setting of the file, such as network.fifo=true; may be repeated",
    )
    add("--trace", metavar="PATH", help="write what happened: .parquet, .jsonl, or a directory")
    add("--run", metavar="NAME", help="what the run is called in the trace")
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    settings = _settings(args)
    try:
        config = Config.from_dict(settings)
        if args.trace is None:
            summary, rows = _simulate(config, args, None), 0
        else:
            with open_writer(args.trace) as writer:
                summary = _simulate(config, args, writer)
            rows = writer.rows
    except (SimulationError, TraceError) as error:
        raise CommandError(str(error)) from None
    if args.json:
        print_json({**summary.to_dict(), "trace": args.trace, "rows": rows})
    else:
        say(_told(summary))
        if args.trace is not None:
            print(f"trace: {args.trace}, {count(rows, 'row')} (causewire check {args.trace})")
    return 0


def _simulate(config: Config, args: argparse.Namespace, writer: TraceWriter | None) -> Summary:
    with Progress("simulating") as progress:
        return simulate(
            config,
            writer,
            run=args.run or "",
            progress=lambda sent, total: progress.of(sent, total, "messages sent"),
        )


# -- settings ------------------------------------------------------------------------


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the file, overridden by the arguments."""
    settings = _read(args.config) if args.config is not None else {}
    settings.setdefault("protocol", DEFAULT)
    for name in ("protocol", "messages", "seed"):
        value = getattr(args, name)
        if value is not None:
            settings[name] = value
    if args.workload is not None and _kind(settings.get("workload")) != args.workload:
        settings["workload"] = args.workload
    if args.processes is not None:
        table_of(settings, "processes")["count"] = args.processes
    for name in ("loss", "duplicate"):
        value = getattr(args, name)
        if value is not None:
            table_of(settings, "network")[name] = value
    if args.latency is not None or args.jitter is not None:
        table_of(settings, "network")["latency"] = _latency(args.latency, args.jitter)
    if args.bandwidth is not None:
        bare = args.bandwidth.isdecimal()
        table_of(settings, "network")["bandwidth"] = int(args.bandwidth) if bare else args.bandwidth
    for assignment in args.set:
        assign(settings, assignment)
    if ":" in str(settings["protocol"]):
        settings["protocol"] = protocol_named(settings["protocol"])
    return settings


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: not TOML: {error}") from None


def _kind(workload: Any) -> Any:
    return workload.get("kind") if isinstance(workload, dict) else workload


def _latency(latency: str | None, jitter: str | None) -> Any:
    """Return a latency from `latency` to `latency` + `jitter`, uniformly distributed."""
    low = nanoseconds(latency or "1ms", "--latency")
    if jitter is None:
        return Constant(low)
    return Uniform(low, low + nanoseconds(jitter, "--jitter"))


# -- the summary in words ----------------------------------------------------------------


def _told(s: Summary) -> str:
    among = count(s.processes, "process", "processes")
    each = s.metadata_bytes / max(s.messages, 1)
    bits = s.metadata_bits / max(s.copies, 1)
    facts = [
        (
            "simulated time",
            f"{duration(s.execution_ns)}, last packet at {duration(s.simulated_ns)}",
        ),
        (
            "in transit",
            f"at most {s.max_in_transit:,} of a sender, {s.max_in_transit_per_pair:,} of a pair",
        ),
        ("send buffers", f"at most {s.max_send_buffer:,} messages"),
        ("receive buffers", f"at most {s.max_receive_buffer:,} messages"),
        ("packets", _packets(s)),
        ("payload", f"{s.payload_bytes:,} bytes"),
        ("metadata", f"{s.metadata_bytes:,} bytes, {each:,.1f} a message; {bits:,.0f} bits a copy"),
    ]
    lines = [
        f"{s.protocol}, {s.workload}: {count(s.messages, 'message')} among {among}, seed {s.seed}",
        _delivered(s),
        "",
        _times(s),
        "",
        *(f"{name:17}{value}" for name, value in facts),
    ]
    return "\n".join(lines)


def _delivered(s: Summary) -> str:
    if s.undelivered is None:
        text = f"all {count(s.copies, 'copy', 'copies')} delivered"
    else:
        excuse = "unavoidable" if s.undelivered.unavoidable else "the protocol's failure"
        reasons = "".join(f"\n  {reason}" for reason in s.undelivered.reasons)
        undelivered = count(s.undelivered.copies, "copy", "copies")
        text = f"{undelivered} of {s.copies:,} NOT DELIVERED ({excuse}):{reasons}"
    if s.duplicates:
        text += f"\n{count(s.duplicates, 'duplicate')} delivered"
    return text


def _times(s: Summary) -> str:
    kinds = {
        "from send to delivery": s.latency,
        "held at the sender": s.held_at_sender,
        "held at the receiver": s.held_at_receiver,
    }
    if s.jobs:
        kinds["from send to job"] = s.job_delay
    rows = [("", "mean", "median", "99 %", "most")]
    rows += [(name, *_row(times)) for name, times in kinds.items()]
    return table(rows)


def _row(t: Times) -> tuple[str, str, str, str]:
    return duration(t.mean_ns), duration(t.p50_ns), duration(t.p99_ns), duration(t.max_ns)


def _packets(s: Summary) -> str:
    text = ", ".join(f"{number:,} {kind}" for kind, number in s.packets.items())
    text += f" ({s.control_per_message:.2f} control packets a message)"
    events = {
        "sent again": s.retransmissions,
        "lost": s.lost,
        "duplicated": s.duplicated,
        "refused": s.refused,
    }
    noted = [f"{number:,} {what}" for what, number in events.items() if number]
    return "; ".join([text, *noted])
