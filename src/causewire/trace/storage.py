"""Paths as URLs: local files, S3, Google Cloud Storage, HDFS, and HTTP for reading.

    locate("run.parquet")               a `pathlib.Path`
    locate("s3://bucket/run.parquet")   a `RemotePath`, with the few methods that readers need
    expand("s3://bucket/runs/*.parquet"), expand("file:///data/runs")

The stores are those of `pyarrow.fs`, not of fsspec: pyarrow is needed for Parquet anyway,
brings clients for S3, GCS and HDFS in one wheel without further packages, and reads
column chunks from them directly. Credentials and endpoints come from where each store's
own tools take them (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, ...). An HTTP URL names one
file, which is read as a whole.

Compressed files (gzip, zstd) are recognised by their first bytes, whatever their names.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from .lakes import Folder, files_of_metadata, files_of_table, is_metadata, refuse_tables_below
from .schema import TraceError, because

if TYPE_CHECKING:
    import pyarrow.fs

__all__ = [
    "Location",
    "RemotePath",
    "absolute",
    "compressed",
    "expand",
    "forget_stores",
    "is_pattern",
    "is_url",
    "locate",
    "open_binary",
    "plain_file",
    "read_bytes",
    "source_of",
]

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_WILD = re.compile(r"[*?\[]")
_NOT_FOR_LONG = "?retry_limit_seconds=60"
"""Google's client tries for 15 minutes, also where it has no credentials and no network."""
_UNPACKED = 1 << 17
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class _Size(NamedTuple):
    st_size: int


class RemotePath:
    """A file in a store, with the methods of `pathlib.Path` that readers use."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pure = PurePosixPath(urlsplit(url).path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._pure.name

    @property
    def suffix(self) -> str:
        """The suffix of the name, with its dot."""
        return self._pure.suffix

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self._pure.stem

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"RemotePath({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __lt__(self, other: object) -> bool:
        return str(self) < str(other)

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open the file for reading."""
        if mode != "rb":
            raise ValueError(f"a file in a store can only be read, not opened with {mode!r}")
        if self.url.lower().startswith(("http://", "https://")):
            with urlopen(self.url) as response:
                return io.BytesIO(response.read())
        store, path = _store(self.url)
        return cast(IO[bytes], store.open_input_file(path))

    def stat(self) -> _Size:
        """Return the size of the file, as `st_size`."""
        if self.url.lower().startswith(("http://", "https://")):
            with self.open() as file:
                return _Size(len(file.read()))
        store, path = _store(self.url)
        return _Size(store.get_file_info(path).size)


Location = Path | RemotePath


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether the path begins with a scheme, as `s3://`."""
    return _SCHEME.match(os.fspath(path)) is not None


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether the path has wildcards."""
    return _WILD.search(os.fspath(path)) is not None


def locate(path: str | os.PathLike[str]) -> Location:
    """Return a path on this machine, or one in a store if `path` is a URL."""
    text = os.fspath(path)
    if not is_url(text):
        return Path(text)
    if text.lower().startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    return RemotePath(text)


def absolute(path: str | os.PathLike[str]) -> str:
    """Return the path as executors need it, who have another working directory."""
    place = locate(path)
    return os.path.abspath(place) if isinstance(place, Path) else place.url


def expand(path: str | os.PathLike[str]) -> list[Location]:
    """Return the files that a path names: itself, those in a directory, or those of a pattern.

    In a directory, names that begin with a dot or an underscore do not count. The files
    come in the order of their names. Of a Delta or an Iceberg table, those of one version count.

    Raises:
        TraceError: There is no such file, or the store fails.
    """
    if not os.fspath(path):  # not this directory, as for the system
        raise TraceError("''", None, "no name of a file")
    place = locate(path)
    try:
        return _local(place) if isinstance(place, Path) else _remote(place)
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {because(error)}") from None


def _local(path: Path) -> list[Location]:
    if path.is_dir():
        names, read = partial(_names, path), partial(_content, path)
        table = files_of_table(Folder(str(path.absolute()), names, read))
        if table is not None:
            return list(map(locate, table))
        files = [f for f in sorted(path.rglob("*")) if f.is_file()]
        refuse_tables_below(str(path), map(str, files))
        return [f for f in files if _shown(f.relative_to(path))]
    if path.exists():
        if is_metadata(str(path.absolute())):
            return list(map(locate, files_of_metadata(str(path.absolute()))))
        return [path]
    if _WILD.search(str(path)):
        base = Path(path.anchor) if path.is_absolute() else Path()
        matches = sorted(base.glob(str(path.relative_to(path.anchor))))
        if not matches:
            raise TraceError(path, None, "no file matches")
        return [file for match in matches for file in _local(match)]
    raise TraceError(path, None, "no such file or directory")


def _names(folder: Path, below: str) -> list[str] | None:
    return [f.name for f in (folder / below).iterdir()] if (folder / below).is_dir() else None


