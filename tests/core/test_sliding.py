"""The sliding windows against plain models, and their memory against the window."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causewire.core.sliding import IndexedSlidingMap, SlidingArray, SlidingMap


@given(st.lists(st.booleans(), max_size=300), st.integers(0, 5))
def test_array_is_a_window_onto_an_endless_list(adds: list[bool], first: int) -> None:
    array: SlidingArray[int] = SlidingArray(first)
    everything: list[int | None] = [None] * first
    start = first
    for step, add in enumerate(adds):
        if add:
            assert array.add(step) == len(everything)
            everything.append(step)
        elif start < len(everything):
            assert array.peek() == everything[start]
            assert array.remove() == everything[start]
            start += 1
        assert (array.first, array.next) == (start, len(everything))
        assert array.size == len(array) == len(everything) - start
        assert list(array) == everything[start:]
        assert [array[k] for k in range(array.first, array.next)] == everything[start:]


@pytest.mark.parametrize("dead", [0, 3, 40, 100])
def test_array_refuses_what_is_outside_the_window(dead: int) -> None:
    array: SlidingArray[int] = SlidingArray(first=1)
    for k in range(dead + 2):
        array.add(k)
    for _ in range(dead):
        array.remove()
    for k in (array.first - 1, array.next, -1):
        with pytest.raises(IndexError):
            array[k]
    array.remove()
    array.remove()
    with pytest.raises(IndexError):
        array.peek()
    with pytest.raises(IndexError):
        array.remove()
    with pytest.raises(IndexError):
        array[array.next] = 0


def test_array_elements_can_be_replaced_and_copies_are_independent() -> None:
    array: SlidingArray[str] = SlidingArray()
    for letter in "abc":
        array.add(letter)
    array.remove()
    array[1] = "B"
    twin = array.copy()
    twin.add("d")
    twin[1] = "x"
    assert list(array) == ["B", "c"]
    assert list(twin) == ["x", "c", "d"]
    assert (twin.first, twin.next, array.next) == (1, 4, 3)


@pytest.mark.parametrize("kind", [SlidingMap, IndexedSlidingMap])
@given(seed=st.integers(0, 2**32))
def test_map_is_a_dict_with_the_oldest_index_at_hand(kind: type, seed: int) -> None:
    choose = random.Random(seed)
    sliding = kind()
    model: dict[int, int] = {}
    count = 0
    for _ in range(120):
        key = choose.randrange(40)
        if key not in model and choose.random() < 0.6:
            assert sliding.add(key) == count
            model[key] = count
            count += 1
        else:
            assert sliding.remove(key) == model.pop(key, None)
        assert sliding.next == count
        assert sliding.first == min(model.values(), default=count)
        assert dict(sliding.items()) == model
        assert list(sliding) == sorted(model, key=model.__getitem__)
        assert (key in sliding) == (key in model)
        assert sliding.index(key) == model.get(key)
        assert len(sliding) == len(model)
    twin = sliding.copy()
    twin.add("other")
    assert "other" not in sliding
    assert sliding.next == count
    if isinstance(sliding, IndexedSlidingMap):
        by_index = {k: key for key, k in model.items()}
        window = range(sliding.first, sliding.next)
        assert [sliding[k] for k in window] == [by_index.get(k) for k in window]
        assert not model or sliding.peek() == by_index[sliding.first]


def test_map_refuses_a_key_twice_and_indexes_outside() -> None:
    sliding: IndexedSlidingMap[str] = IndexedSlidingMap()
    sliding.add("a")
    with pytest.raises(KeyError, match="'a' is here already"):
        sliding.add("a")
    sliding.add("b")
    sliding.remove("a")
    with pytest.raises(IndexError):
        sliding[0]
    with pytest.raises(IndexError):
        sliding[2]
    sliding.remove("b")
    with pytest.raises(KeyError):
        sliding.peek()


def _bytes(sliding: SlidingArray[int] | SlidingMap[int]) -> int:
    """Size of the containers, elements not included."""
    if isinstance(sliding, SlidingArray):
        return sys.getsizeof(sliding.at)
    return sys.getsizeof(sliding._index) + sys.getsizeof(sliding._keys)


def test_memory_follows_the_window_and_not_the_past() -> None:
    array: SlidingArray[int] = SlidingArray()
    sliding: SlidingMap[int] = SlidingMap()
    for k in range(100):
        array.add(k)
        sliding.add(k)
    small = _bytes(array), _bytes(sliding)
    for k in range(100, 100_000):
        array.add(k)
        sliding.add(k)
        array.remove()
        sliding.remove(k - 100)
    assert _bytes(array) < 4 * small[0]
    assert _bytes(sliding) < 4 * small[1]
    for k in range(100_000, 120_000):
        array.add(k)
        sliding.add(k)
    large = _bytes(array), _bytes(sliding)
    for k in range(99_900, 120_000):
        array.remove()
        sliding.remove(k)
    assert len(array) == len(sliding) == 0
    assert _bytes(array) < large[0] / 20
    assert _bytes(sliding) < large[1] / 20


def test_steps_per_operation_do_not_grow_with_the_window() -> None:
    """The oldest key goes last, and `first` skips all the others at once."""

    class Counting(dict):  # type: ignore[type-arg]
        looks = 0

        def __contains__(self, k):  # type: ignore[no-untyped-def]
            Counting.looks += 1
            return super().__contains__(k)

    costs = []
    for n in (1000, 16000):
        sliding: SlidingMap[int] = SlidingMap()
        sliding._keys = Counting()
        Counting.looks = 0
        for k in range(n):
            sliding.add(k)
        for k in range(n - 2, -1, -1):
            sliding.remove(k)
        assert sliding.first == n - 1
        costs.append(Counting.looks / n)
    assert 0.9 < costs[1] <= costs[0] * 1.1 < 2
