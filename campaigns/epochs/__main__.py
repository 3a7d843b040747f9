"""Search all runs of small groups, and print a row for each scenario."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import product

from causewire.protocols import describe

from . import __doc__ as about
from .search import SCENARIOS, Program, Search

PROTOCOLS = ("ks", "rst", "bss")


def programs(protocol: str, counts: tuple[int, ...]) -> list[Program]:
    """Return all programs in which each process sends that many messages."""
    kind = describe(protocol)

    def destinations(process: int) -> list[tuple[int, ...]]:
        others = tuple(other for other in range(3) if other != process)
        all_others = [others] if kind.multicast or not kind.unicast else []
        return [*((other,) for other in others if kind.unicast), *all_others]

    each = [product(destinations(k), repeat=count) for k, count in enumerate(counts)]
    return list(product(*each))


def main(argv: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m campaigns.epochs",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--protocol", action="append", help="default: ks, rst and bss")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="default: all")
    parser.add_argument(
        "--messages", default="1,0,0", help="how many messages p0, p1 and p2 send; default: 1,0,0"
    )
    parser.add_argument("--batched", action="store_true", help="several events in a turn")
    parser.add_argument("--states", type=int, default=2_000_000, help="at most, for each program")
    args = parser.parse_args(argv)
    counts = tuple(map(int, args.messages.split(",")))
    status = 0
    for protocol in args.protocol or PROTOCOLS:
        for name in args.scenario or SCENARIOS:
            states = transitions = depth = 0
            seen: Counter[str] = Counter()
            verdict, begin = "holds", time.process_time()
            every = programs(protocol, counts)
            for program in every:
                search = Search(SCENARIOS[name], protocol, program, args.batched)
                found = search.run(args.states)
                states, transitions = states + found.states, transitions + found.transitions
                depth = max(depth, found.depth)
                seen += found.seen
                if found.wrong:
                    verdict, status = f"violated, {len(found.story)} steps", 1
                    print(f"{program}: {found.wrong}", *found.story, sep="\n  ", file=sys.stderr)
                    break
                if not found.complete:
                    verdict, status = "incomplete", 1
            what = f"`--scenario '{name}' --messages {args.messages}{' --batched' * args.batched}`"
            print(
                f"| `{protocol}` | {what} | {len(every)} | {states:,} | {transitions:,} | {depth} "
                f"| {time.process_time() - begin:.1f} s | {verdict} |",
                flush=True,
            )
            print(f"  seen: {dict(seen)}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
