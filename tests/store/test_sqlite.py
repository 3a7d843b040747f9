"""The store in a SQLite database: what it keeps, and what it refuses."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from causewire.store import Contents, SqliteStore, StoreFailed, StoreInUse, StoreRefused


def files(path: Path) -> dict[str, bytes]:
    """The store and its companions, but for the lock."""
    return {
        each.name: each.read_bytes()
        for each in path.parent.iterdir()
        if not each.name.endswith(".lock")
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a snapshot and two batches."""
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    assert store.open("a", "csps") == Contents(0, b"", [])
    store.write(b"forgotten")
    store.replace(b"snapshot")
    store.write(b"one")
    store.write(b"two" * 10_000)
    store.close()
    return path


def test_what_was_written_is_there(path: Path) -> None:
    store = SqliteStore(path)
    assert store.open("a", "csps") == Contents(1, b"snapshot", [b"one", b"two" * 10_000])
    store.write(b"three")
    store.close()
    store = SqliteStore(path)
    opened, _, batches = store.open("a", "csps")
    assert (opened, batches[-1]) == (2, b"three")
    store.close()


@pytest.fixture
def crashed(path: Path, tmp_path: Path) -> Path:
    """The files that a process with the store leaves when it is killed."""
    store = SqliteStore(path)
    store.open("a", "csps")
    store.write(b"last")
    left = tmp_path / "crashed" / "a.db"
    left.parent.mkdir()
    for end in ("", "-wal"):
        shutil.copyfile(f"{path}{end}", f"{left}{end}")
    store.close()
    return left


def test_a_store_is_examined_in_place(crashed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk for temporary files may be full, and is none of the business of a store."""
    monkeypatch.setattr(tempfile, "tempdir", str(crashed.parent / "nowhere"))
    store = SqliteStore(crashed)
    expected = Contents(2, b"snapshot", [b"one", b"two" * 10_000, b"last"])
    assert store.open("a", "csps") == expected
    left = sorted(each.name for each in crashed.parent.iterdir())
    assert left == ["a.db", "a.db-wal", "a.db.lock"]
    store.close()
    store = SqliteStore(crashed)
    assert store.open("a", "csps") == expected._replace(opened=3)
    store.close()


@pytest.mark.parametrize("what", ["other name", "short", "truncated", "flipped", "empty"])
def test_what_a_crash_has_left_is_refused_and_untouched(crashed: Path, what: str) -> None:
    if what != "other name":
        damaged(crashed, what)
    before = files(crashed), crashed.stat().st_mtime_ns, Path(f"{crashed}-wal").stat().st_mtime_ns
    with pytest.raises(StoreRefused):
        SqliteStore(crashed).open("b" if what == "other name" else "a", "csps")
    after = files(crashed), crashed.stat().st_mtime_ns, Path(f"{crashed}-wal").stat().st_mtime_ns
    assert after == before


def test_a_symbolic_link_is_the_store_that_it_leads_to(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    (tmp_path / "directory").symlink_to(tmp_path)
    first = SqliteStore(path)
    first.open("a", "csps")
    for other in (link, tmp_path / "directory" / "a.db"):
        with pytest.raises(StoreInUse, match="in use"):
            SqliteStore(other).open("a", "csps")
    first.close()
    second = SqliteStore(link)
    assert second.open("a", "csps").snapshot == b"snapshot"
    second.close()
    assert not Path(f"{link}.lock").exists()


def damaged(path: Path, what: str) -> None:
    data = bytearray(path.read_bytes())
    if what == "foreign":
        data = bytearray(b"#!/bin/sh\n" * 20)
    elif what == "short":
        del data[50:]
    elif what == "empty":
        del data[:]
    elif what == "truncated":
        del data[len(data) // 2 :]
    elif what == "flipped":
        data[data.index(b"twotwo", len(data) // 2) + 1] ^= 1
    else:
        statements = {
            "other database": "PRAGMA application_id = 7",
            "future": "PRAGMA user_version = 2",
            "other name": "UPDATE meta SET value = 'b' WHERE key = 'name'",
            "other protocol": "UPDATE meta SET value = 'sps' WHERE key = 'protocol'",
            "lost": "DELETE FROM log WHERE number = (SELECT min(number) + 1 FROM log)",
        }
        with closing(sqlite3.connect(path)) as database, database:
            if what == "lost":
                database.execute("INSERT INTO log (checksum, data) VALUES (0, '')")
            database.execute(statements[what])
        return
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("foreign", "not a SQLite database"),
        ("short", "not a SQLite database"),
        ("empty", "it is empty"),
        ("other database", "the database of something else"),
        ("future", "has version 2 of the format; this program knows 1"),
        ("other name", "is the store of name 'b', not of 'a'"),
        ("other protocol", "is the store of protocol 'sps', not of 'csps'"),
        ("truncated", "damaged"),
        ("flipped", "a checksum does not match"),
        ("lost", "damaged"),
    ],
)
def test_refused_in_one_line_and_untouched(path: Path, what: str, reason: str) -> None:
    damaged(path, what)
    before = files(path)
    store = SqliteStore(path)
    with pytest.raises(StoreRefused, match=reason) as refused:
        store.open("a", "csps")
    assert "\n" not in str(refused.value)
    assert files(path) == before


def test_in_use(path: Path) -> None:
    first = SqliteStore(path)
    first.open("a", "csps")
    with pytest.raises(StoreInUse, match="in use"):
        SqliteStore(path).open("a", "csps")
    program = (
        "import sys; from causewire.store import *\n"
        "try: SqliteStore(sys.argv[1]).open('a', 'csps')\n"
        "except StoreInUse: print('in use')"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert found.stdout == "in use\n"
    first.close()
    again = SqliteStore(path)
    again.open("a", "csps")
    again.close()


def test_a_full_disk_loses_nothing(path: Path) -> None:
    store = SqliteStore(path)
    store.open("a", "csps")
    assert store._database is not None
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreFailed, match="full"):
        store.write(bytes(1 << 20))
    store.write(b"small")
    store.close()
    store = SqliteStore(path)
    assert store.open("a", "csps").batches == [b"one", b"two" * 10_000, b"small"]
    store.close()


def test_a_directory(tmp_path: Path) -> None:
    place = tmp_path / "directory"
    place.mkdir()
    with pytest.raises(StoreRefused, match="is a directory"):
        SqliteStore(place).open("a", "csps")
    assert list(tmp_path.iterdir()) == [place]


def test_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be opened"):
        SqliteStore(tmp_path / "nowhere" / "a.db").open("a", "csps")


def test_a_snapshot_does_not_write_again_what_it_replaces(tmp_path: Path) -> None:
    """Some builds of SQLite overwrite by default what is deleted, which doubles every write."""
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    store.open("a", "csps")
    wal = Path(f"{path}-wal")
    store.write(bytes(1 << 20))
    before = wal.stat().st_size
    store.replace(b"snapshot")
    assert before > 1 << 20
    assert wal.stat().st_size - before < 1 << 18
    store.close()


def test_pages_are_copied_to_the_database_less_often_than_a_snapshot_replaces_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    store.open("a", "csps")
    for _ in range(2):
        store.write(bytes(8 << 20))
        store.replace(b"snapshot")
    assert path.stat().st_size < 1 << 20
    store.close()
