"""`python -m causewire.node`: the same as `causewire node`."""

from __future__ import annotations

import argparse
import sys

from .command import __doc__ as description
from .command import configure, run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m causewire.node",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    configure(parser)
    try:
        return run(parser.parse_args())
    except (ValueError, OSError, RuntimeError) as error:
        print(f"causewire node: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
