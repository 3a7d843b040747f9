"""`python -m causewire.testing.wire`: seeded runs, one after the other."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from ...protocols import DEFAULT
from . import __doc__ as description
from .judge import Verdict
from .runs import play


def main(arguments: Sequence[str] | None = None) -> int:
    """Play them; returns 1 if there was anything to complain of."""
    parser = argparse.ArgumentParser(
        prog="python -m causewire.testing.wire",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--protocol", default=DEFAULT, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, default=1, help="how many seeds")
    parser.add_argument("--encrypt", action="store_true")
    parser.add_argument(
        "--failures", action="store_true", help="processes are given up, leave and collide, too"
    )
    parser.add_argument(
        "--stranded", action="store_true", help="some never reach each other again, for good"
    )
    parser.add_argument(
        "--strangers",
        action="store_true",
        help="floods, copies from elsewhere, wrong names, protocols and keys, and full disks, too",
    )
    args = parser.parse_args(arguments)
    start = time.perf_counter()
    total = Verdict(args.seed)
    bad = 0
    for seed in range(args.seed, args.seed + args.runs):
        key = b"k" * 32 if args.encrypt else None
        verdict = play(seed, args.protocol, key, args.failures, args.stranded, args.strangers)
        for name in ("sent", "delivered", "datagrams", "lost", "dropped", "seconds"):
            setattr(total, name, getattr(total, name) + getattr(verdict, name))
        if not verdict.fine:
            bad += 1
            print(f"seed {seed}: {'; '.join(verdict.complaints[:3])}", file=sys.stderr)
    took = time.perf_counter() - start
    print(
        f"{args.runs} runs of {args.protocol}, {bad} with complaints; {total.sent} messages, "
        f"{total.delivered} deliveries, {total.datagrams} datagrams, of which the network lost "
        f"{total.lost} and nodes dropped {total.dropped}; "
        f"{total.seconds:.0f} virtual seconds in {took:.1f} s"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
