"""`causewire workload`: a generated deployment, compared with production systems."""

from __future__ import annotations

import argparse
from typing import Any

from ..sim import SimulationError
from ..sim.characteristics import PUBLISHED, characteristics
from ..sim.workloads import Deployment
from .assignments import assign
from .errors import CommandError
from .output import count, print_json, table
from .progress import Progress

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire workload
  causewire workload --set size=10000 --set seed=3
  causewire workload --set fanout=50 --set depth=3 --json       (like Meta's)

Generates a microservice deployment (the workload `deployment` of causewire simulate) and prints
its characteristics next to those that studies of production systems have published. docs/study.md
names the studies.

exit status: 0 all figures are close to the published ones, 1 some are not.
"""


_LARGE = 5_000
"""Processes from which on it takes a noticeable time."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the deployment, such as size=500; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    settings: dict[str, Any] = {}
    for assignment in args.set:
        assign(settings, assignment)
    try:
        deployment = Deployment.from_dict(settings)
        with Progress("generating a deployment") as progress:
            if deployment.size >= _LARGE:
                progress.say(count(deployment.size, "process", "processes"))
            found = characteristics(deployment)
    except SimulationError as error:
        raise CommandError(str(error)) from None
    far = [row for row in PUBLISHED if not row.low <= found[row.key] <= row.high]
    plan = deployment.plan
    if args.json:
        print_json(
            {
                "processes": deployment.size,
                "services": len(plan.roles),
                "functions": len(plan.functions),
                "characteristics": found,
                "far_from_published": [row.key for row in far],
            }
        )
        return 1 if far else 0
    rows = [("", "published", "generated", "source")]
    for row in PUBLISHED:
        value = found[row.key]
        text = f"{value:.0%}" if row.published.endswith("%") else f"{value:.3g}"
        rows.append((row.text, row.published, text + " !" * (row in far), row.source))
    processes = count(deployment.size, "process", "processes")
    print(f"{processes}, {len(plan.roles)} services, {count(len(plan.functions), 'function')}\n")
    print(table(rows))
    if far:
        print("\n! is far from what has been published")
    return 1 if far else 0
