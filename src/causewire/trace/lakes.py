"""Tables of a data lake: which files of their directories count.

A Delta or an Iceberg table is a directory of Parquet files with a log. Files that were
replaced or deleted stay in the directory for a while, so only the log says which rows the
table has. Delta's log is read by the package `deltalake`, Iceberg's by `pyiceberg`; both are
imported when they are needed.

Which version of an Iceberg table is the current one, only its catalog knows. A table that was
written without a catalog says it in `metadata/version-hint.text`; of any other, the metadata
file has to be named. Guessing the newest file could take the attempt of a writer that failed.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .schema import TraceError

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

__all__ = ["Folder", "files_of_metadata", "files_of_table", "is_metadata", "refuse_tables_below"]

_PLAIN = {None, "timestampNtz", "appendOnly", "invariants", "checkConstraints", "v2Checkpoint"}
"""Features of Delta under which a row counts if its file does."""
_DELTA_LOG = "_delta_log"
_HINT = "version-hint.text"
_METADATA = re.compile(r"(?:v(?P<version>\d+)|[^/]+)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_SPARK = "read it with Spark, and use check_dataframe (docs/pipeline.md)"


class Folder(NamedTuple):
    """A directory, here or in a store."""

    place: str
    """Its absolute path, or its URL, without a slash at the end."""
    names: Callable[[str], list[str] | None]
    """Returns the names in a directory below it; None if that does not exist."""
    read: Callable[[str], bytes]
    """Returns the content of a file below it."""


def is_metadata(place: str) -> bool:
    """Return whether a path names a version of an Iceberg table."""
    folder, _, name = place.rpartition("/")
    return folder.endswith("/metadata") and _METADATA.fullmatch(name) is not None


def files_of_table(folder: Folder) -> list[str] | None:
    """Return the files that make up the table in a directory; None if it is not a table.

    Raises:
        TraceError: It is a table, and it is not known which of its files count.
    """
    if folder.names(_DELTA_LOG) is not None:
        return _delta(folder.place)
    names = folder.names("metadata") or []
    if not any(map(_METADATA.fullmatch, names)):
        return None
    return files_of_metadata(f"{folder.place}/metadata/{_current(folder, names)}")


def refuse_tables_below(place: str, files: Iterable[str]) -> None:
    """Raise if files of a directory belong to a table in it: not all of them may count.

    Raises:
        TraceError: There is such a table, which has to be named itself.
    """
    for file in files:
        if f"/{_DELTA_LOG}/" in file or is_metadata(file):
            what = f"{file.rpartition('/')[0].rpartition('/')[0]} is a table with a log"
            raise TraceError(place, None, f"{what}: name it itself")


def _delta(place: str) -> list[str]:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ModuleNotFoundError:
        what = "a Delta table, which needs the package deltalake: pip install deltalake"
        raise TraceError(place, None, what) from None
    try:
        table = DeltaTable(place, storage_options=_allow_http())
        features = set(table.protocol().reader_features or ()) - _PLAIN
        files = sorted(table.file_uris())
    except (DeltaError, OSError) as error:
        what = f"a Delta table that cannot be read: {_line(error)}"
        raise TraceError(place, None, what) from None
    if features:
        what = f"a Delta table with {', '.join(sorted(features))}: {_SPARK}"
        raise TraceError(place, None, what)
    return files


def _allow_http() -> dict[str, str]:
    """Return what deltalake does not take from the environment by itself."""
    return {"AWS_ALLOW_HTTP": str(_endpoint().startswith("http://")).lower()}


def _endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


# -- Iceberg -----------------------------------------------------------------------------------


def _current(folder: Folder, names: list[str]) -> str:
    """Return the name of the current metadata file, as a table without a catalog says it.

    The hint is written after the version, and may be behind; the versions after it count.
    """
    versions = [found for found in map(_METADATA.fullmatch, sorted(names)) if found]
    numbered = {int(found["version"]): found[0] for found in versions if found["version"]}
    if _HINT in names:
        hint = folder.read(f"metadata/{_HINT}").decode(errors="replace").strip()
        if hint.isdecimal() and int(hint) in numbered:
            number = int(hint)
            while number + 1 in numbered:
                number += 1
            return numbered[number]
    named = f"{folder.place}/metadata/{versions[-1][0]}"
    what = "an Iceberg table, and only its catalog knows which version is current: name it"
    raise TraceError(folder.place, None, f"{what} (the last one here is {named}), or {_SPARK}")


def files_of_metadata(place: str) -> list[str]:
    """Return the data files of the version of an Iceberg table that a metadata file describes.

    Raises:
        TraceError: It cannot be read, or its rows are not simply those of its files.
    """
    try:
        from pyiceberg.table import StaticTable
    except ModuleNotFoundError:
        what = 'an Iceberg table, which needs pyiceberg: pip install "causewire[iceberg]"'
        raise TraceError(place, None, what) from None
    try:
        table = StaticTable.from_metadata(place, _iceberg_options())
        tasks = list(table.scan().plan_files())
        odd = _odd_schema(table)
    except Exception as error:  # pydantic, pyarrow and pyiceberg raise what they like
        what = f"an Iceberg table that cannot be read: {_line(error)}"
        raise TraceError(place, None, what) from None
    if any(task.delete_files for task in tasks):
        odd = "rows that were deleted by delete files"
    if any(task.file.file_format != "PARQUET" for task in tasks):
        odd = "data files that are not Parquet"
    if odd is not None:
        raise TraceError(place, None, f"an Iceberg table with {odd}: {_SPARK}")
    return sorted(task.file.file_path for task in tasks)


def _iceberg_options() -> dict[str, str]:
    """Return what pyiceberg does not take from the environment by itself."""
    options = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    if endpoint := _endpoint():
        options["s3.endpoint"] = endpoint
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        options["s3.region"] = region
    return options


def _odd_schema(table: StaticTable) -> str | None:
    """Return why the columns of a file cannot be found by their names, if so.

    Iceberg finds them by number: a column that was renamed has its former name in older files.
    """
    now: dict[str, int] = {field.name: field.field_id for field in table.schema().fields}
    numbers: dict[str, set[int]] = defaultdict(set)
    names: dict[int, set[str]] = defaultdict(set)
    for schema in table.schemas().values():
        for field in schema.fields:
            numbers[field.name].add(field.field_id)
            names[field.field_id].add(field.name)
    if any(len(numbers[name]) > 1 or len(names[number]) > 1 for name, number in now.items()):
        return "columns that were renamed or replaced"
    if any(field.initial_default is not None for field in table.schema().fields):
        return "columns that have a default value"
    return None


def _line(error: Any) -> str:
    return " ".join(str(error).split()) or type(error).__name__
