"""The report of a sweep and of a check: its numbers, its files, and what it refuses to show."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from causewire import cli
from causewire.check import check
from causewire.report import sweeps, times, vega
from causewire.report.answers import reading
from causewire.report.checks import DRAWN
from causewire.report.numbers import estimate, points
from causewire.report.plan import FigurePlan, ReportError
from causewire.report.sweeps import report_sweep
from causewire.report.tables import significant
from causewire.sim import Config, simulate
from causewire.trace import open_trace, open_writer

from .sweep_folder import EXPERIMENT, RUNS, read_csv, run, sweep_folder


@pytest.fixture(autouse=True)
def drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of figures, which are drawn only where a test is marked as slow."""
    names: list[str] = []
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(vega, "runtime", lambda: "")
        for module in (sweeps, times):
            monkeypatch.setattr(module, "write_pictures", lambda _, place, name: names.append(name))
    return names


def linked(page: str) -> list[str]:
    """Return what a page loads or links to, apart from what is in it."""
    body = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert "@import" not in body
    assert "url(" not in body
    found = re.findall(r'(?:src|href)="([^"]+)"', body)
    return [link for link in found if not link.startswith(("data:", "#"))]


def test_means_and_how_sure_they_are() -> None:
    assert estimate([5.0]) == (1, 5.0, None, 5.0, 5.0)
    three = estimate([1.0, 2.0, 3.0])
    assert three.mean == 2.0
    assert three.error == pytest.approx(4.303 / 3**0.5)  # t for two degrees of freedom
    assert estimate([7.0] * 40).error == 0.0
    assert estimate([0.0, 1.0] * 50).error == pytest.approx(0.0985, rel=0.01)


def test_the_numbers_behind_a_figure(tmp_path: Path) -> None:
    out = tmp_path / "sweep" / "report"
    told = report_sweep(sweep_folder(tmp_path / "sweep", RUNS), out)
    assert (told.figures, told.tables, told.runs, told.failed) == (2, 1, 12, 0)
    time = read_csv(out / "time.csv")
    assert [(row["protocol"], row["processes"]) for row in time] == [
        ("mf", "10"),
        ("mf", "20"),
        ("csps", "10"),
        ("csps", "20"),
    ]
    assert time[0]["execution time (s)"] == "2.2"
    assert (time[0]["least"], time[0]["most"], time[0]["seeds"]) == ("2", "2.4", "3")
    speedup = read_csv(out / "speedup.csv")
    assert [(row["protocol"], row["speedup"], row["error_95"]) for row in speedup] == [
        ("csps", "2", "0"),
        ("csps", "2", "0"),
    ]
    table = read_csv(out / "times.csv")
    assert [row["time (s)"] for row in table] == ["2.2", "4.4", "1.1", "2.2"]
    assert len(read_csv(out / "runs.csv")) == 12
    assert read_csv(out / "runs.csv")[0]["packets"] == '{"ack": 3}'


def test_a_table_is_compared_with_other_runs_and_with_a_paper(tmp_path: Path) -> None:
    text = EXPERIMENT.replace(
        "factor = 1e-9 }]",
        'factor = 1e-9, less = { protocol = "csps" }, paper = { mf = "O(n)" } }]',
    )
    page = report_sweep(sweep_folder(tmp_path / "sweep", RUNS, text), tmp_path / "out").page
    table = read_csv(tmp_path / "out" / "times.csv")
    assert [row["time (s)"] for row in table] == ["1.1", "2.2", "0", "0"]
    assert [row["time (s) paper"] for row in table] == ["O(n)", "O(n)", "", ""]
    shown = page.read_text()
    assert "1.10 ± 0.25 (O(n))" in shown
    assert "execution_ns less that of protocol = csps, seed by seed" in shown


