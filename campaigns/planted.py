"""Violations planted in a large trace: does Spark find what one process finds?

python -m campaigns.planted
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from causewire.check import check
from causewire.pipeline import session
from causewire.pipeline.check import check_paths
from causewire.pipeline.large import check_large
from causewire.pipeline.limits import Limits
from causewire.pipeline.limits import Shape as Ways
from causewire.pipeline.pieces import layout
from causewire.testing.synthetic import Shape, write


def planted_table(folder: Path, events: int) -> None:
    """Violations that were planted, found both ways."""
    place = folder / "planted"
    write(place, Shape(100, events), wrong=1e-3)
    local = check(place)
    print(f"\nplanted: n=100, {events / 1e6:g} M events: {local.violations:,} violations")
    files = [str(file) for file in sorted(place.iterdir())]
    with session("local[2]"):
        same = check_paths([place], limits=Limits(large=events // 2)) == local
        print(f"  as it is stored: {'the same report' if same else 'ANOTHER REPORT'}")
    with session("local[2]") as spark:
        for ways in (Ways(blocks=2), Ways(stretches=8)):
            same = check_large(spark, "run-000000", layout(files), shape=ways) == local
            print(f"  {ways}: {'the same report' if same else 'ANOTHER REPORT'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--folder", help="where the trace goes; default: a temporary directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        planted_table(Path(place), options.events)


if __name__ == "__main__":
    main()
