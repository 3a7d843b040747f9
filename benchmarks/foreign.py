"""What comes out of traces of other systems: a table of every format, from made-up requests.

    python -m benchmarks.foreign
    python -m benchmarks.foreign --requests 20000
    python -m benchmarks.foreign --files export/*.json.gz

Each request is that of `tests/trace/shop.py`: six calls and messages, of which one in ten
requests has two in the wrong order. `--files` reads other files instead, for instance
public data sets: Nezha, the Alibaba cluster traces converted to spans, or an export of a
collector.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from causewire.check import check
from causewire.trace.formats.foreign import detect, read_foreign
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


def row(name: str, paths: list[str]) -> None:
    begin = time.process_time()
    found = read_foreign(paths)
    report = check(found.trace, examples=0)
    seconds = time.process_time() - begin
    verdict = "in order" if report.ordered else f"{report.violations:,} violations"
    refused = ", ".join(f"{n:,} x {reason}" for reason, n in found.refused.items()) or "0"
    print(
        f"| {name} | {report.runs:,} | {report.events:,} | {report.messages:,} | {refused} | "
        f"{verdict} | {seconds:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--files", nargs="+", default=[])
    options = parser.parse_args()
    print("| input | runs | events | messages | refused | verdict | CPU seconds |")
    print("| --- | ---: | ---: | ---: | --- | --- | ---: |")
    if options.files:
        for file in options.files:
            row(f"{file} ({detect(locate(file))})", [file])
        return
    ops = [
        op
        for k in range(1, options.requests + 1)
        for op in (shop.overtaken(k) if k % 10 == 0 else shop.in_order(k))
    ]
    with tempfile.TemporaryDirectory() as place:
        for name, export in EXPORTS.items():
            file = Path(place) / "spans.gz"
            file.write_bytes(gzip.compress(export(ops), 1))
            row(name, [str(file)])


if __name__ == "__main__":
    main()
