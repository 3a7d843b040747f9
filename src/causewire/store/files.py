"""Files of a store: the lock, and a new file that appears whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO

from .errors import StoreInUse

__all__ = ["lock", "write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Make a file that either has all of its contents or does not exist, whatever happens.

    The contents are written to a file next to it, which ends in `-new`, and which gets its name
    when they are on the disk. The name is on the disk as well when this returns. A process that
    is killed in between leaves the file that ends in `-new`, and the next one replaces it.

    Raises:
        OSError: That was not possible; the file does not exist.
    """
    new = Path(f"{path}-new")
    new.unlink(missing_ok=True)
    with new.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    """Wait until the names of the files in a directory are on the disk."""
    if os.name == "nt":  # a directory cannot be opened there
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def lock(path: Path) -> IO[bytes]:
    """Return an open file that keeps every other process from using the store.

    Raises:
        StoreInUse: Somebody else has locked it.
        OSError: The file cannot be made.
    """
    file = Path(f"{path}.lock").open("ab")  # noqa: SIM115 - it stays open
    try:
        _lock_file(file)
    except OSError:
        file.close()
        raise StoreInUse(f"{path} is in use by another process, or by another node") from None
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
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
