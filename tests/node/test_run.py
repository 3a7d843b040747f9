"""`causewire.node.run`: what it does to the process, and what it leaves behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from causewire.node import run


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


async def threshold() -> int:
    return gc.get_threshold()[0]


async def fail() -> None:
    raise KeyError("on purpose")


def test_the_collector_looks_less_often_while_it_runs() -> None:
    gc.set_threshold(700, 10, 10)
    assert run(threshold()) > 10_000
    assert gc.get_threshold() == (700, 10, 10)
    with pytest.raises(KeyError, match="on purpose"):
        run(fail())
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, 10**6])
def test_a_choice_of_the_application_is_kept(chosen: int) -> None:
    gc.set_threshold(chosen, 10, 10)
    assert run(threshold()) == chosen
    assert gc.get_threshold()[0] == chosen


def test_a_thread_leaves_the_collector_to_the_main_one() -> None:
    gc.set_threshold(700, 10, 10)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(run(threshold())))
    thread.start()
    thread.join()
    assert seen == [700]
