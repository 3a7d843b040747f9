"""Processes that search side by side end with whoever started them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from causewire.verify import Setup, Unit, run_units, unicasts, up_to_renaming

LONG = ["--protocol", "cykas", "--processes", "4", "--messages", "2", "--jobs", "2"]
PATIENCE = 60


def children(parent: int) -> list[int]:
    """The processes that search for this one, told from its other children by their program."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if int(status[1]) == parent and status[0] != "Z" and b"spawn_main" in command:
            found.append(int(entry.name))
    return found


def until(true: object) -> None:
    """Wait for something that comes, on a slow machine as well."""
    assert callable(true)
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def search(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A search that has begun, and the processes it runs in."""
    kept = tmp_path / "kept.jsonl"
    command = [sys.executable, "-m", "causewire", "verify", *LONG, "--checkpoint", str(kept)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as parent:
        try:
            until(lambda: kept.exists() and len(kept.read_text().splitlines()) > 1)
            yield parent, children(parent.pid)
        finally:
            parent.kill()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_command(
    search: tuple[subprocess.Popen[str], list[int]], number: signal.Signals
) -> None:
    parent, workers = search
    assert len(workers) == 2
    parent.send_signal(number)
    status = parent.wait(PATIENCE)
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    until(lambda: not any(map(alive, workers)))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_a_worker_that_is_killed_is_told_in_one_line(
    search: tuple[subprocess.Popen[str], list[int]],
) -> None:
    parent, workers = search
    os.kill(workers[0], signal.SIGKILL)
    assert parent.wait(PATIENCE) == 2
    assert parent.stderr is not None
    said = parent.stderr.read().splitlines()
    assert len(said) == 1
    assert said[0].startswith("causewire verify: a worker was killed")
    assert "kept.jsonl has what was done" in said[0]
    until(lambda: not any(map(alive, workers)))


def test_what_workers_used_is_counted() -> None:
    """By the system, once they have ended: memory and time are told from there."""
    units = [Unit(Setup("mf", 3), program) for program in up_to_renaming(unicasts(3, 2))]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert run_units(units, workers=2).passed
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > before
