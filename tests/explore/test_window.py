"""Windows: every message if there are few, and numbers if there are many."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from causewire.explore import window
from causewire.explore.latency import histogram
from causewire.explore.packing import pack
from causewire.explore.window import View, Window

from .stories import STORY, run_of, simulated


def _view(messages: int = 400) -> View:
    run = run_of(simulated("csps", messages))
    return View(run, run.axis())


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "MOST_EVENTS", 50)


def test_a_small_window_has_everything_in_it() -> None:
    view = _view(60)
    facts, arrays = view.answer(Window(0, view.axis.end))
    assert facts["exact"]
    assert facts["events"] == len(view.run) == len(arrays["event_x"])
    assert facts["drawn"] == facts["messages"] == 60 == len(arrays["copy"])


def test_a_window_has_what_is_under_way_in_it() -> None:
    view = _view(60)
    for share in (0.1, 0.35, 0.8):
        low, high = share * view.axis.end, (share + 0.05) * view.axis.end
        _, arrays = view.answer(Window(low, high))
        begins, ends = view.axis.begins, view.axis.ends
        expected = np.flatnonzero((begins <= high) & (ends >= low))
        assert sorted(arrays["copy"].tolist()) == expected.tolist()
        inside = (view.axis.x >= low) & (view.axis.x <= high)
        assert sorted(arrays["event_row"].tolist()) == np.flatnonzero(inside).tolist()


def test_long_messages_are_found_in_blocks_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    view = _view(60)
    axis = view.axis
    monkeypatch.setattr(type(axis), "BLOCK", 4)
    axis.__init__(axis.name, axis.x, view.run.copies)  # type: ignore[misc]
    low, high = 0.5 * axis.end, 0.52 * axis.end
    expected = np.flatnonzero((axis.begins <= high) & (axis.ends >= low))
    assert sorted(axis.copies_between(low, high).tolist()) == expected.tolist()


@pytest.mark.usefixtures("crowded")
def test_a_crowded_window_counts_every_event_once() -> None:
    view = _view()
    for low, high in ((0.0, view.axis.end), (0.2 * view.axis.end, 0.23 * view.axis.end)):
        facts, arrays = view.answer(Window(low, high, pixels=128))
        assert not facts["exact"]
        assert "event_x" not in arrays
        inside = (view.axis.x >= low) & (view.axis.x <= high)
        assert arrays["density"].sum() == pytest.approx(inside.sum(), rel=0.02)


@pytest.mark.usefixtures("crowded")
def test_held_time_in_a_crowded_window_adds_up() -> None:
    view = _view()
    _, arrays = view.answer(Window(0.0, view.axis.end, pixels=128))
    column = view.axis.end / 128
    assert arrays["held_sender"].sum() * column == pytest.approx(view.parts.sender.sum(), rel=0.01)
    whole = view.overview(64)
    assert whole["sender"].sum() * view.axis.end / 64 == pytest.approx(
        view.parts.sender.sum(), rel=0.01
    )


@pytest.mark.usefixtures("crowded")
def test_a_sample_stays_the_same_as_the_window_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "_SAMPLED", 40)
    monkeypatch.setattr(window, "_SLOWEST", 10)
    view = _view()
    one = set(view.answer(Window(0.0, view.axis.end * 0.9))[1]["copy"].tolist())
    two = set(view.answer(Window(0.0, view.axis.end))[1]["copy"].tolist())
    assert 40 <= len(one) <= 50
    assert len(one & two) > 30
    slowest = int(np.nanargmax(view.parts.total))
    assert slowest in two


def test_only_lanes_in_view_are_answered() -> None:
    view = _view(60)
    _, arrays = view.answer(Window(0, view.axis.end, lanes=(1, 3)))
    assert set(arrays["event_process"].tolist()) == {1, 3}
    ends = zip(arrays["copy_from"].tolist(), arrays["copy_to"].tolist(), strict=True)
    assert all({1, 3} & {a, b} for a, b in ends)


def test_latencies_filter_messages() -> None:
    view = _view(60)
    total = view.parts.total
    middle = float(np.median(total))
    _, arrays = view.answer(Window(0, view.axis.end, fastest=middle))
    assert sorted(arrays["copy"].tolist()) == np.flatnonzero(total >= middle).tolist()


def test_parts_of_latency_add_up() -> None:
    for protocol in ("csps", "fifo"):
        run = run_of(simulated(protocol))
        parts = View(run, run.axis()).parts
        assert np.allclose(parts.total, parts.sender + parts.network + parts.receiver)
        assert (parts.sender >= 0).all()
        assert parts.sender.sum() + parts.receiver.sum() > 0


def test_a_histogram_counts_all_deliveries() -> None:
    run = run_of(STORY)
    view = View(run, run.axis())
    result = histogram(view.parts, np.arange(len(run.copies)))
    assert result["count"] == 3 == sum(n for n, *_ in result["bins"])
    assert result["undelivered"] == 1
    assert result["most"] == 5000
    assert histogram(view.parts, np.array([], np.int64))["count"] == 0


def test_packed_arrays_can_be_unpacked() -> None:
    data = pack({"exact": True}, {"a": np.arange(3, dtype=np.uint8), "b": np.array([1.5, 2.5])})
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    assert header["facts"] == {"exact": True}
    assert (4 + length) % 8 == 0
    found = {
        name: np.frombuffer(data, f"<{kind}", count, 4 + length + offset).tolist()
        for name, kind, offset, count in header["arrays"]
    }
    assert found == {"a": [0, 1, 2], "b": [1.5, 2.5]}
