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

**Creation.** A new database is made in memory, in WAL mode from the beginning, and written to
a file that gets its name when it is complete (`write_whole`). So SQLite never sees half a store,
and never has a rollback journal.

**Refusing.** A file is examined before SQLite may change it: to open a database that has a
write-ahead log, and to close it, can change both files. So the header is read first, then
everything is loaded through a connection that cannot write to the database, and only when that
succeeded the store is opened. If there is no write-ahead log, that connection regards the file as
immutable. If there is one, SQLite keeps its index in memory (`locking_mode=EXCLUSIVE`) and takes
no locks on the files (`vfs=unix-none`), since for these it would have to write. The lock of a
store is a file of its own, since the file that it protects must not be opened before.
"""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any
from zlib import crc32

from .engine import Contents, Store
from .errors import StoreFailed, StoreInUse, StoreRefused
from .files import lock, write_whole

__all__ = ["FORMAT", "SqliteStore"]

FORMAT = 1
"""The version of the format, in the header of the database (`user_version`)."""

APPLICATION = 0x43575354
"""Identifies a store, in the header of the database (`application_id`): "CWST"."""

CHECKPOINT = 4000
"""After how many pages in the write-ahead log they are copied to the database: 32 MiB."""

WAL_MODE = b"\2\2"
"""The versions for writing and reading, in the header of a database in WAL mode."""

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
        path: The file, or a symbolic link to it. Two more are kept next to it, which end in
            `-wal` and `.lock`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        self.executor = ThreadPoolExecutor(1, f"causewire store {self.path.name}")
        self._lock: IO[bytes] | None = None
        self._database: sqlite3.Connection | None = None

    def open(self, name: str, protocol: str) -> Contents:
        if self._database is not None:
            raise StoreInUse(f"{self.path} is open already")
        try:
            if self.path.is_dir():
                raise StoreRefused(f"{self.path} is not a store: it is a directory")
            self._lock = lock(self.path)
            self._check_others()
            if not self.path.exists():
                write_whole(self.path, _new_database(name, protocol))
            contents = self._examine(name, protocol)
            self._connect(contents.opened + 1)
        except OSError as error:
            self.close()
            raise StoreFailed(f"{self.path} cannot be opened: {error}") from error
        except sqlite3.Error as error:
            self.close()
            if _code(error) == sqlite3.SQLITE_BUSY:
                raise StoreInUse(f"{self.path} is in use by another process") from error
            raise StoreFailed(f"{self.path} cannot be written: {error}") from error
        except BaseException:
            self.close()
            raise
        return contents

    # -- reading --------------------------------------------------------------

    def _check_others(self) -> None:
        """Refuse a store whose other files do not belong to it: SQLite would apply them."""
        wal, journal = [Path(f"{self.path}{end}") for end in ("-wal", "-journal")]
        if journal.exists() and journal.stat().st_size:
            raise StoreRefused(
                f"{self.path} is damaged: another program was interrupted while it changed it, "
                f"and has left {journal.name}"
            )
        if not self.path.exists() and wal.exists() and wal.stat().st_size:
            raise StoreRefused(f"{self.path} is missing, and {wal.name}, a part of it, is there")

    def _examine(self, name: str, protocol: str) -> Contents:
        """Return what is in the file, without changing it, or refuse it."""
        with self.path.open("rb") as file:
            header = file.read(100)
        if not header:
            raise StoreRefused(f"{self.path} is not a store, or is damaged: it is empty")
        if not header.startswith(b"SQLite format 3\0") or len(header) < 100:
            raise StoreRefused(f"{self.path} is not a store: it is not a SQLite database")
        if int.from_bytes(header[68:72], "big") != APPLICATION:
            raise StoreRefused(f"{self.path} is not a store: it is the database of something else")
        version = int.from_bytes(header[60:64], "big")
        if version != FORMAT:
            raise StoreRefused(
                f"{self.path} has version {version} of the format; this program knows {FORMAT}"
            )
        try:
            with closing(self._connect_to_read()) as database:
                return self._load(database, name, protocol)
        except sqlite3.Error as error:
            if _code(error) == sqlite3.SQLITE_CANTOPEN:
                raise
            raise StoreRefused(f"{self.path} is damaged: {error}") from error

    def _connect_to_read(self) -> sqlite3.Connection:
        """Return a connection that reads the database and its write-ahead log in place."""
        wal = Path(f"{self.path}-wal")
        if wal.exists() and wal.stat().st_size:
            how = f"mode=ro&vfs={'win32' if os.name == 'nt' else 'unix'}-none"
        else:
            how = "immutable=1"
        database = sqlite3.connect(f"{self.path.as_uri()}?{how}", uri=True, isolation_level=None)
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        return database

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

    def _connect(self, opened: int) -> None:
        database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._database = database
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA secure_delete = OFF")
        database.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT OR REPLACE INTO meta VALUES ('opened', ?)", (opened,))
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


def _new_database(name: str, protocol: str) -> bytes:
    """Return the file of a store that has not been opened yet."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.executescript(_SCHEMA)
        rows = [("name", name), ("protocol", protocol), ("opened", 0)]
        database.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        image = bytearray(database.serialize())
    image[18:20] = WAL_MODE  # a database in memory cannot be switched to it
    return bytes(image)


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code of SQLite, or 0 if the error is not from SQLite."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
