"""The programs under examples/ run, and show what they say."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from causewire.protocols import DEFAULT

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_tour(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "tour.py"), run_name="__main__")
    fifo, default, csps = capsys.readouterr().out.split("\n\n")[1:4]
    assert fifo.startswith("fifo:")
    assert "VIOLATION" in fifo
    assert default.startswith(f"{DEFAULT}:")
    assert "held at its receiver" in default
    assert csps.startswith("csps:")
    assert "in order, with" in csps


SHOWN = {
    "chat": """\
What Cy, who joined last, has seen:
(earlier) ann: Has anybody seen my ring?
(earlier) bob: Yes. I found it!
ann: Welcome, Cy.
cy: Congratulations, Ann.
""",
    "cart": """\
phone, laptop and tablet: the same cart
jam and bread are in it: True
""",
    "text": """\
fifo:
  ann has 'To be or not to be'
  bob has 'To be or not to be'
  cy  has 'To be', 13 lost
adaptive:
  ann has 'To be or not to be'
  bob has 'To be or not to be'
  cy  has 'To be or not to be'
""",
    "jobs": """\
w2 is gone; encode has to be done again
done: compress, encode, index, render, train, upload
""",
    "snapshot": """\
fifo:
  west has received money from north that north has not sent
adaptive:
  balances and money under way: 3000
""",
    "counter": """\
Redis pub/sub: {'ann': 30, 'bob': 30, 'cy': 22}
Causewire:     {'ann': 30, 'bob': 30, 'cy': 30}
""",
    "service": """\
ann sees 100
bob gets ValueError: 1000 is more than 100
carl tells dora: I have paid.
dora sees 70
""",
    "web": """\
Bob sees: refused: 5 is not more than 10
Cy sees: ann bids 10 | bob bids 20 | ann: Too much for me.
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_an_example_prints_what_its_page_shows(name: str) -> None:
    """With real processes; and its page has the same output."""
    path = EXAMPLES / f"{name}.py"
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    if "no Redis server was found" in done.stderr:
        pytest.skip("no Redis server was found")
    assert done.stdout == SHOWN[name], done.stderr
    assert len(path.read_text().splitlines()) < 150
    page = (EXAMPLES.parent / "docs" / "examples" / f"{name}.md").read_text()
    assert f"$ python examples/{name}.py\n{SHOWN[name]}" in page
