"""The path of a message does not become longer unnoticed: lines and calls, counted."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "path.py"


def load() -> Any:
    """Return the program that counts, as a module."""
    spec = spec_from_file_location("benchmark_path", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.skipif(sys.gettrace() is not None, reason="somebody else traces")
def test_a_request_and_its_reply_take_few_lines_and_calls() -> None:
    path = load()
    counted = path.count_path(requests=20, protocol="csps")
    ours = [code for code in counted.calls if str(path.package_of(code)).startswith("causewire")]
    lines = sum(counted.lines.get(code, 0.0) for code in ours)
    calls = sum(counted.calls[code] for code in ours)
    assert counted.datagrams == pytest.approx(2.0, abs=0.1)
    assert 0 < lines < 1500  # 1,284 when this was written; 2,400 before there was a short way
    assert calls < 260  # 219, and 440
