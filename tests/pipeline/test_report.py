"""The report of a sweep: its numbers, its files, and what it refuses to show."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causewire import cli
from causewire.check import check
from causewire.report.checks import DRAWN
from causewire.report.numbers import estimate, points
from causewire.report.plan import FigurePlan, ReportError
from causewire.report.sweeps import report_sweep
from causewire.report.tables import significant
from causewire.sim import Config, simulate
from causewire.trace import open_trace, open_writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPERIMENT = """
name = "try"
title = "A <try>"
about = "What it is about."

[[figure]]
name = "time"
title = "Time against processes"
x = "processes"
x_label = "processes"
y = "execution_ns"
y_label = "execution time (s)"
y_factor = 1e-9

[[figure]]
name = "speedup"
title = "Speedup over mf"
x = "processes"
x_label = "processes"
y = "execution_ns"
y_label = "speedup"
over = { protocol = "mf" }
across = [1.0]

[[table]]
name = "times"
title = "Times"
rows = ["protocol", "processes"]
column = [{ of = "execution_ns", label = "time (s)", factor = 1e-9 }]
"""


def run(protocol: str, processes: int, seed: int, time: int | None) -> dict[str, Any]:
    config = {"protocol": protocol, "processes": {"count": processes}, "seed": seed}
    return {
        "run": f"{protocol}-{processes}-{seed}",
        "grid": "",
        "protocol": protocol,
        "processes": processes,
        "seed": seed,
        "status": "failed" if time is None else "done",
        "error": "RuntimeError: no" if time is None else None,
        "execution_ns": time,
        "packets": [("ack", 3)],
        "config": json.dumps(config),
    }


RUNS = [
    run(protocol, n, seed, base * n * (10 + seed) * 10**7)
    for protocol, base in (("mf", 2), ("csps", 1))
    for n in (10, 20)
    for seed in (0, 1, 2)
]


def sweep_folder(place: Path, runs: list[dict[str, Any]], experiment: str = EXPERIMENT) -> Path:
    """A directory as a finished sweep leaves it."""
    place.mkdir()
    (place / "_journal").mkdir()
    (place / "experiment.toml").write_text(experiment)
    failed = sum(row["status"] == "failed" for row in runs)
    told = {"name": "try", "runs": len(runs), "failed": failed, "events": 1234}
    (place / "sweep.json").write_text(json.dumps(told))
    (place / "runs").mkdir()
    columns = {name: [row[name] for row in runs] for name in runs[0]}
    packets = pa.array(columns["packets"], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table(columns | {"packets": packets}), place / "runs" / "part-0.parquet")
    (place / "_SUCCESS").touch()
    return place


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


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


def test_the_files_of_a_report(tmp_path: Path) -> None:
    out = tmp_path / "sweep" / "report"
    folder = sweep_folder(tmp_path / "sweep", RUNS)
    report_sweep(folder, out)
    assert (out / "time.png").read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(out / "time.svg").getroot().tag.endswith("svg")
    page = (out / "index.html").read_text()
    assert "<h1>A &lt;try&gt;</h1>" in page
    assert "Means of 3 seeds; bars are 95 % confidence intervals." in page
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(links) >= 9
    assert all((out / link).is_file() for link in links), "everything is beside it"
    assert "http" not in page
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


def test_an_experiment_that_does_not_say_what_to_show(tmp_path: Path) -> None:
    runs = [
        row | {"messages": 5, "latency_mean_ns": 2.5, "metadata_bytes": 7, "network.loss": 0.0}
        for row in RUNS
    ]
    folder = sweep_folder(tmp_path / "sweep", runs, 'name = "try"')
    told = report_sweep(folder, tmp_path / "report")
    assert told.figures == 3
    assert (tmp_path / "report" / "latency_mean.svg").exists()


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
        links = re.findall(r'(?:src|href)="([^"]+)"', page)
        assert all((out / link).is_file() for link in links)
        found = check(open_trace(f"{protocol}.parquet"), examples=7)
        counts = {row["what"]: int(row["number"]) for row in read_csv(out / "counts.csv")}
        assert counts["violations"] == found.violations
        assert counts["events"] == found.events
        if status:
            assert f"{found.violations} violations in" in said
            assert len(read_csv(out / "violations.csv")) == 7
            drawn = sorted(out.glob("violation-*.svg"))
            assert len(drawn) == DRAWN
            assert all(ElementTree.parse(svg).getroot().tag.endswith("svg") for svg in drawn)
            assert str(found.examples[0]) in page
        else:
            assert "causally ordered" in said
            assert not list(out.glob("violation-*.svg"))
        assert len(read_csv(out / "times.csv")) == 1
    Path("x").mkdir()
    (tmp_path / "x" / "notes").touch()
    assert cli.main(["report", "csps.parquet", "--out", "x"]) == 2
    assert capsys.readouterr().err == "causewire report: x exists, and is not a report\n"


def test_where_the_time_went(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    traces = Path("traces")
    traces.mkdir()
    means = {}
    for protocol in ("csps", "mf"):
        with open_writer(traces / f"{protocol}.parquet") as writer:
            summary = simulate(
                Config.from_dict(SYSTEM | {"protocol": protocol, "messages": 200}),
                writer,
                run=protocol,
            )
        means[protocol] = summary.latency.mean_ns
    assert cli.main(["report", "traces", "--master", "local[2]"]) == 0
    assert capsys.readouterr().out.startswith("traces/report/index.html: causally ordered in ")
    out = traces / "report"
    rows = {row["run"]: row for row in read_csv(out / "times.csv")}
    assert {run: float(row["latency_mean_ns"]) for run, row in rows.items()} == pytest.approx(means)
    for row in rows.values():
        held = [float(row[f"{part}_mean_ns"]) for part in ("held_at_sender", "network")]
        whole = sum(held) + float(row["held_at_receiver_mean_ns"])
        assert whole == pytest.approx(float(row["latency_mean_ns"]))
    assert (out / "times.png").read_bytes().startswith(b"\x89PNG")
    assert "Where the time of messages went" in (out / "index.html").read_text()


def test_significant_digits() -> None:
    assert [significant(v, 3) for v in (0, 1234.5, 0.012345, 99.96, 1e7)] == [
        "0",
        "1,230",
        "0.0123",
        "100.0",
        "10,000,000",
    ]
