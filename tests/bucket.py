"""A server on loopback that speaks S3, with one empty bucket."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow.fs as fs
import pytest

from causewire.trace import storage


class Bucket(NamedTuple):
    """A bucket called `runs`, and the environment variables by which it is found."""

    files: fs.FileSystem
    settings: dict[str, str]

    def write(self, name: str, data: bytes) -> None:
        """Keep `data` in the bucket as `name`."""
        with self.files.open_output_stream(f"runs/{name}", compression=None) as out:
            out.write(data)


@contextmanager
def empty_bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket with nothing in it, known to this process.

    All servers of a process share their buckets, so what an earlier test left is dropped first.
    """
    moto = pytest.importorskip("moto.server")
    running: Any = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    address = f"http://{host}:{port}"
    urllib.request.urlopen(f"{address}/moto-api/reset", data=b"").close()
    settings = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    storage.forget_stores()
    files = fs.S3FileSystem(
        endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True
    )
    files.create_dir("runs")
    yield Bucket(files, settings)
    storage.forget_stores()
    running.stop()