@pytest.mark.slow
def test_the_files_of_a_report(tmp_path: Path) -> None:
    out = tmp_path / "sweep" / "report"
    folder = sweep_folder(tmp_path / "sweep", RUNS)
    report_sweep(folder, out)
    assert (out / "time.png").read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(out / "time.svg").getroot().tag.endswith("svg")
    page = (out / "index.html").read_text()
    assert "<title>A &lt;try&gt;</title>" in page
    assert "Means of 3 seeds; bars are 95 % confidence intervals." in page
    assert linked(page) == [], "everything is in it"
    # The same numbers, the same bytes; and a new report takes the place of the old.
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "old").touch()
    report_sweep(folder, out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_failed_runs_are_left_out_and_told(tmp_path: Path) -> None:
    runs = [*RUNS, run("csps", 20, 3, None)]
    out = tmp_path / "report"
    told = report_sweep(sweep_folder(tmp_path / "sweep", runs), out)
    assert told.failed == 1
    assert read_csv(out / "time.csv")[-1]["seeds"] == "3"
    assert "RuntimeError: no" in (out / "index.html").read_text()


NUMBERS = """
question = "How much faster is csps?"
answer = "It is {times} times as fast as mf & needs {seconds} s."
[[number]]
name = "times"
of = "execution_ns"
where = { protocol = "mf", processes = 20 }
over = { protocol = "csps" }
[[number]]
name = "seconds"
of = "execution_ns"
where = { protocol = "csps", processes = 20 }
factor = 1e-9
"""


def test_the_answer_has_numbers_with_their_origin(tmp_path: Path) -> None:
    experiment = f'name = "try"\n{NUMBERS}{EXPERIMENT.partition("about")[2].partition(chr(10))[2]}'
    folder = sweep_folder(tmp_path / "sweep", RUNS, experiment)
    page = report_sweep(folder, tmp_path / "report").page.read_text()
    assert "<h1>How much faster is csps?</h1>" in page
    (said,) = re.findall(r'<p class="answer">(.*)</p>', page)
    assert re.sub("<[^>]*>", "", said) == "It is 2.0 times as fast as mf &amp; needs 2.2 s."
    assert "divided seed by seed by that of runs with protocol = csps, processes = 20" in page
    (folder / "experiment.toml").write_text(experiment.replace("{times}", "{time}"))
    with pytest.raises(ReportError, match="the answer names 'time', which is no number"):
        report_sweep(folder, tmp_path / "report")
    (folder / "experiment.toml").write_text(experiment.replace('"csps", processes = 20', '"x"'))
    with pytest.raises(ReportError, match="number seconds: there are no runs for it"):
        report_sweep(folder, tmp_path / "report")


def test_a_figure_is_read_in_a_sentence() -> None:
    said = reading(PLAN, points(PLAN, RUNS))
    assert said.startswith("X = 20: y from 2,200,000,000 with csps to 4,400,000,000 with mf, ")


PLAN = FigurePlan(name="f", title="t", x="processes", x_label="x", y="execution_ns", y_label="y")


def test_runs_that_differ_in_more_than_the_seed_are_not_averaged() -> None:
    plan = FigurePlan(
        name="f", title="t", x="seed", x_label="x", y="execution_ns", y_label="y", series=()
    )
    with pytest.raises(ReportError, match=r"mixes runs that differ in protocol, processes\.count"):
        points(plan, RUNS)
    with pytest.raises(ReportError, match="the same runs twice"):
        points(PLAN, [*RUNS, *RUNS])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('x = "processes"', 'x = "proceses"'), "the table of runs has no column proceses"),
        (('name = "speedup"', 'name = "time"'), "two things of the report are called 'time'"),
        (('over = { protocol = "mf" }', "where = { processes = 99 }"), "there are no runs for it"),
        (('name = "time"', 'name = "../x"'), "cannot be called"),
        (("y_factor = 1e-9", 'y_factor = "a"'), "figure time: y_factor cannot be 'a'"),
        (("y_factor = 1e-9", 'y_scale = "cubic"'), "a scale is linear or log, not 'cubic'"),
        (('rows = ["protocol", "processes"]', ""), "table times needs 'rows'"),
    ],
)
def test_what_cannot_be_shown(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    text = EXPERIMENT.replace(*change)
    assert text != EXPERIMENT
    with pytest.raises(ReportError) as error:
        report_sweep(sweep_folder(tmp_path / "sweep", RUNS, text), tmp_path / "report")
    assert said in str(error.value)
    assert not (tmp_path / "report").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("damage", ["not Parquet", "cut short", "overwritten"])
def test_a_table_that_is_damaged(damage: str, tmp_path: Path) -> None:
    folder = sweep_folder(tmp_path / "sweep", RUNS)
    good = (folder / "runs" / "part-0.parquet").read_bytes()
    bad = {
        "not Parquet": b"PAR1 or so",
        "cut short": good[:-100],
        "overwritten": good[:4] + b"?" * 1000 + good[1004:],
    }
    (folder / "runs" / "part-1.parquet").write_bytes(bad[damage])
    with pytest.raises(ReportError, match=r"sweep/runs cannot be read: ") as error:
        report_sweep(folder, tmp_path / "report")
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["sweep"]


def test_an_experiment_that_does_not_say_what_to_show(tmp_path: Path, drawn: list[str]) -> None:
    runs = [
        row | {"messages": 5, "latency_mean_ns": 2.5, "metadata_bytes": 7, "network.loss": 0.0}
        for row in RUNS
    ]
    folder = sweep_folder(tmp_path / "sweep", runs, 'name = "try"')
    told = report_sweep(folder, tmp_path / "report")
    assert told.figures == 3
    assert drawn[0] == "latency_mean"


def test_settings_that_are_durations_have_a_unit(tmp_path: Path, drawn: list[str]) -> None:
    runs = [
        {**each, "processes.think.value": think * 10**6, "latency_mean_ns": 10**6}
        | {"metadata_bytes": 10, "run": f"{each['run']}-{think}", "processes": 10}
        for each in [run("fifo", 10, 0, 10**9), run("csps", 10, 0, 10**9)]
        for think in (20, 200)
    ]
    experiment = 'name = "try"\n[vary]\nprocesses.think = ["20ms", "200ms"]\n'
    folder = sweep_folder(tmp_path / "sweep", runs, experiment)
    page = report_sweep(folder, tmp_path / "report").page.read_text()
    assert "rocesses.think (ms) = 200: mean latency (ms) 1.00" in page
    assert "e+08" not in page
    assert "Of these, fifo keeps no causal order." in page


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "report", "write the tables and figures of a sweep")
    monkeypatch.chdir(tmp_path)
    sweep_folder(tmp_path / "sweep", RUNS)
    assert cli.main(["report", "sweep"]) == 0
    assert capsys.readouterr().out == (
        "sweep/report/index.html: 2 figures and 1 table of 12 runs\n"
    )
    (tmp_path / "sweep" / "_SUCCESS").unlink()
    for folder, said in [("sweep", "not finished"), ("nowhere", "no such file")]:
        assert cli.main(["report", folder]) == 2
        error = capsys.readouterr().err
        assert error.startswith("causewire report: ")
        assert said in error
        assert error.count("\n") == 1


