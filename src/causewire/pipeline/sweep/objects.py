"""Objects in S3, as the output of a sweep needs them: whole objects, and conditions.

An object is written as a whole or not at all, and there is no renaming and no appending. What
a store has instead is the *conditional put*: write only if there is no such object
(`If-None-Match: *`), or only if it is still the one that I read (`If-Match`). pyarrow does not
offer these, so this is done with boto3, which takes credentials and endpoints from where
pyarrow takes them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, NamedTuple

from ..errors import PipelineError

__all__ = ["Found", "ObjectInfo", "Objects"]

_AT_ONCE = 10
"""Objects that are read side by side."""


class ObjectInfo(NamedTuple):
    """An object: its name below the prefix, its size in bytes, and its tag."""

    name: str
    size: int
    tag: str


class Found(NamedTuple):
    """An object that was read; `age` is in seconds, by the clock of the store."""

    content: bytes
    tag: str
    age: float


class Objects:
    """The objects below a URL, by their names."""

    def __init__(self, url: str) -> None:
        """Nothing is asked of the store here.

        Raises:
            PipelineError: The URL is not one of S3, or boto3 is not installed.
        """
        scheme, _, rest = url.partition("://")
        if scheme.lower() not in ("s3", "s3a", "s3n"):
            raise PipelineError(f"{url}: a sweep writes to a directory or to S3")
        try:
            import boto3
        except ImportError:
            raise PipelineError(
                f"{url}: writing to S3 needs boto3: pip install 'causewire[s3]'"
            ) from None
        self.url = url.rstrip("/")
        self._bucket, _, prefix = rest.partition("/")
        self._prefix = f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
        self._client: Any = boto3.session.Session().client("s3")

    def put(self, name: str, data: bytes) -> None:
        """Write an object, whatever is there."""
        self._put(name, data)

    def put_new(self, name: str, data: bytes) -> str | None:
        """Write an object if there is none, and return its tag; None if there is one."""
        return self._put(name, data, IfNoneMatch="*")

    def put_over(self, name: str, data: bytes, tag: str) -> str | None:
        """Write an object if it is still the one with this tag; None if it is not."""
        return self._put(name, data, IfMatch=tag)

    def _put(self, name: str, data: bytes, **condition: str) -> str | None:
        try:
            told = self._client.put_object(
                Bucket=self._bucket, Key=self._prefix + name, Body=data, **condition
            )
        except Exception as error:
            if condition and _status(error) in (404, 409, 412):
                return None
            raise self._failed("written", error) from None
        return str(told["ETag"])

    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if there is none."""
        found = self.look(name)
        return None if found is None else found.content

    def look(self, name: str) -> Found | None:
        """Return an object with its tag and age; None if there is none."""
        try:
            told = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            content = told["Body"].read()
        except Exception as error:
            if _status(error) == 404:
                return None
            raise self._failed("read", error) from None
        now = told["ResponseMetadata"]["HTTPHeaders"].get("date", "")
        return Found(content, str(told["ETag"]), _seconds_between(told["LastModified"], now))

    def get_all(self, names: Sequence[str]) -> Iterator[bytes]:
        """Yield the contents of objects, in the order of the names; empty if one is gone."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from (content or b"" for content in pool.map(self.get, names))

    def list(self, below: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects whose names begin with `below`, in the order of their names."""
        pages = self._client.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + below):
                for found in page.get("Contents", ()):
                    name = found["Key"][len(self._prefix) :]
                    yield ObjectInfo(name, int(found["Size"]), str(found["ETag"]))
        except PipelineError:
            raise
        except Exception as error:
            raise self._failed("read", error) from None

    def has_any(self, below: str = "") -> bool:
        """Return whether there is an object whose name begins with `below`."""
        return next(self.list(below), None) is not None

    def delete(self, *names: str) -> None:
        """Delete objects, those that are there."""
        try:
            for name in names:
                self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)
        except Exception as error:
            raise self._failed("written", error) from None

    def _failed(self, what: str, error: Exception) -> PipelineError:
        said = " ".join(str(error).split())
        return PipelineError(f"{self.url} cannot be {what}: {said}")


def _status(error: Exception) -> int:
    told = getattr(error, "response", {}).get("ResponseMetadata", {})
    return int(told.get("HTTPStatusCode", 0))


def _seconds_between(begin: datetime, now: str) -> float:
    from email.utils import parsedate_to_datetime

    return (parsedate_to_datetime(now) - begin).total_seconds() if now else 0.0
