"""A store in a SQLite database.

    meta        name, protocol, and how many times the store was opened
    log         batches, each with a checksum
    snapshot    the last snapshot, as one row, with a checksum

The database is in WAL mode with `synchronous=FULL`: a commit appends the changed pages to the
write-ahead log and waits until the disk has them, so it survives a loss of power. A batch is
one row, however many messages it has, so the cost of a row is shared by a whole turn of the
event loop.

**What is written.** A node replaces its log by a snapshot every few megabytes, so most pages are
short-lived. SQLite copies pages from the write-ahead log to the database only after `CHECKPOINT`
pages, when most of them have been reused. It does not overwrite what is deleted
(`secure_delete`, which some builds switch on, and which writes every page once more). Together
that makes 1.5 bytes on the disk for each byte of a batch, instead of 3.9.

**Why SQLite** and not a log file of our own, which writes each byte once? It is
found to recover correctly after a crash by more people than will ever use this project; a
snapshot replaces a log in one transaction; and everybody has the tools to look into it.
`benchmarks/durable.py` measures both.

**Refusing.** A file is examined before SQLite may touch it: opening a database with a
write-ahead log can change both files. So the header is read first, then everything is loaded
from a copy, and only when that succeeded the file itself is opened. The lock is a file of its
own, since the file that it protects must not be opened before.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any
from zlib import crc32

from .engine import Contents, Store
from .errors import StoreFailed, StoreInUse, StoreRefused

__all__ = ["FORMAT", "SqliteStore"]

FORMAT = 1
"""The version of the format, in the header of the database (`user_version`)."""

APPLICATION = 0x43575354
"""Identifies a store, in the header of the database (`application_id`): "CWST"."""

CHECKPOINT = 4000
"""After how many pages in the write-ahead log they are copied to the database: 32 MiB."""

_SCHEMA = f"""
PRAGMA page_size = 8192;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
BEGIN;
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE log (number INTEGER PRIMARY KEY, checksum INTEGER, data BLOB);
CREATE TABLE snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), checksum INTEGER, data BLOB);
COMMIT;
"""


class SqliteStore(Store):
    """A store in a file.

    Args:
        path: The file. Two more are kept next to it, which end in `-wal` and `.lock`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.executor = ThreadPoolExecutor(1, f"causewire store {self.path.name}")
        self._lock: IO[bytes] | None = None
        self._database: sqlite3.Connection | None = None

    def open(self, name: str, protocol: str) -> Contents:
        if self._database is not None:
            raise StoreInUse(f"{self.path} is open already")
        try:
            self._lock = _lock(self.path)
            new = not self.path.exists() or not self.path.stat().st_size
            if new:
                contents = Contents(0, b"", [])
            else:
                contents = self._examine(name, protocol)
            self._connect(new, name, protocol, contents.opened + 1)
        except OSError as error:
            self.close()
            raise StoreFailed(f"{self.path} cannot be opened: {error}") from error
        except sqlite3.Error as error:
            self.close()
            raise StoreFailed(f"{self.path} cannot be written: {error}") from error
        except BaseException:
            self.close()
            raise
        return contents

    # -- reading --------------------------------------------------------------

    def _examine(self, name: str, protocol: str) -> Contents:
        """Return what is in the file, without changing it, or refuse it."""
        with self.path.open("rb") as file:
            header = file.read(100)
        if not header.startswith(b"SQLite format 3\0") or len(header) < 100:
            raise StoreRefused(f"{self.path} is not a store: it is not a SQLite database")
        if int.from_bytes(header[68:72], "big") != APPLICATION:
            raise StoreRefused(f"{self.path} is not a store: it is the database of something else")
        version = int.from_bytes(header[60:64], "big")
        if version != FORMAT:
            raise StoreRefused(
                f"{self.path} has version {version} of the format; this program knows {FORMAT}"
            )
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / "copy"
            shutil.copyfile(self.path, copy)
            wal = Path(f"{self.path}-wal")
            if wal.exists():
                shutil.copyfile(wal, f"{copy}-wal")
            try:
                with closing(sqlite3.connect(copy, isolation_level=None)) as database:
                    return self._load(database, name, protocol)
            except sqlite3.Error as error:
                raise StoreRefused(f"{self.path} is damaged: {error}") from error

    def _load(self, database: sqlite3.Connection, name: str, protocol: str) -> Contents:
        meta = dict(database.execute("SELECT key, value FROM meta").fetchall())
        for key, mine in (("name", name), ("protocol", protocol)):
            if meta.get(key) != mine:
                found = meta.get(key)
                raise StoreRefused(f"{self.path} is the store of {key} {found!r}, not of {mine!r}")
        snapshots = database.execute("SELECT 1, checksum, data FROM snapshot").fetchall()
        log = "SELECT number, checksum, data FROM log ORDER BY number"
        batches: list[bytes] = []
        expected: int | None = None
        for number, checksum, data in [*snapshots, *database.execute(log)]:
            if type(data) is not bytes or crc32(data) != checksum:
                raise StoreRefused(f"{self.path} is damaged: a checksum does not match")
            batches.append(data)
            if len(batches) > len(snapshots):
                if number != (number if expected is None else expected):
                    raise StoreRefused(f"{self.path} is damaged: batch {expected} is missing")
                expected = number + 1
        snapshot = batches.pop(0) if snapshots else b""
        return Contents(int(meta["opened"]), snapshot, batches)

    # -- writing --------------------------------------------------------------

    def _connect(self, new: bool, name: str, protocol: str, opened: int) -> None:
        database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._database = database
        if new:
            database.execute("PRAGMA synchronous = FULL")
            database.executescript(_SCHEMA)
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA secure_delete = OFF")
        database.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        rows = [("name", name), ("protocol", protocol), ("opened", opened)]
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
        database.execute("COMMIT")

    def write(self, batch: bytes) -> None:
        self._commit([("INSERT INTO log (checksum, data) VALUES (?, ?)", (crc32(batch), batch))])

    def replace(self, snapshot: bytes) -> None:
        self._commit(
            [
                ("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?)", (crc32(snapshot), snapshot)),
                ("DELETE FROM log", ()),
            ]
        )

    def _commit(self, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        database = self._database
        if database is None:
            raise StoreFailed(f"{self.path} is closed")
        try:
            database.execute("BEGIN IMMEDIATE")
            for statement, values in statements:
                database.execute(statement, values)
            database.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                database.rollback()
            raise StoreFailed(f"{self.path} cannot be written: {error}") from error

    def close(self) -> None:
        self.executor.shutdown(wait=True)
        if self._database is not None:
            self._database.close()
            self._database = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _lock(path: Path) -> IO[bytes]:
    """Return an open file that keeps every other process from using the store."""
    file = Path(f"{path}.lock").open("ab")  # noqa: SIM115 - it stays open
    try:
        _lock_file(file)
    except OSError:
        file.close()
        raise StoreInUse(f"{path} is in use by another process, or by another node") from None
    return file


def _lock_file(file: IO[bytes]) -> None:
    """Lock a file until it is closed, or the process ends; OSError if somebody else has."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