# -- of a check ----------------------------------------------------------------------


SYSTEM = {"workload": "relay", "processes": 4, "messages": 1500, "seed": 7}


def test_the_report_of_a_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "report", "write the tables and figures of a sweep")
    monkeypatch.chdir(tmp_path)
    for protocol, status in (("fifo", 1), ("csps", 0)):
        with open_writer(f"{protocol}.parquet") as writer:
            simulate(Config.from_dict(SYSTEM | {"protocol": protocol}), writer)
        assert cli.main(["report", f"{protocol}.parquet", "--examples", "7"]) == status
        said = capsys.readouterr().out
        out = tmp_path / f"{protocol}-report"
        page = (out / "index.html").read_text()
        assert linked(page) == []
        found = check(open_trace(f"{protocol}.parquet"), examples=7)
        counts = {row["what"]: int(row["number"]) for row in read_csv(out / "counts.csv")}
        assert counts["violations"] == found.violations
        assert counts["events"] == found.events
        (measured,) = read_csv(out / "times.csv")
        for name in ("max_in_transit", "max_send_buffer", "max_receive_buffer"):
            assert re.search(rf"<td[^>]*>{int(measured[name]):,}</td>", page), "criteria"
        assert float(measured["noncausal_mean_ns"]) < 0 if status else True
        assert ("A negative non-causal latency means" in page) is bool(status)
        if status:
            assert f"{found.violations} violations in" in said
            assert len(read_csv(out / "violations.csv")) == 7
            drawn = sorted(out.glob("violation-*.svg"))
            assert len(drawn) == DRAWN
            assert all(ElementTree.parse(svg).getroot().tag.endswith("svg") for svg in drawn)
            assert str(found.examples[0]) in page
        else:
            assert "causally ordered" in said
            assert "<h1>Is csps.parquet causally ordered?</h1>" in page
            assert '<p class="answer good">Yes. In 1,500 messages' in page
            assert not list(out.glob("violation*.svg"))
    Path("x").mkdir()
    (tmp_path / "x" / "notes").touch()
    assert cli.main(["report", "csps.parquet", "--out", "x"]) == 2
    assert capsys.readouterr().err == "causewire report: x exists, and is not a report\n"


def test_significant_digits() -> None:
    assert [significant(v, 3) for v in (0, 1234.5, 0.012345, 99.96, 1e7)] == [
        "0",
        "1,230",
        "0.0123",
        "100.0",
        "10,000,000",
    ]
