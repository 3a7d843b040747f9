"""Pages that need no server, and the command that makes and serves them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from causewire.cli import main
from causewire.explore import Api, Dataset
from causewire.explore.saved import SaveError, bundled, saved
from causewire.trace import trace_of, write_shiviz, write_trace

from ..trace.shop import otlp, overtaken
from .stories import STORY, simulated


def _api(dataset: Dataset) -> Api:
    dataset.load()
    return Api(dataset)


def test_the_bundle_has_every_module_once_and_before_its_use() -> None:
    text = bundled()
    defined = re.findall(r'^modules\["([\w.]+)"\] = ', text, re.MULTILINE)
    assert len(defined) == len(set(defined))
    assert defined[-1] == "app.js"
    assert "recorded.js" in defined
    assert "api.js" not in defined
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    for match in re.finditer(r'= modules\["([\w.]+)"\];', text):
        assert text.index(f'modules["{match[1]}"] = ') < match.start()


def test_names_cannot_end_the_data() -> None:
    events = [event._replace(run="</script><script>alert(1)</script>") for event in STORY]
    page = saved(_api(Dataset(lambda: trace_of(events, "x"), "</script>")))
    assert page.count("</script>") == 2
    assert 'src="http' not in page


@pytest.mark.slow
def test_large_runs_are_refused() -> None:
    api = _api(Dataset(lambda: trace_of(simulated("fifo", 4000), "x"), "x"))
    with pytest.raises(SaveError, match="rows times processes"):
        saved(api)


def test_the_command_saves_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, page = tmp_path / "run.jsonl", tmp_path / "run.html"
    write_trace(trace, simulated("fifo", 40))
    assert main(["explore", str(trace), "--save", str(page), "--replay", "csps"]) == 0
    assert "open it in a browser" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_spans_of_other_systems_open_too(tmp_path: Path) -> None:
    spans, page = tmp_path / "spans.json", tmp_path / "run.html"
    spans.write_bytes(otlp(overtaken()))
    assert main(["explore", str(spans), "--save", str(page)]) == 0
    assert "orders" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["missing.parquet"], "missing.parquet: no such file or directory"),
        (["{trace}", "--port", "70000"], "--port must be from 0 to 65535"),
        (["{trace}", "--replay", "csps"], "--replay is for --save"),
        (["{trace}", "--save", "{folder}"], "is a directory"),
        (["{trace}", "--save", "x.html", "--replay", "nope"], "there is no protocol 'nope'"),
        (["app.log", "--follow"], "--follow reads traces that nodes write"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "run.jsonl", STORY)
    values = {"trace": str(tmp_path / "run.jsonl"), "folder": str(tmp_path)}
    assert main(["explore", *(each.format(**values) for each in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert reason in err


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    write_trace(tmp_path / "run.jsonl", STORY)
    command = [sys.executable, "-m", "causewire", "explore", "run.jsonl", "--no-browser"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url)
    assert "Ctrl-C" in process.stdout.readline()
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert b"Causewire explorer" in answer.read()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "Traceback" not in err


def test_counterexamples_and_logs_of_others_can_be_explored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_shiviz(tmp_path / "story.log", STORY)
    assert main(["explore", "story.log", "--save", "story.html"]) == 0
    bounds = ["--protocol", "sps-unsent-not-counted", "--trace", "found.jsonl"]
    assert main(["verify", *bounds]) == 1
    assert main(["explore", "found.jsonl", "--save", "found.html"]) == 0
    page = (tmp_path / "found.html").read_text(encoding="utf-8")
    assert '"name":"verify ' in page  # such runs open on the panel with the steps
