"""`causewire verify --starvation`: is there a run in which a message waits for ever?"""

from __future__ import annotations

import argparse

from ..core.endpoint import LocalProtocolError
from ..verify.lasso import find_starvation
from .errors import CommandError
from .output import print_json, say
from .progress import Progress
from .verify_request import protocol_of
from .verify_results import keep

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("starvation")
    add = group.add_argument
    add(
        "--starvation",
        action="store_true",
        help="look for a cycle on which a message of p0 is held while others keep sending",
    )
    add("--senders", type=int, metavar="N", help="how many keep sending; default: all but p0")
    add("--window", type=int, default=1, metavar="N", help="packets in a channel; default: 1")


def run(args: argparse.Namespace) -> int:
    processes = 3 if args.processes is None else args.processes
    senders = processes - 1 if args.senders is None else args.senders
    if not 2 <= processes <= 6:
        raise CommandError(f"--processes must be from 2 to 6, not {processes}")
    if not 0 < senders < processes:
        raise CommandError(f"--senders must be from 1 to {processes - 1}, not {senders}")
    if args.window < 1:
        raise CommandError(f"--window must be from 1 upward, not {args.window}")
    if args.regression is not None:
        raise CommandError("--regression is for runs that end: no test can wait for ever")
    try:
        with Progress("searching") as progress:
            result = find_starvation(
                protocol_of(args),
                processes=processes,
                senders=senders,
                window=args.window,
                progress=lambda states, transitions: progress.done(states, "states"),
            )
    except LocalProtocolError as error:
        raise CommandError(str(error)) from None
    if result.lasso is not None:
        keep(args, result.lasso.run(times=2))
    if args.json:
        print_json(result.to_json())
    else:
        say(result.words())
    return 0 if result.passed else 1
