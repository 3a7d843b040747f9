"""A fixture that runs the command line and keeps what it prints."""

from __future__ import annotations

import pytest

from .command_line import CommandLine


@pytest.fixture
def causewire(capfd: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capfd)
