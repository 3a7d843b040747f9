"""The page about traces: its examples run, and it leaves nothing out."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from causewire.check import Report
from causewire.trace import NAMES

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_run(example):
    exec(compile(example, "docs/traces.md", "exec"), {})


def test_every_column_and_every_count_is_on_the_page():
    assert len(EXAMPLES) == 2
    counts = {field.name for field in dataclasses.fields(Report)} - {"examples", "bad_rows"}
    for name in {*NAMES, *counts}:
        assert f"`{name}`" in PAGE, name
