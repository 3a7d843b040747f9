"""The pages and figures that the simulator makes are current, and the site has what it shows."""

from __future__ import annotations

import re
import tomllib

import pytest

from campaigns.figures import FIGURES
from campaigns.site import IDEAS, pages
from causewire import protocols

from .programs import ROOT, load


@pytest.mark.slow
def test_pages_and_figures_are_current() -> None:
    stale = [path.name for path, text in pages() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "python -m campaigns.site writes them"


def test_every_protocol_has_a_page_in_the_navigation() -> None:
    known = {name for name in protocols.names() if not name.startswith("cykas-")}
    assert set(IDEAS) == known
    listed = re.findall(r"protocols/([a-z-]+)\.md", (ROOT / "mkdocs.yml").read_text("utf-8"))
    assert set(listed) == known


def test_every_figure_of_the_documentation_is_made_by_a_program() -> None:
    shown = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        shown |= set(re.findall(r"!\[[^\]]*\]\([^)]*?([\w-]+\.png)\)", page.read_text("utf-8")))
    by_tests = {f"explore-{name}.png" for name in ("violation", "frozen", "density", "phone")}
    by_sweeps = {f"{kept}.png" for each in FIGURES.values() for kept in each.values()}
    assert shown <= by_tests | by_sweeps | {"report-trace.png", "study.png"}
    for name, figures in FIGURES.items():
        plans = tomllib.loads((ROOT / "experiments" / f"{name}.toml").read_text("utf-8"))["figure"]
        assert set(figures) <= {plan["name"] for plan in plans}


def test_the_first_figure_shows_both_orders() -> None:
    for name, first in (("without", "bob"), ("with", "ann")):
        figure = (ROOT / "docs" / "figures" / f"{name}-causal-order.svg").read_text("utf-8")
        words = {"ann": "1. “Seen my ring?”", "bob": "1. “I found it!”"}
        assert words.pop(first) in figure
        assert not any(text in figure for text in words.values())


def test_the_site_loads_nothing_from_other_hosts() -> None:
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "font: false" in settings
    assert not re.search("^repo_url", settings, re.MULTILINE), "the theme would ask its host"


@pytest.mark.slow
def test_recorded_runs_are_what_the_page_says() -> None:
    hooks = load("docs/hooks.py")
    runs = dict(hooks.recorded_runs())
    shown = (ROOT / "docs" / "play.md").read_text(encoding="utf-8")
    assert {f"play/{name}.html" for name in runs} == set(re.findall(r'src="([^"]+)"', shown))
    assert all(len(page) < 3_000_000 for page in runs.values())
    first = re.search(r'"violations":(\d+)', runs["violation"])
    assert first is not None
    assert int(first[1]) > 0
    assert '"endpoints":{' in runs["counterexample"]
