"""A node for a terminal or a shell pipe: lines in, messages out.

    bob: hello                  to bob
    bob,carol: hello            one message to both
    ?                           why has something not arrived?

Deliveries are printed as `alice: hello`, in causal order. When standard input ends,
the node waits until all is delivered and ends, too, unless it is to stay.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import sys
import threading
from pathlib import Path
from typing import TextIO

from ..core.endpoint import LocalProtocolError
from ..durations import DurationError, parse_duration
from ..protocols import DEFAULT, names
from ..transport import PeerGone, Superseded, UnknownPeer
from . import run as run_loop
from .addresses import InsecureAddressError
from .node import Node
from .receipt import Closed

__all__ = ["configure", "run"]

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")

EPILOG = """\
lines on standard input:
  bob: text              send to bob
  bob,carol: text        one message to both
  ?                      say what has not arrived, and why

example, in three terminals:
  causewire node --name alice --listen 127.0.0.1:9001
  causewire node --name bob --listen 127.0.0.1:9002 --peer alice=127.0.0.1:9001
  causewire node --name carol --listen 127.0.0.1:9003 \\
      --peer alice=127.0.0.1:9001 --peer bob=127.0.0.1:9002

exit status: 0 all that was sent is delivered, 1 not all, 2 bad usage or bad lines.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--name", required=True, help="the name of this process")
    add("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="default: %(default)s")
    add("--peer", action="append", default=[], metavar="NAME=HOST:PORT",
        help="where another process is; may be repeated")  # fmt: skip
    add("--protocol", default=DEFAULT, choices=names(), metavar="P", help="default: %(default)s")
    add("--key-file", metavar="PATH", help="the cluster's key: datagrams are encrypted")
    add("--insecure", action="store_true", help="without a key, listen beyond this machine")
    add("--trace", metavar="PATH", help="write what happens: .jsonl, .parquet or a directory")
    add("--run", default="node", help="the name of the run in the trace; default: %(default)s")
    add("--stay", action="store_true", help="go on when standard input ends")
    add("--count", type=int, metavar="N", help="end after N deliveries, not with the input")
    add("--drain", type=float, default=5.0, metavar="S",
        help="seconds to wait for deliveries in the end; default: %(default)g")  # fmt: skip
    add("--give-up-after", type=_patience, default="default", metavar="TIME",
        help="give up a peer that does not answer for so long, like 10s, or 'never'; "
        "default: 30s, or never for protocols that cannot continue without a peer")  # fmt: skip
    add("--rejoin", action="store_true",
        help="continue as a new incarnation when peers have given this process up")  # fmt: skip
    add("--events", action="store_true", help="log what happens to peers even if it is no trouble")


def _patience(text: str) -> float | str | None:
    """Return seconds, None for `never`, or the word `default`."""
    if text in ("never", "default"):
        return None if text == "never" else text
    if _NUMBER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text} has no unit: write {text}s or {text}min")
    try:
        return parse_duration(text) / 1e9
    except DurationError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration such as 500ms, 10s or 2min, nor 'never'"
        ) from None


def _in_options(error: Exception) -> str:
    """Return what an error says, with the options of the command that mend it."""
    match error:
        case UnknownPeer():
            return f"no address is known for {', '.join(error.names)}: give --peer NAME=HOST:PORT"
        case Superseded():
            return (
                f"{error.name} has been superseded: its peers accept only incarnation "
                f"{error.incarnation} and later ones; start it again, or give --rejoin to have "
                f"it continue as a new incarnation"
            )
        case InsecureAddressError():
            return str(error).replace("key=, or insecure=True", "--key-file, or --insecure")
    return str(error)


