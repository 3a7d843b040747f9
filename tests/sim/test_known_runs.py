"""A change here is a change for everybody who noted a seed."""

from __future__ import annotations

import json

import pytest

from . import known_runs


@pytest.mark.slow
def test_every_known_run_writes_the_rows_it_always_wrote() -> None:
    known = json.loads(known_runs.KNOWN.read_text())
    found = {name: known_runs.digest(config) for name, config in known_runs.runs()}
    assert len(known) > 200
    assert {name for name in known if found.get(name) != known[name]} == set()
