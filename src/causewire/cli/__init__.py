"""The command line: `causewire COMMAND ...`, one module per command.

A module of this package that is named in `COMMANDS` has `configure(parser)`,
which adds its arguments, and `run(args)`, which returns the exit status. It is
imported only when its command is used, so no command needs what only another one
needs. What a command cannot do it raises as `CommandError`, in one line.

    0    success
    1    a check found a violation
    2    bad usage or bad input: one line on standard error, and nothing written
    130  interrupted
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from .errors import CommandError

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "demo": "see causality break, hold, and why, in a chat of five",
    "protocols": "list the protocols: what each guarantees, needs and costs",
    "simulate": "run a whole system in simulated time, faults included",
    "replay": "send the messages of a trace again, under every protocol",
    "workload": "generate microservices, and compare them with production",
    "check": "is a trace causally ordered, and if not, why?",
    "explore": "look at a trace in the browser: zoom, click, ask why",
    "draw": "draw a space-time diagram of a trace, as SVG",
    "convert": "write a trace in another format: Parquet, JSON lines, ShiViz",
    "watch": "follow traces that nodes are still writing, on Spark",
    "sweep": "simulate every run of an experiment, on Spark",
    "report": "tables and figures of a sweep, and a page that shows them",
    "verify": "model-check a protocol within bounds: all orders, all workloads",
    "node": "send and receive messages in causal order over UDP",
    "bench": "run the benchmarks",
}

_EXTRAS = {
    "cryptography": "node",
    "numba": "trace",
    "numpy": "trace",
    "pandas": "spark",
    "pyarrow": "trace",
    "pyspark": "spark",
    "vl_convert": "report",
}
"""The extra that installs each optional package."""

_EPILOG = """\
examples:
  causewire protocols
  causewire simulate --protocol fifo --processes 5 --messages 200 \\
      --workload relay --seed 7 --trace run.parquet
  causewire check run.parquet
  causewire draw run.parquet --violation 1 -o violation.svg

causewire COMMAND --help tells more about a command.

exit status: 0 all is well, 1 a check found a violation, 2 bad usage or bad input.
"""


_Run = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and for which -5ms is a value, not an option."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # argparse's own, as of 3.14

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{' '.join(message.split())} (try {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    if argv is None:  # a process of its own: one that is ended ends what it has begun
        signal.signal(signal.SIGTERM, _terminated)
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if not word.startswith("-")), "")
    name = f"causewire {command}" if command in COMMANDS else "causewire"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # whatever the terminal can show
    try:
        status = _run(arguments, command)
        sys.stdout.flush()
        return status
    except CommandError as error:
        return _fail(name, str(error))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        return _fail(name, f'needs {package}: pip install "causewire[{_EXTRAS[package]}]"')
    except BrokenPipeError:
        # The reader has gone. What is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(name, f"{where}{error.strerror or error}")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _terminated(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def _run(arguments: Sequence[str], command: str) -> int:
    parser, run = _parser(command)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as done:  # --help, --version
        return int(done.code or 0)
    return run(args)


def _fail(name: str, reason: str) -> int:
    print(f"{name}: {' '.join(reason.split())}", file=sys.stderr)
    return 2


def _parser(command: str) -> tuple[argparse.ArgumentParser, _Run]:
    """Return a parser with the arguments of this command, and the function that runs it."""
    formatter = partial(argparse.RawDescriptionHelpFormatter, max_help_position=26)
    run: _Run = _nothing
    parser = _Parser(
        prog="causewire",
        description="Causal message delivery: nothing is delivered before what it may depend on.",
        epilog=_EPILOG,
        formatter_class=formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for name, sentence in COMMANDS.items():
        child = commands.add_parser(
            name,
            help=sentence,
            description=sentence[0].upper() + sentence[1:] + ("" if sentence[-1] == "?" else "."),
            formatter_class=formatter,
            allow_abbrev=False,
        )
        if name == command:
            module = import_module(f".{name}", __package__)
            module.configure(child)
            run = module.run
    return parser, run


def _nothing(args: argparse.Namespace) -> int:
    """Placeholder for an unknown command, which the parser refuses before this is called."""
    raise AssertionError(args)


class _Version(argparse.Action):
    """Prints the version; looks it up only when it is needed."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help=str(kwargs.get("help", "")))

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        from importlib.metadata import version

        print(f"causewire {version('causewire')}")
        parser.exit()
