"""Instructions are counted as the difference of two runs, each in a process of its own."""

from __future__ import annotations

import importlib
import json
from subprocess import CompletedProcess
from typing import Any

import pytest

from .programs import ROOT


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module; its Valgrind finds 1,000 instructions, and 70 more for each repetition."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module: Any = importlib.import_module("_instructions")
    seen: dict[str, str] = {}
    monkeypatch.setattr(module, "environment", seen, raising=False)

    def run(command: list[str], *, env: dict[str, str], **_: object) -> CompletedProcess[str]:
        seen.update(env)
        number = json.loads(command[-1])[2][-1]
        text = f"==7== Collected : {1000 + 70 * number}\n" if number else "no such tool"
        return CompletedProcess(command, 0, "", text)

    monkeypatch.setattr(module.subprocess, "run", run)
    monkeypatch.setattr(module.shutil, "which", lambda _: "/usr/bin/valgrind")
    return module


def test_what_a_process_needs_to_start_does_not_count(counting: Any) -> None:
    for compiled in (False, True):
        build = (ROOT / "out", compiled)
        assert counting.per_repetition(build, "path", "exchange", ["csps", 1], (50, 150)) == 70
        assert counting.environment["CAUSEWIRE_PURE"] == "01"[not compiled]
        assert counting.environment["PYTHONPATH"] == str(ROOT / "out")


def test_failures_are_reported(counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="no such tool"):
        counting.per_repetition((None, False), "path", "exchange", [], (0, 1))
    monkeypatch.setattr(counting.shutil, "which", lambda _: None)
    with pytest.raises(SystemExit, match="not installed"):
        counting.per_repetition((None, False), "path", "exchange", [], (0, 1))
