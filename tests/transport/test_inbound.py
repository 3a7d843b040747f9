"""Parts of messages that are put together again."""

from __future__ import annotations

from itertools import permutations

import pytest

from causewire.transport.contents import Piece
from causewire.transport.inbound import OVERHEAD, Inbound
from causewire.transport.varint import MalformedError

PARTS = [b"abc", b"de", b"f"]


def piece(part: int, **changes: object) -> Piece:
    """One of the parts of message 1."""
    return Piece(1, 0, False, part, len(PARTS), PARTS[part])._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", list(permutations(range(len(PARTS)))))
def test_parts_in_any_order_make_the_message(order: tuple[int, ...]) -> None:
    inbound = Inbound(100)
    *early, last = order
    for part in early:
        assert inbound.add_piece(piece(part)) is None
        assert inbound.add_piece(piece(part)) is None  # again, which changes nothing
    size = sum(len(PARTS[part]) for part in early)
    assert (inbound.messages, inbound.bytes) == (1, size + OVERHEAD * (1 + len(early)))
    run = inbound.add_piece(piece(last))
    assert run is not None
    assert run.payloads[0] == b"abcdef"
    assert (inbound.messages, inbound.bytes, inbound.tail) == (1, 6 + OVERHEAD, 1)


def test_a_part_that_arrives_again_is_not_too_much() -> None:
    """A message may be as long as is allowed, and its parts may be sent again."""
    inbound = Inbound(sum(map(len, PARTS)))
    for part in (0, 1, 0, 1):
        assert inbound.add_piece(piece(part)) is None
    assert inbound.add_piece(piece(2)) is not None


@pytest.mark.parametrize("before", [[], [0], [0, 1]])
def test_a_message_that_is_too_long_is_refused(before: list[int]) -> None:
    inbound = Inbound(5)
    for part in before:
        inbound.add_piece(piece(part))
    held = inbound.messages, inbound.bytes
    with pytest.raises(MalformedError, match="longer than allowed"):
        inbound.add_piece(piece(2, data=bytes(6)))
    assert (inbound.messages, inbound.bytes) == held


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("length", [10, 11])
def test_a_list_in_front_does_not_let_a_payload_be_longer(
    order: tuple[int, ...], length: int
) -> None:
    """A list of four bytes, after its length; the payload may have ten, and lists a thousand."""
    data = b"\x04list" + bytes(length)
    parts = [data[:7], data[7:9], data[9:]]
    inbound = Inbound(10, 1000)

    def arrive() -> None:
        for part in order:
            inbound.add_piece(piece(part, per=True, data=parts[part]))

    if length > 10:
        with pytest.raises(MalformedError, match="message that is longer than allowed"):
            arrive()
        assert inbound.tail == 0
    else:
        arrive()
        assert inbound.take(1).payloads[0] == data


@pytest.mark.parametrize("before", [[], [1]])
def test_a_list_that_is_too_long_is_refused_with_its_first_part(before: list[int]) -> None:
    inbound = Inbound(100, 20)
    for part in before:
        inbound.add_piece(piece(part, per=True))
    held = inbound.messages, inbound.bytes
    with pytest.raises(MalformedError, match="a list that is longer"):
        inbound.add_piece(piece(0, per=True, data=b"\x15abc"))
    assert (inbound.messages, inbound.bytes) == held
    inbound.add_piece(piece(0, per=True, data=b"\x14abc"))


@pytest.mark.parametrize("changes", [{"per": True}, {"parts": 4}, {"withdrawn": True}])
def test_parts_that_contradict_each_other_are_refused(changes: dict[str, object]) -> None:
    inbound = Inbound(100)
    inbound.add_piece(piece(0))
    with pytest.raises(MalformedError, match="fit together"):
        inbound.add_piece(piece(1, **changes))
    inbound.drop_parts()
    assert (inbound.messages, inbound.bytes) == (0, 0)
