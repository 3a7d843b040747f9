"""The groups of tests that one process runs: each name in the list is a place that exists."""

from __future__ import annotations

from pathlib import Path

from .groups import GROUPS, group_of

ROOT = Path(__file__).parents[1]


def test_every_place_exists() -> None:
    for places in GROUPS.values():
        assert all((ROOT / place).exists() for place in places)


def test_who_shares_a_session_shares_a_process() -> None:
    assert group_of("tests/check/test_kernel.py::test_x[1]") == "kernels"
    assert group_of("tests/pipeline/test_connect.py::test_x") == "cluster"
    assert group_of("tests/pipeline/test_watch.py::test_x") == "spark"
    assert group_of("tests/core/test_ks.py::test_x[a::b]") == "tests/core/test_ks.py"


def test_whoever_starts_a_cluster_is_in_its_group() -> None:
    for file in (ROOT / "tests" / "pipeline").glob("test_*.py"):
        starts = ": Cluster" in file.read_text() or "(connect: str" in file.read_text()
        assert starts == (group_of(f"tests/pipeline/{file.name}::test") == "cluster"), file
