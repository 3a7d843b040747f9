"""Every Python example in the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{n}")
    for page in PAGES
    for n, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example(code: str) -> None:
    exec(compile(code, "example", "exec"), {})  # what it says of itself, it asserts


def test_pages_have_examples() -> None:
    with_examples = {str(example.id).partition(".md")[0] for example in EXAMPLES}
    assert with_examples >= {"README", "node", "simulation", "testing", "traces", "verification"}
