"""Write the figures of docs/experiments.md from the reports of its sweeps.

    python -m campaigns.figures                 sweep what has not been swept, write all figures
    python -m campaigns.figures distance        only this experiment

Sweeps go to out/experiments and continue where they were stopped; some take an hour. Their runs are
simulated, so every machine writes the same figures.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from causewire.cli import main as causewire

__all__ = ["FIGURES", "main"]

ROOT = Path(__file__).parents[1]
FIGURES: dict[str, dict[str, str]] = {
    "almeida-table1": {
        "latency-unicast": "almeida-unicast",
        "latency-broadcast": "almeida-broadcast",
    },
    "cykas-fig4": {"fig4": "cykas-fig4", "fig4-by-bandwidth": "cykas-fig4-by-bandwidth"},
    "cykas-fig5": {"fig5-execution": "cykas-fig5"},
    "cykas-fig6": {"fig6": "cykas-fig6"},
    "distance": {"throughput": "distance"},
    "metadata": {"metadata": "metadata"},
}
"""For each experiment: names of figures in its report, and in docs/figures."""


def main() -> None:
    """Sweep, and copy figures."""
    parser = argparse.ArgumentParser(description="Write the figures of docs/experiments.md.")
    parser.add_argument("name", nargs="*", help=f"one of {', '.join(FIGURES)}; default: all")
    args = parser.parse_args()
    for name in args.name or FIGURES:
        out = ROOT / "out" / "experiments" / name
        if causewire(["sweep", str(ROOT / "experiments" / f"{name}.toml"), "--out", str(out)]):
            raise SystemExit(f"{name}: the sweep failed")
        for figure, kept in FIGURES[name].items():
            shutil.copy(out / "report" / f"{figure}.png", ROOT / "docs" / "figures" / f"{kept}.png")


if __name__ == "__main__":
    main()