def _content(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes()


def _shown(path: Path | PurePosixPath) -> bool:
    return not any(part[0] in "._" for part in path.parts)


def _remote(place: RemotePath) -> list[Location]:
    if place.url.lower().startswith(("http://", "https://")):
        return [place]
    import pyarrow.fs as fs

    prefix, _, pattern = place.url.partition(_first_wild(place.url))
    if pattern or place.url != prefix:
        base = prefix.rpartition("/")[0]
        wanted = place.url[len(base) + 1 :]
        found = [f for f in _below(base) if fnmatchcase(f.url[len(base) + 1 :], wanted)]
        if not found:
            raise TraceError(place, None, "no file matches")
        return list(found)
    store, path = _store(place.url)
    kind = store.get_file_info(path).type
    if kind == fs.FileType.NotFound:
        raise TraceError(place, None, "no such file or directory")
    if kind != fs.FileType.Directory:
        return (
            list(map(locate, files_of_metadata(place.url))) if is_metadata(place.url) else [place]
        )
    table = files_of_table(_remote_folder(place.url.rstrip("/")))
    return list(_below(place.url)) if table is None else list(map(locate, table))


def _remote_folder(url: str) -> Folder:
    import pyarrow.fs as fs

    store, path = _store(url)

    def names(below: str) -> list[str] | None:
        if store.get_file_info(f"{path}/{below}").type != fs.FileType.Directory:
            return None
        found = store.get_file_info(fs.FileSelector(f"{path}/{below}"))
        return [info.base_name for info in found]

    def read(name: str) -> bytes:
        return read_bytes(RemotePath(f"{url}/{name}"))

    return Folder(url, names, read)


def _first_wild(url: str) -> str:
    match = _WILD.search(url, len("s3://"))
    return match[0] if match else "\0"


def _below(url: str) -> Iterator[RemotePath]:
    import pyarrow.fs as fs

    url = url.rstrip("/")
    store, path = _store(url)
    found = sorted(store.get_file_info(fs.FileSelector(path, recursive=True)), key=_path)
    refuse_tables_below(url, (info.path for info in found))
    for info in found:
        rest = info.path[len(path.rstrip("/")) + 1 :]
        if info.type == fs.FileType.File and _shown(PurePosixPath(rest)):
            yield RemotePath(f"{url}/{rest}")


def _path(info: Any) -> str:
    return str(info.path)


def _store(url: str) -> tuple[pyarrow.fs.FileSystem, str]:
    scheme, _, rest = url.partition("://")
    if scheme.lower() in ("s3", "s3a", "s3n"):
        # The path is taken as it is: in a URL of pyarrow, `%` and spaces would be decoded.
        return _s3(), rest
    return _other(f"{scheme}://{urlsplit(url).netloc}"), _path_in(url)


def _path_in(url: str) -> str:
    import pyarrow.fs as fs

    return str(fs.FileSystem.from_uri(url)[1])


@lru_cache
def _s3() -> pyarrow.fs.FileSystem:
    import pyarrow.fs as fs

    return fs.S3FileSystem(**_s3_options())


def _s3_options() -> dict[str, Any]:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    options: dict[str, Any] = {}
    if endpoint:
        url = urlsplit(endpoint)
        options |= {"endpoint_override": url.netloc, "scheme": url.scheme}
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        options["region"] = region
    return options


def forget_stores() -> None:
    """Open stores anew, with the settings that the environment has now."""
    _s3.cache_clear()
    _other.cache_clear()


@lru_cache
def _other(authority: str) -> pyarrow.fs.FileSystem:
    import pyarrow as pa
    import pyarrow.fs as fs

    google = authority.lower().startswith(("gs://", "gcs://"))
    try:
        return fs.FileSystem.from_uri(authority + "/" + google * _NOT_FOR_LONG)[0]
    except (pa.ArrowException, OSError) as error:
        raise TraceError(authority, None, f"cannot be opened: {error}") from None


def compressed(location: Location) -> bool:
    """Whether the content of a file begins as gzip or zstd does."""
    with location.open("rb") as file:
        return file.read(4).startswith((_GZIP, _ZSTD))


def plain_file(location: Location) -> bool:
    """Whether it is a local file, not compressed, which pyarrow opens by its path."""
    return isinstance(location, Path) and not compressed(location)


def source_of(location: Location) -> Any:
    """Return what pyarrow reads a file from: its path, or the open file in a store."""
    return location if isinstance(location, Path) else location.open()


class _Unpacked(io.RawIOBase):
    """What is in a file that is compressed with gzip; damage is an `OSError`, as elsewhere."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._gzip = gzip.GzipFile(fileobj=file)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._gzip.read1(len(buffer))
        except (EOFError, zlib.error) as error:
            raise OSError(str(error)) from None
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, start: int = os.SEEK_SET, /) -> int:
        try:
            return self._gzip.seek(offset, start)
        except (EOFError, zlib.error) as error:
            raise OSError(str(error)) from None

    def tell(self) -> int:
        return self._gzip.tell()

    def close(self) -> None:
        if not self.closed:
            self._gzip.close()
            self._file.close()
        super().close()


def open_binary(location: Location) -> IO[bytes]:
    """Open a file for reading, decompressed if it is compressed with gzip or zstd.

    That it is cut short or damaged is an `OSError`, when its bytes are asked for.
    """
    file = location.open("rb")
    start = file.read(4)
    file.seek(0)
    if start.startswith(_GZIP):
        return cast(IO[bytes], io.BufferedReader(_Unpacked(file), _UNPACKED))
    if start == _ZSTD:
        import pyarrow as pa

        stream: Any = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
        return cast(IO[bytes], io.BufferedReader(stream))
    if isinstance(location, RemotePath) and not isinstance(file, io.BytesIO):
        return cast(IO[bytes], io.BufferedReader(cast(Any, file)))
    return file


def read_bytes(location: Location) -> bytes:
    """Return the content of a file, decompressed if it is compressed with gzip or zstd.

    A text that begins with a byte order mark, as programs of Windows write it, is returned in
    UTF-8 without the mark. No binary format of spans can begin like that.
    """
    with open_binary(location) as file:
        data = file.read()
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-16").encode()
    return data
