"""Inputs with several runs, and inputs of which not everything was understood."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causewire.cli import main
from causewire.explore import Api, Dataset, InputRemarks
from causewire.trace import Event, TraceError, trace_of, write_trace

from ..browser import launched, require_browser
from ..trace.shop import in_order, otlp, overtaken
from .browser import opened, serving
from .stories import STORY


def three_runs() -> list[Event]:
    """Return two runs without a violation, and one with one."""
    calm = [STORY[k] for k in (0, 1, 2, 6)]
    events = [event._replace(run=run) for run in ("a", "b") for event in calm]
    return [*events, *(event._replace(run="c") for event in STORY)]


def loaded(**more: Any) -> dict[str, Any]:
    dataset = Dataset(lambda: trace_of(three_runs(), "x"), "x", **more)
    dataset.load()
    return dataset.status()


def test_the_first_run_with_a_violation_is_shown_first() -> None:
    status = loaded()
    assert status["first"] == 2
    assert [(run["name"], run["violated"]) for run in status["runs"]] == [
        ("a", False),
        ("b", False),
        ("c", True),
    ]
    assert loaded(run="b")["first"] == 1
    with pytest.raises(TraceError, match="there is no run 'other'"):
        loaded(run="other")


def test_a_run_beyond_those_of_the_list_has_its_name() -> None:
    events = [event._replace(run=f"{k:04}") for k in range(1001) for event in STORY[:2]]
    dataset = Dataset(
        lambda: trace_of([*events, *(event._replace(run="c") for event in STORY)]), "x"
    )
    dataset.load()
    assert dataset.first == 1001
    assert b'"name": "c"' in Api(dataset).answer("GET", "run", {"run": "1001"}).body.replace(
        b'":"', b'": "'
    )


def test_what_was_not_understood_is_part_of_the_status() -> None:
    status = loaded(remarks=lambda: InputRemarks(2, ["2 rows not understood"], ["x: damaged"]))
    assert (status["refused"], status["remarks"]) == (2, ["2 rows not understood"])
    assert status["report"]["conclusive"] is False
    inferred = loaded(remarks=lambda: InputRemarks(inferred=True))["report"]
    assert (inferred["inferred"], inferred["conclusive"]) == (True, False)
    assert loaded()["report"]["conclusive"] is True


@pytest.mark.parametrize("run", [None, f"{1:032x}"])
def test_the_command(run: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spans, page = tmp_path / "spans.json", tmp_path / "page.html"
    lines = [otlp(in_order(1)), otlp(overtaken(2)), b"not JSON"]
    spans.write_bytes(b"\n".join(line.strip() for line in lines))
    more = [] if run is None else ["--run", run]
    assert main(["explore", str(spans), "--format", "otlp", "--save", str(page), *more]) == 0
    text = page.read_text()
    assert "1 row not understood: not a JSON document" in text
    assert (f"{2:032x}" in text) == (run is None)
    assert ('"first":1' in text) == (run is None)
    capsys.readouterr()
    assert main(["explore", str(spans), "--save", str(page), "--run", "no"]) == 2
    assert "there is no run 'no'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    require_browser()
    with launched() as chromium:
        yield chromium


@pytest.mark.slow
def test_the_page_opens_the_run_with_the_violation(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    write_trace(file, three_runs())
    said = InputRemarks(3, ["3 rows not understood: cut short"])
    with serving(file, remarks=lambda: said) as server, opened(browser, server) as page:
        page.until("app.where.run === 2")
        page.until("document.querySelector('#verdict').textContent === '1 violation'")
        page.idle()
        assert page.value("document.querySelector('#run').selectedOptions[0].text") == (
            "c (violated)"
        )
        assert page.text("#size").endswith("; 3 not understood")
        page.page.click("#tab-violations")
        assert "3 rows not understood: cut short" in page.text("#panel-violations")
        page.page.select_option("#run", "0")
        page.until("app.where.run === 0")
        page.idle()
        assert page.value("app.where.run") == 0  # and it stays there
