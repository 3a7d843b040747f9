"""The check against brute force, on as many small random traces as one likes.

    python -m campaigns.check_fuzz [--runs 100000] [--seed S] [--jobs J]

The same campaign as in `tests/check`, which runs a quick share of it: causal runs,
runs that deliver in any order, causal runs with a planted violation, and runs of
which rows were dropped, swapped, duplicated, delayed or falsified; stored as they
happened, shuffled, or shuffled and without Lamport times. Every violation, every
count and every planted violation has to be found, and nothing else. A failure
names the run, and running the same seed again repeats it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from tests.check.campaign import campaign

SHARE = 1200
"""Runs that a worker does at once; all modes and orders are in it."""


def work(seed: int, start: int) -> Counter[Any]:
    """One share of the campaign."""
    return campaign(seed, start, SHARE)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    total: Counter[Any] = Counter()
    starts = range(0, options.runs, SHARE)
    with ProcessPoolExecutor(options.jobs) as pool:
        for done, seen in enumerate(pool.map(partial(work, options.seed), starts), 1):
            total += seen
            if sys.stderr.isatty():
                print(f"\r{done * SHARE:,} runs", end="", file=sys.stderr, flush=True)
    planted = total.pop("planted")
    print(f"{total.total():,} runs in {time.monotonic() - began:.0f} s, seed {options.seed}")
    print(f"{planted:,} planted violations, all found")
    for (mode, order, what), count in sorted(total.items()):
        print(f"{count:9,}  {mode}, {order}: {what}")


if __name__ == "__main__":
    main()
