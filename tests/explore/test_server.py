"""The server: who may ask, and what is answered."""

from __future__ import annotations

import http.client
import json
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest

from causewire.check import check
from causewire.explore import ExploreServer, explore, preview
from causewire.explore.dataset import RunView
from causewire.explore.table import Table
from causewire.trace import Event, open_trace, open_writer, trace_of, write_trace

from .stories import STORY, simulated


def unpacked(data: bytes) -> dict[str, list[float]]:
    """Return the arrays of a packed answer."""
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    return {
        name: np.frombuffer(data, f"<{kind}", count, 4 + length + offset).tolist()
        for name, kind, offset, count in header["arrays"]
    }


class Page:
    """Asks a server as its own page would, or as somebody else would."""

    def __init__(self, server: ExploreServer) -> None:
        self.server = server
        self.base = urlsplit(server.url)

    def raw(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        host = headers.pop("Host", self.base.netloc)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, dict(response.getheaders()), body

    def ask(self, question: str, method: str = "GET", **query: Any) -> tuple[int, Any]:
        path = f"{self.base.path}api/{question}?{urlencode(query)}"
        origin = {"Origin": f"http://{self.base.netloc}"} if method == "POST" else {}
        status, _, body = self.raw(path, method, **origin)
        return status, json.loads(body)

    def ready(self) -> Any:
        for _ in range(2000):
            status = self.ask("status")[1]["datasets"][0]
            if status["error"] or (status["ready"] and status["report"]):
                return status
            time.sleep(0.005)
        raise AssertionError(status)


@pytest.fixture
def page() -> Iterator[Page]:
    yield from serve(explore(trace_of(STORY, "story")))


def serve(server: ExploreServer) -> Iterator[Page]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        page = Page(server)
        page.ready()
        yield page
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_page_and_its_files_are_served(page: Page) -> None:
    status, headers, body = page.raw(page.base.path)
    assert status == 200
    assert b"<!doctype html>" in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    for name in ("app.js", "style.css", "icon.svg"):
        assert page.raw(page.base.path + name)[0] == 200


def test_nothing_of_the_page_comes_from_elsewhere(page: Page) -> None:
    for name, answer in page.server.static.items():
        text = answer.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, name
        assert "https:" not in text, name
        assert "innerHTML" not in text, name


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_requests_of_others_are_refused(page: Page, headers: dict[str, str]) -> None:
    status, _, body = page.raw(page.base.path + "api/status", **headers)
    assert status in (403, 421)
    assert b"story" not in body


@pytest.mark.parametrize(
    "path",
    ["/", "/api/status", "/wrong/api/status", "/app.js", "//", "/%00/", "*", "http://evil/"],
)
def test_addresses_without_the_token_are_refused(page: Page, path: str) -> None:
    assert page.raw(path)[0] == 404


@pytest.mark.parametrize(
    "name",
    [
        "../server.py", "..%2fserver.py", "/etc/passwd", "%2e%2e/__init__.py", "static/app.js",
        "api/", "api/nothing", "api/../app.js", "nothing.js", "app.js/", "app.js%00",
    ],
)  # fmt: skip
def test_other_paths_are_refused(page: Page, name: str) -> None:
    assert page.raw(page.base.path + name)[0] == 404


def test_what_changes_something_needs_an_origin(page: Page) -> None:
    path = page.base.path + "api/replay?protocol=csps"
    assert page.raw(path, "POST")[0] == 403
    assert page.raw(path, "GET")[0] == 404
    assert page.raw(path, "PUT")[0] == 501


def test_requests_with_a_body_are_refused(page: Page) -> None:
    origin = f"http://{page.base.netloc}"
    path = page.base.path + "api/replay"
    assert page.raw(path, "POST", Origin=origin, Content_Length="5")[0] == 413


def test_it_listens_on_the_loopback_interface_only(page: Page) -> None:
    assert page.server.server_address[0] == "127.0.0.1"
    assert len(page.server.token) >= 32


def test_a_run_is_told(page: Page) -> None:
    status, run = page.ask("run")
    assert status == 200
    assert run["processes"] == ["ann", "bob", "cid", "dan"]
    assert (run["rows"], run["messages"], run["axis"], run["end"]) == (7, 4, "time", 6000)


@pytest.mark.parametrize(
    ("question", "query", "status"),
    [
        ("run", {"run": 5}, 404),
        ("run", {"d": 1}, 404),
        ("run", {"run": "x"}, 400),
        ("window", {"low": "nan"}, 400),
        ("window", {"low": "x"}, 400),
        ("window", {"lanes": "0,9"}, 400),
        ("select", {"row": 99}, 404),
        ("select", {"copy": 99}, 404),
        ("select", {}, 404),
        ("relate", {"a": 0, "b": -5}, 404),
        ("find", {"q": "nobody"}, 400),
        ("find", {"q": "ann:77"}, 404),
        ("near", {"process": 44}, 404),
    ],
)
def test_bad_questions_are_answered_in_a_line(
    page: Page, question: str, query: dict[str, Any], status: int
) -> None:
    answered, body = page.ask(question, **query)
    assert answered == status
    assert "\n" not in body["error"]


def test_violations_are_listed_with_their_chain(page: Page) -> None:
    found = page.ask("violations")[1]
    assert found["total"] == 1
    (violation,) = found["list"]
    assert violation["words"].endswith("but cid delivered bob:1 first, and ann:1 only later")
    assert violation["first"]["name"] == "ann:1"
    assert violation["second"]["name"] == "bob:1"
    told = [page.ask("tell", copy=copy)[1]["words"] for copy in violation["chain"]]
    assert [words.partition(",")[0] for words in told] == [
        "ann:2 from ann to bob",
        "bob:1 from bob to cid",
    ]


def test_two_events_are_compared(page: Page) -> None:
    before = page.ask("relate", a=0, b=4)[1]
    assert before["relation"] == "before"
    assert [hop["message"] for hop in before["chain"]] == ["ann:2", "bob:1"]
    assert page.ask("relate", a=4, b=0)[1]["relation"] == "after"
    concurrent = page.ask("relate", a=0, b=6)[1]
    assert concurrent["relation"] == "concurrent"
    assert "are concurrent" in concurrent["words"]


def test_the_smallest_trace_shows_the_same_violation(page: Page, tmp_path: Path) -> None:
    (violation,) = page.ask("violations")[1]["list"]
    copies = {*violation["chain"], violation["first"]["copy"], violation["second"]["copy"]}
    path = page.base.path + "api/extract?copies=" + ",".join(map(str, copies))
    body = page.raw(path)[2]
    (tmp_path / "smallest.jsonl").write_bytes(body)
    report = check(open_trace(tmp_path / "smallest.jsonl"))
    assert (report.events, report.violations, report.undelivered) == (6, 1, 0)
    assert str(report.examples[0]) == violation["words"]


def test_a_window_is_extracted_as_a_sound_trace(tmp_path: Path) -> None:
    for page in serve(explore(trace_of(simulated("csps"), "run"))):
        end = page.ask("run")[1]["end"]
        path = f"{page.base.path}api/extract?low={end / 3}&high={end / 2}"
        (tmp_path / "part.jsonl").write_bytes(page.raw(path)[2])
        report = check(open_trace(tmp_path / "part.jsonl"))
        assert report.bad.total() == 0
        assert report.undelivered == 0
        assert report.violations == 0
        assert 20 < report.events < 300


def test_what_held_a_message_back_is_told() -> None:
    for page in serve(explore(trace_of(simulated("csps"), "run"))):
        told = [page.ask("select", copy=copy)[1]["sentences"] for copy in range(60)]
        held = [text for texts in told for text in texts if "held at its sender" in text]
        assert len(held) > 10
        assert any("until the permit of p" in text for text in held)
        assert not any("does not say" in text for text in held)
        at_receiver = [text for texts in told for text in texts if "held at its receiver" in text]
        assert at_receiver
        assert any("Nothing held it back." in texts for texts in told)


def test_a_step_tells_the_state_of_all(page: Page) -> None:
    step = page.ask("step", row=1)[1]
    assert step["words"].startswith("ann sends ann:2 to bob")
    ann, bob, cid, _ = step["state"]
    assert ann["sent"] == 2
    assert bob["coming"] == ["ann:2"]
    assert cid["coming"] == ["ann:1"]
    assert page.ask("step", row=99)[1]["row"] == 6


def test_a_run_is_replayed_under_another_protocol() -> None:
    for page in serve(explore(trace_of(simulated("fifo", 200), "run"))):
        assert page.ready()["report"]["violations"] > 0
        status, answer = page.ask("replay", "POST", protocol="csps")
        assert (status, answer) == (200, {"d": 1})
        replay = page.ask("status")[1]["datasets"][1]
        assert replay["report"]["violations"] == 0
        assert page.ask("run", d=1)[1]["messages"] == 200
        status, answer = page.ask("replay", "POST", protocol="nonsense")
        assert status == 422
        assert "nonsense" in answer["error"]


def test_hostile_names_come_as_short_visible_text() -> None:
    names = ["<img src=x onerror=alert(1)>", "a\u202eb", "x" * 1_000_000, "", "new\nline"]
    events = [
        Event("r", name, 0, k, k, "send", name, 1, (names[0],)) for k, name in enumerate(names)
    ]
    for page in serve(explore(trace_of(events, "\u202ehostile" + "y" * 10_000))):
        _, headers, body = page.raw(page.base.path + "api/run")
        assert headers["Content-Type"] == "application/json"
        assert len(body) < 4000
        shown = json.loads(body)["processes"]
        assert all(len(name) <= 48 and name.isprintable() for name in shown)
        assert len(set(shown)) == len(names)
        assert "a\\u202eb" in shown
        title = page.ask("status")[1]["datasets"][0]["title"]
        assert title.startswith("\\u202ehostile")
        assert page.ask("select", copy=0)[0] == 200


def test_a_trace_that_grows_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    writer = open_writer(path, live=True)
    for event in STORY[:4]:
        writer.write(event)
    writer.flush()
    for page in serve(explore(path, follow=[path])):
        assert page.ask("run")[1]["rows"] == 4
        for event in STORY[4:]:
            writer.write(event)
        writer.flush()
        for _ in range(1000):
            if page.ask("run")[1]["rows"] == 7 and page.ready()["report"]["violations"] == 1:
                break
            time.sleep(0.01)
        else:
            raise AssertionError(page.ready())
        page.server.api.datasets[0].stop()
    writer.close()


def test_a_large_trace_has_a_preview_of_the_same_density(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "MOST_EVENTS", 10)
    going_on = threading.Event()
    joined = RunView.__init__

    def slow(self: RunView, table: Table, name: str) -> None:
        going_on.wait(10)
        joined(self, table, name)

    monkeypatch.setattr(RunView, "__init__", slow)
    server = explore(trace_of(simulated("fifo", 2500), "run"))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        page = Page(server)
        while not page.ask("status")[1]["datasets"][0]["preview"]:
            time.sleep(0.005)
        status, before = page.ask("run")
        assert status == 200
        assert page.ask("violations")[0] == 503
        questions = [page.base.path + f"api/{q}&pixels=100" for q in ("overview?", "window?low=0")]
        first = [page.raw(question)[2] for question in questions]
        going_on.set()
        page.ready()
        after = page.ask("run")[1]
        for same in ("processes", "events", "rows", "timed", "end"):
            assert before[same] == after[same]
        assert "preview" not in after
        for one, question in zip(first, questions, strict=True):
            two = page.raw(question)[2]
            name = "events" if "overview" in question else "density"
            mine, theirs = unpacked(one)[name], unpacked(two)[name]
            assert len(mine) == len(theirs)
            assert sum(mine) == pytest.approx(sum(theirs), rel=0.01)
    finally:
        going_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_damaged_trace_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    write_trace(path, STORY)
    path.write_text(path.read_text() + '{"run": 3}\n')
    for page in serve(explore(path)):
        assert "row 8" in page.ready()["error"]
        status, body = page.ask("run")
        assert status == 503
        assert "row 8" in body["error"]
