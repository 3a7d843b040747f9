"""The programs under examples/ run, and show what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_tour(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "tour.py"), run_name="__main__")
    fifo, csps = capsys.readouterr().out.split("\n\n")[1:3]
    assert fifo.startswith("fifo:")
    assert "VIOLATION" in fifo
    assert csps.startswith("csps:")
    assert "in order, with" in csps
