"""In tests, a timer that does not move forward is an error."""

from __future__ import annotations

import pytest

from causewire.transport import timers


@pytest.fixture(autouse=True)
def strict_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "STRICT", True)
