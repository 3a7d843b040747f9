"""The page about traces: it leaves nothing out."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from causewire.check import Report
from causewire.trace import NAMES

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")


def test_every_column_and_every_count_is_on_the_page() -> None:
    counts = {field.name for field in dataclasses.fields(Report)} - {"examples", "bad_rows"}
    for name in {*NAMES, *counts}:
        assert f"`{name}`" in PAGE, name
