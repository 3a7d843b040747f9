"""The examples of docs/pipeline.md run, on the shared session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "pipeline.md"
EXAMPLES = re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(spark: SparkSession, number: Any) -> None:
    namespace: dict[str, object] = {}
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), namespace)
    assert namespace["spark"] is spark
