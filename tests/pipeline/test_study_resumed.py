"""A study that was stopped anywhere continues, and its page says what was run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from campaigns.study import __main__ as study
from campaigns.study import effort
from campaigns.study.page import tables
from campaigns.study.parts import FOLDER, WHOLE, Size, experiment
from campaigns.study.results import Cell, Results
from campaigns.study.spans import requests_in, write_spans


def test_a_study_that_was_killed_while_it_wrote_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The half line is dropped, and its run is measured again."""
    monkeypatch.setattr(effort, "effort", lambda config: {"cpu_us_per_message": 1.0})
    scale = experiment("scale", Size(seeds=1, processes=10), tmp_path)
    path = tmp_path / "effort.jsonl"
    measured = effort.measure(scale, path, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert sorted(map(str, effort.measure(scale, path, 1))) == sorted(map(str, measured))
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("size", "requests"), [(WHOLE, 300), (Size(seeds=3), 300), (study.QUICK, 20)]
)
def test_only_small_runs_replay_few_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: Size, requests: int
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(study, "write_spans", lambda path, requests: asked.append(requests))
    monkeypatch.setattr(study, "experiment", lambda *args: None)
    monkeypatch.setattr(study, "finished", lambda *args: "done")
    study.run_parts(None, tmp_path, size, ["replay"])
    assert asked == [requests]


def test_a_file_of_spans_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spans.jsonl.gz"
    real = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        real(self, data[: len(data) // 2])
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="no space"):
            write_spans(path, requests=3)
    assert not path.exists()
    write_spans(path, requests=3)
    assert requests_in(path) == 3
    assert requests_in(tmp_path / "none") == 0


def test_tables_of_results_with_holes(tmp_path: Path) -> None:
    """Runs that failed, and parts that were not run, leave cells empty."""
    results = Results(tmp_path, [])
    run: dict[str, Any] = {"status": "done", "seed": 0, "grid": "g", "processes": 30}
    run |= {"workload": "deployment"}
    run |= {"latency_mean_ns": 1e6, "latency_p99_ns": 2e6, "metadata_bits": 1, "copies": 1}
    run |= {"control_per_message": 0.0, "max_send_buffer": 1, "max_receive_buffer": 1}
    run |= {"deliveries": 1, "workload.queued": 0.0, "workload.parallel": 0.0}
    run |= {"workload.skew": 0.0, "workload.tail": 0.5}
    rows = [
        run | {"protocol": "csps"},
        run | {"protocol": "ks", "workload.tail": 2.5},
        run | {"protocol": "adaptive", "workload.tail": 2.5},
        run | {"protocol": "fifo", "status": "failed"},
    ]
    results.parts = {"assumptions": [*rows], "scale": [rows[0]]}
    blocks = tables(results, "")
    shown = [re.split(r" *\| *", line)[1:-1] for line in blocks["assumptions"].splitlines()]
    assert ["tail of call-graph sizes", "0.5", "", "", ""] in shown
    assert ["tail of call-graph sizes", "2.5", "1.00", "1.00", ""] in shown
    assert shown[-1] == ["within the limits", "of 2", "1", "1", "1"]  # each was run in one
    assert Cell().stretch("ks") is None


def test_the_page_takes_its_numbers_of_runs_from_the_results() -> None:
    """Counts that depend on how much was run are blocks."""
    template = (FOLDER / "page.md").read_text("utf-8")
    assert not re.search(r"\d+ (?:requests to|seeds|runs)\b", template)
    assert "{{requests}} requests to a generated system" in template
