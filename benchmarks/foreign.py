"""What comes out of traces of other systems: a table of every format, from made-up requests.

    python -m benchmarks.foreign
    python -m benchmarks.foreign --requests 20000
    python -m benchmarks.foreign --files export/*.json.gz

Each request of spans is that of `tests/trace/shop.py`: six calls and messages, of which one in
ten requests has two in the wrong order. ShiViz logs and tables have three messages for each
request, written by the services themselves, and the same two in the wrong order. `--files` reads
other files instead, for instance public data sets (`docs/measurements/foreign.md` names some).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from causewire.check import check
from causewire.trace import Event, read_shiviz, trace_of, write_shiviz
from causewire.trace.formats.foreign import Foreign, detect, read_foreign
from causewire.trace.storage import locate
from tests.trace import shop

EXPORTS: dict[str, Callable[[list[shop.Op]], bytes]] = {
    "OTLP JSON": shop.otlp,
    "OTLP JSON lines": lambda ops: shop.otlp(ops, lines=True),
    "OTLP protobuf": shop.otlp_protobuf,
    "Tempo": lambda ops: shop.otlp(ops, key="batches", in_base64=True),
    "Jaeger API": shop.jaeger,
    "Jaeger storage": shop.jaeger_lines,
    "Zipkin": shop.zipkin,
    "Zipkin, shared spans": lambda ops: shop.zipkin(ops, shared=True),
}


NAMED = (
    r"(?<host>\S*) (?<clock>{.*})\n"
    r"(?<event>send (?<send>\S+) to (?<to>\S+)|deliver (?<deliver>\S+))"
)
"""The expression of a log in which messages have names."""

COLUMNS = {
    "run": "request",
    "process": "host",
    "seq": "n",
    "time_ns": "at",
    "kind": {"column": "op", "values": {"PUB": "send", "SUB": "deliver"}},
    "origin": "sender",
    "mid": "number",
    "peers": {"column": "to", "split": ","},
}
"""The mapping of the tables."""


def logged(requests: int) -> Iterator[Event]:
    """Yield what the services of the shop log: an order, and an audit that follows it."""
    for k in range(1, requests + 1):
        run = f"request-{k}"
        arrivals = [("web", 1), ("audit", 1)]
        if k % 10 == 0:
            arrivals.reverse()
        yield Event(run, "web", 0, 100, None, "send", "web", 1, ("mail",))
        yield Event(run, "web", 1, 200, None, "send", "web", 2, ("audit",))
        yield Event(run, "audit", 0, 300, None, "deliver", "web", 2, ("web",))
        yield Event(run, "audit", 1, 400, None, "send", "audit", 1, ("mail",))
        for n, (origin, mid) in enumerate(arrivals):
            yield Event(run, "mail", n, 500 + n, None, "deliver", origin, mid, (origin,))


def records(events: list[Event]) -> list[dict[str, Any]]:
    """Return the same as a table with columns of its own."""
    return [
        {
            "request": e.run,
            "host": e.process,
            "n": e.seq,
            "at": e.time_ns,
            "op": "PUB" if e.kind == "send" else "SUB",
            "sender": e.origin,
            "number": e.mid,
            "to": ",".join(e.peers),
        }
        for e in events
    ]


def shiviz_rows(place: Path, events: list[Event]) -> None:
    """Print the rows of ShiViz logs: as we write them, and with names of messages."""
    ours, named = place / "ours.log", place / "named.log"
    write_shiviz(ours, events)

    def name(found: re.Match[str]) -> str:
        about = json.loads(found[2])
        message = f"{about['origin']}:{about['mid']}"
        return (
            f"send {message} to {about['peers'][0]}" if found[1] == "send" else f"deliver {message}"
        )

    named.write_text(re.sub(r"(?m)^(send|deliver) ({.*})$", name, ours.read_text()))
    row("ShiViz, as `convert` writes it", lambda: logs(read_shiviz(ours).events))
    row("ShiViz, names of messages", lambda: logs(read_shiviz(named, NAMED).events))


def logs(events: list[Event]) -> Foreign:
    """Return the events of a log; what is wrong in a log is an error, not a refused row."""
    return Foreign(trace_of(events, "log"))


def table_rows(place: Path, events: list[Event]) -> None:
    """Print the rows of tables: CSV, JSON lines, Parquet."""
    table = records(events)
    files = [place / "log.csv.gz", place / "log.jsonl.gz", place / "log.parquet"]
    with gzip.open(files[0], "wt", 1, newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    lines = "".join(json.dumps(record) + "\n" for record in table)
    files[1].write_bytes(gzip.compress(lines.encode(), 1))
    pq.write_table(pa.Table.from_pylist(table), files[2])
    for name, file in zip(("CSV", "JSON lines", "Parquet"), files, strict=True):

        def read(path: str = str(file)) -> Foreign:
            return read_foreign([path], "table", columns=json.dumps(COLUMNS))

        row(f"table, {name}", read)


def spans(name: str, file: str) -> None:
    """Print the row of a file of spans."""
    seen = [0]
    row(name, lambda: read_foreign([file], progress=seen.append), seen)


def row(name: str, read: Callable[[], Foreign], seen: list[int] | None = None) -> None:
    """Print a row; the last of `seen` is how many rows the input has, if not each is an event."""
    begin = time.process_time()
    found = read()
    report = check(found.trace, examples=0)
    seconds = time.process_time() - begin
    verdict = "in order" if report.ordered else f"{report.violations:,} violations"
    refused = ", ".join(f"{n:,} x {reason}" for reason, n in found.refused.items()) or "0"
    rows = seen[-1] if seen else report.events + len(found.quarantine)
    print(
        f"| {name} | {rows:,} | {report.runs:,} | {report.events:,} | {report.messages:,} | "
        f"{refused} | {verdict} | {seconds:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--files", nargs="+", default=[])
    options = parser.parse_args()
    print("| input | rows | runs | events | messages | refused | verdict | CPU seconds |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- | ---: |")
    if options.files:
        for file in options.files:
            spans(f"{file} ({detect(locate(file))})", file)
        return
    ops = [
        op
        for k in range(1, options.requests + 1)
        for op in (shop.overtaken(k) if k % 10 == 0 else shop.in_order(k))
    ]
    check(list(logged(1)))  # the kernel is compiled, or loaded, before anything is measured
    with tempfile.TemporaryDirectory() as place:
        for name, export in EXPORTS.items():
            file = Path(place) / "spans.gz"
            file.write_bytes(gzip.compress(export(ops), 1))
            spans(name, str(file))
        events = list(logged(options.requests))
        shiviz_rows(Path(place), events)
        table_rows(Path(place), events)


if __name__ == "__main__":
    main()
