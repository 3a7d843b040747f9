"""A store is made whole or not at all, whatever happens to the process or to the power."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causewire.store import Contents, SqliteStore, StoreFailed, StoreRefused

from ..programs import ROOT

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def interrupted(*arguments: str) -> tuple[int, list[str]]:
    """Return how many processes were killed, and what the next ones said about their stores."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.store.first_opening", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    early, *refused = run.stdout.splitlines()
    return int(early), refused


@pytest.fixture
def quick() -> Iterator[str]:
    """A directory in memory, if there is one: what a kill leaves does not depend on the disk."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(
        dir=memory if os.access(memory, os.W_OK) else None
    ) as directory:
        yield directory


@needs_fork
@pytest.mark.slow
def test_killed_at_any_call_of_the_first_opening(quick: str) -> None:
    early, refused = interrupted(quick)
    assert not refused
    assert early > 20


@needs_fork
@pytest.mark.slow
def test_killed_at_any_moment_of_the_first_opening(quick: str) -> None:
    early, refused = interrupted(quick, "12")
    assert not refused
    assert early == 12


@pytest.mark.parametrize("left", [b"", b"SQLite format 3\0", bytes(20_000)])
def test_what_an_interrupted_creation_has_written_is_replaced(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "a.db"
    Path(f"{path}-new").write_bytes(left)
    store = SqliteStore(path)
    assert store.open("a", "csps") == Contents(0, b"", [])
    store.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.db", "a.db.lock"]


def test_power_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contents are on the disk before the name is, and the name before anything else."""
    path = tmp_path / "a.db"
    done: list[str] = []
    sync, replace, write = os.fsync, os.replace, SqliteStore._connect

    def noted_sync(number: int) -> None:
        sync(number)
        found = os.fstat(number)
        names = [each.name for each in tmp_path.iterdir() if each.stat().st_ino == found.st_ino]
        done.append(f"sync {names[0] if names else 'directory'} {found.st_size > 1000}")

    def noted_replace(old: Any, new: Any) -> None:
        done.append(f"replace {Path(old).name} {Path(new).name}")
        replace(old, new)

    def noted_write(self: SqliteStore, *arguments: Any) -> None:
        done.append("open")
        write(self, *arguments)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    monkeypatch.setattr(SqliteStore, "_connect", noted_write)
    store = SqliteStore(path)
    store.open("a", "csps")
    store.close()
    assert [each.rsplit(" ", 1)[0] if "directory" in each else each for each in done] == [
        "sync a.db-new True",
        "replace a.db-new a.db",
        "sync directory",
        "open",
    ]


def test_a_disk_that_is_full_while_the_store_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreFailed, match="No space left"):
            SqliteStore(path).open("a", "csps")
    assert not path.exists()
    store = SqliteStore(path)
    assert store.open("a", "csps") == Contents(0, b"", [])
    store.close()


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_half_of_a_store_that_was_deleted_is_not_applied_to_a_new_one(
    tmp_path: Path, end: str
) -> None:
    """SQLite would take the write-ahead log of the old store for that of the new one."""
    path = tmp_path / "a.db"
    left = Path(f"{path}{end}")
    left.write_bytes(b"something")
    with pytest.raises(StoreRefused, match=f"a.db{end}"):
        SqliteStore(path).open("a", "csps")
    assert left.read_bytes() == b"something"
    assert not path.exists()