def run(args: argparse.Namespace) -> int:
    """Run a node until its input ends; `ValueError` if it cannot be."""
    peers = {}
    for text in args.peer:
        name, equals, place = text.partition("=")
        if not equals or not name:
            raise ValueError(f"--peer takes NAME=HOST:PORT, not {text!r}")
        peers[name] = place
    if args.count is not None and args.count < 1:
        raise ValueError(f"--count must be from 1 upward, not {args.count}")
    key = Path(args.key_file).read_bytes() if args.key_file else None
    node = Node(
        args.name,
        listen=args.listen,
        peers=peers,
        protocol=args.protocol,
        key=key,
        insecure=args.insecure,
        trace=args.trace,
        run=args.run,
        drain=args.drain,
        give_up_after=args.give_up_after,
        rejoin=args.rejoin,
    )
    logging.basicConfig(format="causewire node: %(message)s")
    if args.events:
        logging.getLogger("causewire").setLevel(logging.INFO)
    try:
        return run_loop(_Terminal(node, args).run())
    except InsecureAddressError as error:
        raise ValueError(_in_options(error)) from None


class _Terminal:
    """Joins a node and the standard streams."""

    def __init__(self, node: Node, args: argparse.Namespace) -> None:
        self._node = node
        self._args = args
        self._bad = False
        """Whether there was a line that is not understood, or goes to somebody unknown."""
        self._refused = False
        """Whether a message could not be sent or has failed, or no more can be received."""
        self._done = asyncio.Event()

    async def run(self) -> int:
        node = self._node
        async with node:
            host, port = node.address
            self._say(f"{node.name} listens on {host}:{port}")
            tasks = [asyncio.create_task(part) for part in (self._print(), self._watch())]
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(sys.stdin, loop), daemon=True).start()
            await self._done.wait()
            await node.close()
            await asyncio.gather(*tasks)
        if self._bad:
            return 2
        return 0 if node.drained and not self._refused else 1

    def _say(self, text: str) -> None:
        print(f"causewire node: {text}", file=sys.stderr, flush=True)

    def _read(self, lines: TextIO, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own, since a file or a terminal cannot be waited for."""
        try:
            for line in lines:
                asyncio.run_coroutine_threadsafe(self._line(line), loop).result()
            if not self._args.stay and self._args.count is None:
                loop.call_soon_threadsafe(self._done.set)
        except (RuntimeError, Closed):
            pass  # the loop has ended, and with it everything

    async def _line(self, line: str) -> None:
        line = line.rstrip("\r\n")
        if not line.strip():
            return
        if line.strip() == "?":
            reasons = [str(reason) for reason in self._node.blocked()]
            for reason in reasons or ["nothing is held back"]:
                self._say(reason)
            return
        to, colon, text = line.partition(":")
        receivers = [name.strip() for name in to.split(",")]
        try:
            if not colon:
                raise ValueError(f"a line is NAME[,NAME...]: TEXT, not {line[:40]!r}")
            whom = receivers[0] if len(receivers) == 1 else receivers
            await self._send(whom, text.removeprefix(" ").encode())
        except (LocalProtocolError, ValueError) as error:
            self._bad = True
            self._say(_in_options(error))
        except (PeerGone, Superseded) as error:
            self._refused = True
            self._say(_in_options(error))

    async def _send(self, to: str | list[str], payload: bytes) -> None:
        """Send a message; while the node pauses before it rejoins, wait."""
        while True:
            try:
                await self._node.send(to, payload)
                return
            except Superseded:
                if not self._args.rejoin:
                    raise
            await asyncio.sleep(0.1)

    async def _print(self) -> None:
        try:
            await self._print_messages()
        except Superseded as error:
            self._refused = True
            self._say(_in_options(error))
            self._done.set()

    async def _print_messages(self) -> None:
        left = self._args.count
        async for message in self._node:
            text = _harmless(message.payload.decode("utf-8", "backslashreplace"))
            print(f"{message.source}: {text}", flush=True)
            if left is not None:
                left -= 1
                if not left:
                    self._done.set()
                    return

    async def _watch(self) -> None:
        async for event in self._node.events():
            self._refused |= getattr(event, "failed", 0) > 0


def _harmless(text: str) -> str:
    """Return text with escapes for the characters that could control a terminal."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text])
