"""The path of a message does not become longer unnoticed: lines and calls, counted."""

from __future__ import annotations

import sys

import pytest

from ..programs import load


@pytest.mark.slow
@pytest.mark.skipif(sys.gettrace() is not None, reason="somebody else traces")
def test_a_request_and_its_reply_take_few_lines_and_calls() -> None:
    path = load("benchmarks/path.py")
    counted = path.count_path(requests=20, protocol="csps")
    ours = [code for code in counted.calls if str(path.package_of(code)).startswith("causewire")]
    lines = sum(counted.lines.get(code, 0.0) for code in ours)
    calls = sum(counted.calls[code] for code in ours)
    assert counted.datagrams == pytest.approx(2.0, abs=0.1)
    assert 0 < lines < 1500  # 1,284 when this was written; 2,400 before there was a short way
    assert calls < 260  # 219, and 440
