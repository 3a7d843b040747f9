"""A run of messages received at once is the same as each received in turn."""

from __future__ import annotations

import copy
import random

import pytest

from causewire import protocols
from causewire.core.endpoint import RemoteProtocolError
from causewire.core.fifo import FifoEndpoint
from causewire.core.hybrid import Permit
from causewire.core.run import MessageRun


def delivered(endpoint: FifoEndpoint) -> int:
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
