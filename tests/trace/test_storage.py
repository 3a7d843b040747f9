"""Paths as URLs: local ones, patterns, and a store that speaks S3."""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from causewire.check import check
from causewire.cli import main
from causewire.trace import Event, TraceError, open_trace, storage, write_trace
from causewire.trace.formats.foreign import read_foreign
from causewire.trace.storage import RemotePath, expand, locate, read_bytes

from ..bucket import empty_bucket
from .shop import otlp, overtaken

EVENTS = [
    Event("r", "a", 0, 0, 0, "send", "a", 1, ("b",)),
    Event("r", "a", 1, 1, 1, "send", "a", 2, ("b",)),
    Event("r", "b", 0, 2, 2, "deliver", "a", 2, ("a",)),
    Event("r", "b", 1, 3, 3, "deliver", "a", 1, ("a",)),
]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A bucket with a trace as Parquet, as JSON lines, and with spans."""
    write_trace(tmp_path / "all.parquet", EVENTS)
    for name in ("a", "b"):
        write_trace(tmp_path / f"{name}.jsonl", [e for e in EVENTS if e.process == name])
    with empty_bucket(monkeypatch) as store:
        store.write("whole/a trace.parquet", (tmp_path / "all.parquet").read_bytes())
        store.write("nodes/a.jsonl.gz", gzip.compress((tmp_path / "a.jsonl").read_bytes()))
        store.write("nodes/b.jsonl", (tmp_path / "b.jsonl").read_bytes())
        store.write("nodes/_hidden.jsonl", b"no")
        store.write("spans/x.json", otlp(overtaken()))
        store.write("logs/app.log", b'a {"a":1}\nhello\nb {"a":1,"b":1}\nwell\n')
        yield "s3://runs"


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
    assert main(["check", f"{bucket}/logs", "--format", "shiviz", "--json"]) == 1  # inferred
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
    with pytest.raises(TraceError, match="no file matches"):
        expand(str(tmp_path / "*.csv"))
    with pytest.raises(TraceError, match="no such file"):
        expand(str(tmp_path / "gone"))


@pytest.mark.parametrize("bucket", ["bucket", "anonymous@bucket"])
def test_google_is_not_tried_for_a_quarter_of_an_hour(bucket: str) -> None:
    store, path = storage._store(f"gs://{bucket}/a%20b")
    ((options,),) = store.__reduce__()[1:]  # which it does not show in another way
    assert path == "bucket/a b"
    assert options["retry_time_limit"] == timedelta(minutes=1)


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
