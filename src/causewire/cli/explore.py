"""`causewire explore`: look at a trace in the browser."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from ..trace import Trace, TraceError, trace_of
from .errors import CommandError
from .output import write_file
from .progress import Progress
from .traces import (
    INFERRED,
    add_trace_arguments,
    is_shiviz,
    open_input,
    open_traces,
    refusals,
    unreadable,
)

if TYPE_CHECKING:
    from ..explore import EndpointStates, InputRemarks
    from ..trace.formats.foreign import Foreign

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire explore run.parquet
  causewire explore node-a.jsonl node-b.jsonl node-c.jsonl --follow
  causewire explore app.log --regex 'RE'     (a ShiViz log; docs/cli.md has an expression)
  causewire explore traces/ --no-browser --port 8765
  causewire explore small.jsonl --save small.html --replay csps
  causewire explore spans.json --run 0123456789abcdef0123456789abcdef
  causewire explore found.jsonl              (of causewire verify --trace: with endpoint states)

The command prints the address of a page and opens it; Ctrl-C ends it. The page is for this machine
only: the server listens on the loopback interface, its address contains a secret token, requests of
other pages are refused, and nothing is loaded from anywhere else. Over SSH, forward the port
(ssh -L 8765:127.0.0.1:8765 HOST) and open the printed address.

On the page: drag or use the arrow keys to pan, scroll or press + and - to zoom, click a message to
see its causal past and future and what held it back, click a second one with Shift to see whether
the two are ordered. Press ? for all keys. docs/explore.md tells more.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_trace_arguments(parser)
    add = parser.add_argument
    add("--follow", action="store_true", help="read the trace again as its files grow")
    add("--port", type=int, default=0, metavar="N", help="the port to listen on; default: any")
    add(
        "--save",
        metavar="FILE.html",
        help="write a page with the trace in it, which needs no server, and exit; for small runs",
    )
    add(
        "--replay",
        metavar="PROTOCOL",
        help="with --save: show the run under this protocol as well, below it",
    )
    add(
        "--run",
        metavar="R",
        help="show this run first (--save: only this one); default: the first with a violation",
    )
    add("--no-browser", action="store_true", help="print the address, and open nothing")


def run(args: argparse.Namespace) -> int:
    from ..explore import explore

    if not 0 <= args.port <= 65535:
        raise CommandError(f"--port must be from 0 to 65535, not {args.port}")
    if args.follow and is_shiviz(args):
        raise CommandError("--follow reads traces that nodes write, not ShiViz logs")
    args.tolerate_cut = args.tolerate_cut or args.follow
    if args.replay is not None and args.save is None:
        raise CommandError("--replay is for --save: the page itself has a panel for replays")
    more = f" and {len(args.traces) - 1} more" if len(args.traces) > 1 else ""
    try:
        found = open_traces(args)
        if args.save is not None:
            return _save(args, found, Path(args.traces[0]).name + more)
        now = [found]

        def again() -> Trace:
            now[:] = [open_input(args)[0]]
            return now[0].trace

        server = explore(
            again if args.follow else found.trace,
            title=Path(args.traces[0]).name + more,
            follow=[Path(name) for name in args.traces] if args.follow else [],
            port=args.port,
            endpoints=_endpoints(args),
            run=args.run,
            remarks=lambda: _remarks(now[0]),
        )
    except TraceError as error:
        raise unreadable(error) from None
    except OSError as error:
        raise CommandError(f"port {args.port}: {error.strerror or error}") from None
    with server:
        print(f"{server.url}\nThe page is open until you press Ctrl-C.", flush=True)
        if not args.no_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return 0


def _endpoints(args: argparse.Namespace) -> EndpointStates | None:
    """Return the states of endpoints that the model checker has left next to a trace."""
    from ..explore import EndpointStates

    return EndpointStates.read(args.traces[0]) if len(args.traces) == 1 else None


def _remarks(found: Foreign) -> InputRemarks:
    """Return what the page says about the input, in the words of the other commands."""
    from ..explore import InputRemarks

    lines = [INFERRED] if found.inferred else []
    lines += refusals(found.refused, found.quarantine)
    return InputRemarks(found.refused.total(), lines, found.unread, found.inferred)


def _save(args: argparse.Namespace, found: Foreign, title: str) -> int:
    from ..explore import Api, Dataset
    from ..explore.replay import ReplayError
    from ..explore.saved import SaveError, saved

    trace = found.trace
    if args.run is not None:
        mine = [event for event in trace.events() if event.run == args.run]
        if not mine:
            raise CommandError(f"{trace.name}: there is no run {args.run!r}")
        trace = trace_of(mine, trace.name)
    dataset = Dataset(
        lambda: trace, title, endpoints=_endpoints(args), remarks=lambda: _remarks(found)
    )
    total = trace.about_rows()
    with Progress("reading") as progress:
        dataset.load(lambda done: progress.about(done, total, "rows"))
    api = Api(dataset)
    try:
        if args.replay is not None:
            api.replay(dataset, dataset.first or 0, args.replay)
        page = saved(api)
    except (ReplayError, SaveError) as error:
        raise CommandError(str(error)) from None
    write_file(args.save, page)
    print(f"{args.save}: {len(page.encode()) / 1e6:.1f} MB; open it in a browser")
    return 0
