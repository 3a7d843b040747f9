"""`causewire report`: the tables and figures of a sweep, and a page that shows them."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..report.plan import ReportError
from ..report.sweeps import report_sweep
from .errors import CommandError
from .output import count, print_json

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire sweep experiments/cykas-fig5.toml --out fig5
  causewire report fig5          (and look at fig5/report/index.html)

Each figure is written as PNG and SVG, with the numbers behind it as CSV.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("directory", metavar="DIR", help="the output of a sweep")
    add("--out", metavar="DIR", help="where the report goes; default: DIR/report")
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    folder = Path(args.directory)
    out = Path(args.out) if args.out else folder / "report"
    try:
        if not folder.is_dir():
            raise ReportError(f"{folder}: no such directory")
        told = report_sweep(folder, out)
    except ReportError as error:
        raise CommandError(str(error)) from None
    if args.json:
        print_json({**told._asdict(), "page": str(told.page)})
    else:
        shown = f"{count(told.figures, 'figure')} and {count(told.tables, 'table')}"
        print(f"{told.page}: {shown} of {count(told.runs, 'run')}")
    return 0
