"""Paths as URLs: local ones, patterns, and a store that speaks S3."""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.fs as fs
import pytest

from causewire.check import check
from causewire.cli import main
from causewire.trace import Event, TraceError, open_trace, storage, write_trace
from causewire.trace.formats.foreign import read_foreign
from causewire.trace.storage import RemotePath, expand, locate, read_bytes

from .shop import otlp, overtaken

EVENTS = [
    Event("r", "a", 0, 0, 0, "send", "a", 1, ("b",)),
    Event("r", "a", 1, 1, 1, "send", "a", 2, ("b",)),
    Event("r", "b", 0, 2, 2, "deliver", "a", 2, ("a",)),
    Event("r", "b", 1, 3, 3, "deliver", "a", 1, ("a",)),
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """An S3 server on loopback."""
    moto = pytest.importorskip("moto.server")
    running: Any = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A bucket with a trace as Parquet, as JSON lines, and with spans."""
    settings = {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    storage.forget_stores()
    place = server.removeprefix("http://")
    store = fs.S3FileSystem(endpoint_override=place, scheme="http", allow_bucket_creation=True)
    store.create_dir("runs")
    write_trace(tmp_path / "all.parquet", EVENTS)
    for name in ("a", "b"):
        write_trace(tmp_path / f"{name}.jsonl", [e for e in EVENTS if e.process == name])
    files = {
        "whole/a trace.parquet": (tmp_path / "all.parquet").read_bytes(),
        "nodes/a.jsonl.gz": gzip.compress((tmp_path / "a.jsonl").read_bytes()),
        "nodes/b.jsonl": (tmp_path / "b.jsonl").read_bytes(),
        "nodes/_hidden.jsonl": b"no",
        "spans/x.json": otlp(overtaken()),
    }
    for name, data in files.items():
        with store.open_output_stream(f"runs/{name}", compression=None) as out:
            out.write(data)
    yield "s3://runs"
    storage.forget_stores()


@pytest.mark.slow
def test_a_store_is_like_a_disk(bucket: str) -> None:
    wanted = check(EVENTS)
    assert wanted.violations == 1
    assert check(open_trace(f"{bucket}/whole")) == wanted
    assert check(open_trace(f"{bucket}/whole/a trace.parquet")) == wanted
    assert check(open_trace(f"{bucket}/nodes")) == wanted
    assert check(open_trace(f"{bucket}/nodes/*.gz", f"{bucket}/nodes/b*")) == wanted
    lines = open_trace(f"{bucket}/nodes/b.jsonl")
    assert [event.process for event in lines.events()] == ["b", "b"]
    assert check(read_foreign([f"{bucket}/spans"]).trace).violations == 1
    assert main(["check", f"{bucket}/spans", "--json"]) == 1
    names = [str(file) for file in expand(f"{bucket}/nodes")]
    assert names == [f"{bucket}/nodes/a.jsonl.gz", f"{bucket}/nodes/b.jsonl"]
    with pytest.raises(TraceError, match="no such file or directory"):
        open_trace(f"{bucket}/gone")


@pytest.mark.slow
def test_local_paths_and_patterns(tmp_path: Path) -> None:
    write_trace(tmp_path / "a b.parquet", EVENTS)
    assert locate((tmp_path / "a b.parquet").as_uri()) == tmp_path / "a b.parquet"
    assert check(open_trace((tmp_path / "a b.parquet").as_uri())).violations == 1
    assert expand(str(tmp_path / "*.parquet")) == [tmp_path / "a b.parquet"]
    assert expand(tmp_path.as_uri()) == [tmp_path / "a b.parquet"]
    assert expand(str(tmp_path / "*.csv")) == []
    with pytest.raises(TraceError, match="no such file"):
        expand(str(tmp_path / "gone"))


def test_a_file_over_http(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(otlp(overtaken()))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/x.json"
            assert read_bytes(RemotePath(url)) == (tmp_path / "x.json").read_bytes()
            assert check(read_foreign([url]).trace).violations == 1
            with pytest.raises(TraceError, match="404"):
                read_foreign([url + "x"])
        finally:
            server.shutdown()
            thread.join()
