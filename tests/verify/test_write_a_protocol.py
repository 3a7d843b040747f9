"""docs/write-a-protocol.md shows what its program prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "write-a-protocol.md"


def test_the_page_shows_what_its_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text("utf-8")
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    exec(compile(program, PAGE.name, "exec"), {})
    assert capsys.readouterr().out == shown
