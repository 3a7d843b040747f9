"""A run of messages received at once is the same as each received in turn."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from causewire import protocols
from causewire.core.endpoint import RemoteProtocolError
from causewire.core.fifo import FifoEndpoint
from causewire.core.hybrid import Permit
from causewire.core.run import MessageRun


def delivered(endpoint: FifoEndpoint[Any]) -> int:
    return endpoint._peers["sender"].delivered if endpoint._peers else 0


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
def test_a_run_is_the_same_as_its_messages_in_turn(protocol: str, inside: bool) -> None:
    fast = 0
    for seed in range(150):
        choose = random.Random(seed)
        sender = protocols.create(protocol, "sender")
        for _ in range(12):
            sender.send(choose.choice(["here", "there", ["here", "there"]]), b"x")
        messages = [packet for to, packet in sender.take_packets() if to == "here"]
        at_once = protocols.create(protocol, "here")
        assert isinstance(at_once, FifoEndpoint)
        if protocol != "fifo" and choose.random() < 0.5:
            at_once.receive("sender", Permit(choose.randint(1, 9)))
        in_turn = copy.copy(at_once)
        if inside:
            at_once.on_delivery = at_once._deliveries.append
        starts = choose.sample(range(len(messages)), k=min(3, len(messages)))
        for start in [*starts, 0, 0]:
            run = messages[start : start + choose.randint(1, 6)]
            per = run[0][4] if protocol != "fifo" else False
            run = [each for each in run if protocol == "fifo" or each[4] == per]
            chained = [run[0]]
            for each in run[1:]:
                if each[2] != chained[-1][1]:
                    break
                chained.append(each)
            fast += len(chained) > 1 and chained[0][2] == delivered(at_once)
            mids, payloads = [m[1] for m in chained], [m[3] for m in chained]
            at_once.receive_run("sender", MessageRun(mids, chained[0][2], payloads, per))
            for message in chained:
                in_turn.receive("sender", message)
            assert at_once == in_turn, f"seed {seed}"
        assert at_once.take_packets() == in_turn.take_packets()
        assert at_once.blocked() == in_turn.blocked()
    assert fast > 20, "runs in order must be among them"


@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
@pytest.mark.parametrize(
    ("pid", "mids"), [(0, []), (0, [2, 1]), (0, [1, 1]), (1, [1]), (3, [2, 4])]
)
def test_no_run_that_no_correct_peer_could_send(protocol: str, pid: int, mids: list[int]) -> None:
    endpoint = protocols.create(protocol, "here")
    assert isinstance(endpoint, FifoEndpoint)
    before = copy.copy(endpoint)
    with pytest.raises(RemoteProtocolError):
        endpoint.receive_run("sender", MessageRun(mids, pid, [b""] * len(mids)))
    assert endpoint == before


MALFORMED: dict[str, MessageRun] = {
    "too few payloads": MessageRun([3, 4], 2, ["c"]),
    "too many payloads": MessageRun([3, 4], 2, ["c", "d", "e"]),
    "no messages": MessageRun([], 2, []),
    "payloads alone": MessageRun([], 2, ["c"]),
    "not ascending": MessageRun([3, 3], 2, ["c", "d"]),
    "not after their predecessor": MessageRun([2, 3], 2, ["c", "d"]),
    "no numbers": MessageRun([3, "4"], 2, ["c", "d"]),  # type: ignore[list-item]
    "fractions": MessageRun([3.0, 4.0], 2, ["c", "d"]),  # type: ignore[list-item]
    "a negative predecessor": MessageRun([3, 4], -1, ["c", "d"]),
    "a predecessor that is no number": MessageRun([3, 4], None, ["c", "d"]),  # type: ignore[arg-type]
    "a flag that is not a bool": MessageRun([3, 4], 2, ["c", "d"], 1),  # type: ignore[arg-type]
    "the last is not what arrived before": MessageRun([3, 4, 5, 6], 2, ["c", "d", "e", "x"]),
    "another message arrived in place of the last": MessageRun([3, 4, 5, 7], 2, list("cdeg")),
    "another predecessor than was delivered": MessageRun([3, 4], 1, ["c", "d"]),
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_run_changes_nothing(protocol: str, what: str, inside: bool) -> None:
    endpoint = protocols.create(protocol, "here")
    assert isinstance(endpoint, FifoEndpoint)
    endpoint.receive_run("sender", MessageRun([1, 2], 0, ["a", "b"]))
    if "arrived" in what:
        endpoint.receive_run("sender", MessageRun([6], 5, ["f"]))
    before = copy.copy(endpoint)
    if inside:
        endpoint.on_delivery = lambda delivery: pytest.fail("delivered")
    with pytest.raises(RemoteProtocolError):
        endpoint.receive_run("sender", MALFORMED[what])
    assert endpoint == before
    assert endpoint.take_acks() == before.take_acks() == {"sender": 2}
    endpoint.on_delivery = None
    endpoint.receive_run("sender", MessageRun([3, 4, 5], 2, ["c", "d", "e"]))
    assert [d.payload for d in endpoint.take_deliveries()][:5] == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("protocol", ["fifo", "csps", "sps"])
def test_no_run_from_nobody(protocol: str) -> None:
    endpoint = protocols.create(protocol, "here")
    assert isinstance(endpoint, FifoEndpoint)
    before = copy.copy(endpoint)
    for source in ("", "here", None):
        with pytest.raises(RemoteProtocolError):
            endpoint.receive_run(source, MessageRun([1], 0, ["a"]))  # type: ignore[arg-type]
    assert endpoint == before
