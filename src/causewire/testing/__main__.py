"""`python -m causewire.testing PROTOCOL PROFILE SEED`: repeat one random run.

Tells what happens in it and, if it fails, makes a small counterexample of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from .. import protocols
from ..core.endpoint import LocalProtocolError
from .adversary import run
from .narrative import narrate
from .profiles import PROFILES
from .shrinking import shrink

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m causewire.testing",
        description="Repeat one random run, tell what happens in it and, if it fails, "
        "make a small counterexample of it.",
    )
    parser.add_argument("protocol", choices=protocols.names())
    parser.add_argument("profile", choices=list(PROFILES))
    parser.add_argument("seed", type=int)
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of the protocol"
    )
    parser.add_argument("--json", action="store_true", help="print the small case as JSON")
    arguments = parser.parse_args(argv)
    options: dict[str, Any] = {}
    try:
        for option in arguments.option:
            name, _, value = option.partition("=")
            options[name] = json.loads(value)
        outcome = run(
            arguments.protocol, arguments.profile, arguments.seed, protocol_options=options
        )
    except (LocalProtocolError, json.JSONDecodeError) as error:
        parser.error(f"--option: {error}")
    case = outcome.play.case(f"{arguments.protocol} {arguments.profile} {arguments.seed}")
    if not outcome.ok:
        small = shrink(case)
        if arguments.json:
            print(json.dumps(small.to_json(), indent=1))
        else:
            print(narrate(case), "", "smaller:", narrate(small), sep="\n")
        return 1
    print(json.dumps(case.to_json(), indent=1) if arguments.json else narrate(case))
    return 0


if __name__ == "__main__":
    sys.exit(main())
