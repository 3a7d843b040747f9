"""Tables of a data lake: which files of their directories count.

A Delta or an Iceberg table is a directory of Parquet files with a log. Files that were
replaced or deleted stay in the directory for a while, so only the log says which rows the
table has. Delta's log is read by the package `deltalake`; it is imported when it is needed.
"""

from __future__ import annotations

from pathlib import Path

from .schema import TraceError

__all__ = ["files_of_table"]

_PLAIN = {None, "timestampNtz", "appendOnly", "invariants", "checkConstraints", "v2Checkpoint"}
"""Features of Delta under which a row counts if its file does."""


def files_of_table(folder: Path) -> list[Path] | None:
    """Return the files that make up the table in a directory; None if it is not a table.

    Raises:
        TraceError: It is a table, and it is not known which of its files count.
    """
    if (folder / "_delta_log").is_dir():
        return _delta(folder)
    if next((folder / "metadata").glob("*.metadata.json"), None) is not None:
        what = "an Iceberg table: read it with Spark, and use check_dataframe (docs/pipeline.md)"
        raise TraceError(folder, None, what)
    return None


def _delta(folder: Path) -> list[Path]:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ModuleNotFoundError:
        what = "a Delta table, which needs the package deltalake: pip install deltalake"
        raise TraceError(folder, None, what) from None
    try:
        table = DeltaTable(str(folder.absolute()))
        features = set(table.protocol().reader_features or ()) - _PLAIN
        files = [Path(file) for file in table.file_uris()]
    except DeltaError as error:
        text = " ".join(str(error).split())
        raise TraceError(folder, None, f"a Delta table that cannot be read: {text}") from None
    if features:
        what = f"a Delta table with {', '.join(sorted(features))}: read it with Spark"
        raise TraceError(folder, None, f"{what}, and use check_dataframe (docs/pipeline.md)")
    return sorted(files)
