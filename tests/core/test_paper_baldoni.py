"""Baldoni, "A positive acknowledgement protocol for causal broadcast": its bounds and its runs.

The width of the causal window of P_i for P_h is cp + co: cp is how far the
counter of an arriving message may be ahead of P_i's (messages of P_h that
precede it causally and have not arrived), co how far behind (messages of P_h that
are concurrent with it and have been delivered).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from causewire.core.bss import Bss
from causewire.core.endpoint import RemoteProtocolError, Wait
from causewire.core.pak import Pak, PakCredit, PakMessage, PakNak

from .broadcasts import Group, OrderError, play

UNBOUNDED = 2**60
"""A modulus that is never reached: packets carry the true vector time."""


class Watched(Group):
    """Remembers the true vector time of every broadcast that was released."""

    def __init__(self, make: Any, n: int) -> None:
        super().__init__(partial(make, k=UNBOUNDED), n)
        self.released: dict[tuple[str, int], tuple[int, ...]] = {}

    def collect(self, me: str) -> None:
        already = {link: len(packets) for link, packets in self.channels.items()}
        super().collect(me)
        for link, packets in self.channels.items():
            for packet in packets[already[link] :]:
                if packet.kind == "msg":
                    number = packet[1][self[me].index[me]] + 1
                    assert self.released.setdefault((me, number), packet[1]) == packet[1]

    def differences(self) -> Iterator[Any]:
        """(i, j, h, V_i[h] - V_T[h]) for what P_j released and P_i has not delivered."""
        for me, endpoint in self.endpoints.items():
            v = endpoint._v
            for (origin, number), vt in self.released.items():
                if origin != me and v[endpoint.index[origin]] < number:
                    for h, name in enumerate(self.names):
                        yield me, origin, name, v[h] - vt[h]


SCHEMES = {
    "stop and wait": (Pak, 1),
    "credits 2": (partial(PakCredit, ct=2), 2),
    "credits 3": (partial(PakCredit, ct=3), 3),
    "credits 3, receiver's 1": (partial(PakCredit, ct=3, wr=1), 3),
    "pak-nak 2": (partial(PakNak, ct=2), 2),
    "pak-nak 3": (partial(PakNak, ct=3), 3),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_causal_window_is_bounded(scheme: str) -> None:
    """Theorems 4.2 and 4.4, and their like in sections 5.1 and 5.2, after every step.

    For every message of P_j on its way to P_i or held there, and every h:
    -ct <= V_i[h] - V_T[h] <= ct; of P_i's own counter at least 0, and of P_j's
    from 1 - ct to 0. Each bound is also attained, so k = 2ct + 1 is tight.
    """
    make, ct = SCHEMES[scheme]
    seen: Any = {"mine": set(), "sender's": set(), "another's": set()}
    for seed in range(25):
        rng = Random(seed)
        group = Watched(make, 3 + seed % 2)
        ticks = 0.1 if "receiver" in scheme else 0
        for _ in play(group, rng, 18, ticks=ticks):
            for me, origin, name, difference in group.differences():
                whose = {me: "mine", origin: "sender's"}.get(name, "another's")
                seen[whose].add(difference)
        group.settle()
        assert group.finished(), f"seed {seed}"
    assert seen == {
        "mine": set(range(ct + 1)),
        "sender's": set(range(1 - ct, 1)),
        "another's": set(range(-ct, ct + 1)),
    }


def test_without_acknowledgements_the_window_has_no_bound() -> None:
    """End of section 3: transmission times being unpredictable, cp and co have no limit."""
    for messages in (5, 50):
        group = Group(Bss, 4)
        group.send("p1")
        for _ in range(messages):
            group.send("p0")
            group.hop("p0", "p1")
            group.hop("p0", "p2")
        group.send("p1")
        (behind, _), (_, ahead) = group.channels["p1", "p2"], group.channels["p1", "p3"]
        assert (group["p2"]._v[0], behind[2][0]) == (messages, 0)
        assert (group["p3"]._v[0], ahead[2][0]) == (0, messages)
        group.flush()
        assert group.finished()


# -- Figure 2: the three values of a counter on arrival ---------------------------


def test_figure_2a_consecutive_messages_precede_m_and_have_not_arrived() -> None:
    group = Group(Bss, 3)
    for _ in range(2):
        group.send("p0")
        group.hop("p0", "p1")
    group.send("p1")
    group.hop("p1", "p2")
    (blocked,) = group["p2"].blocked()
    assert blocked.waits == (Wait("predecessor", "p0", 2),)
    group.flush()
    assert group.delivered["p2"] == [("p0", 1), ("p0", 2), ("p1", 1)]


def test_figure_2b_consecutive_messages_are_concurrent_with_m_and_delivered() -> None:
    group = Group(Bss, 3)
    group.send("p1")
    for _ in range(2):
        group.send("p0")
        group.hop("p0", "p2")
    group.hop("p1", "p2")
    assert group.delivered["p2"] == [("p0", 1), ("p0", 2), ("p1", 1)]


def test_figure_2c_the_last_delivered_is_an_immediate_predecessor_of_m() -> None:
    group = Group(Bss, 3)
    group.send("p0")
    group.hop("p0", "p1")
    group.hop("p0", "p2")
    group.send("p1")
    group.hop("p1", "p2")
    assert group.delivered["p2"] == [("p0", 1), ("p1", 1)]


# -- Section 4: stop and wait -----------------------------------------------------


def test_figure_4_nothing_can_be_between_m1_and_what_may_overtake_it() -> None:
    """Lemma 4.1: P_i sends nothing after m1 until m1 is delivered everywhere.

    So whatever could overtake m1 at P_h depends on m1 itself, and on no later
    message m_x of P_i: one count ahead is all that has to be told apart.
    """
    group = Watched(Pak, 3)
    group.send("p0")
    group.send("p0")
    group.hop("p0", "p1")
    group.hop("p1", "p0")
    assert ("p0", 2) not in group.released, "m_x waits for P_h"
    assert {b.waits for b in group["p0"].blocked()} == {(Wait("ack", "p2", 1),)}
    group.send("p1")
    assert group.released["p1", 1] == (1, 0, 0)
    group.hop("p1", "p2")
    assert group.delivered["p2"] == []
    group.hop("p0", "p2")
    assert group.delivered["p2"] == [("p0", 1), ("p1", 1)]
    group.hop("p2", "p0")
    assert ("p0", 2) in group.released
    group.flush()
    assert group.finished()


def test_figure_5_of_each_process_one_message_is_concurrent_with_m() -> None:
    """Lemma 4.3: the ack that lets m_x' go comes after m, the channel being FIFO."""
    group = Watched(Pak, 2)
    group.send("p0")
    group.send("p1")
    group.send("p1")
    group.hop("p1", "p0")
    assert [packet.kind for packet in group.channels["p0", "p1"]] == ["msg", "ack"]
    assert group.released["p1", 1] == (0, 0), "m_x does not know m"
    group.hop("p0", "p1")
    assert ("p1", 2) not in group.released
    group.hop("p0", "p1")
    assert group.released["p1", 2] == (1, 1), "m_x' does"


def test_figure_6_the_sliding_window_with_k_4() -> None:
    """Of four residues two are delivered, one is delayed, one is outside."""
    for behind in range(4):
        i = Pak("i", ["h", "i", "j"], k=4)
        for count in range(6):
            i.receive("h", PakMessage((count % 4, 0, 0), "of h"))
        i.take_deliveries()
        m = PakMessage(((6 - behind) % 4, 0, 0), "m")
        if behind == 2:
            with pytest.raises(RemoteProtocolError, match="window"):
                i.receive("j", m)
        else:
            i.receive("j", m)
            assert [d.payload for d in i.take_deliveries()] == (["m"] if behind <= 1 else [])
            waits = [b.waits for b in i.blocked()]
            assert waits == ([(Wait("predecessor", "h", 7),)] if behind == 3 else [])


# -- Section 5: credits, and PAK-NAK ----------------------------------------------


@pytest.mark.parametrize("kind", [PakCredit, PakNak])
@pytest.mark.parametrize("ct", [1, 2, 3, 5])
def test_figure_8a_and_9_ct_messages_may_precede_m_and_no_more(
    kind: type[PakCredit], ct: int
) -> None:
    """P_k sends as much as it can, P_j gets it all and sends m, P_i has nothing yet."""
    group = Watched(partial(kind, ct=ct), 3)
    for _ in range(2 * ct):
        group.send("p0")
    while group.channels["p0", "p1"]:
        group.hop("p0", "p1")
        while group.channels["p1", "p0"]:
            group.hop("p1", "p0")
    group.send("p1")
    assert group.released["p1", 1] == (ct, 0, 0)
    group.hop("p1", "p2")
    (blocked,) = group["p2"].blocked()
    assert blocked.waits == (Wait("predecessor", "p0", ct),)
    group.flush()
    assert group.delivered["p2"].index(("p1", 1)) >= ct
    assert group.finished()


@pytest.mark.parametrize("kind", [PakCredit, PakNak])
@pytest.mark.parametrize("ct", [1, 2, 3, 5])
def test_figure_8b_ct_messages_may_be_concurrent_with_m_and_no_more(
    kind: type[PakCredit], ct: int
) -> None:
    """P_j sends m, then gets all that P_k can send; so does P_i, before m."""
    group = Watched(partial(kind, ct=ct), 3)
    group.send("p1")
    for _ in range(2 * ct):
        group.send("p0")
    while group.channels["p0", "p1"] or group.channels["p0", "p2"]:
        for name in ("p1", "p2"):
            while group.channels["p0", name]:
                group.hop("p0", name)
        while group.channels["p2", "p0"]:
            group.hop("p2", "p0")
    v = group["p2"]._v
    assert v[0] - group.released["p1", 1][0] == ct
    assert group.channels["p1", "p0"][0].kind == "msg", "m is before the acks of P_j"
    group.hop("p1", "p2")
    assert group.delivered["p2"] == [*(("p0", x + 1) for x in range(ct)), ("p1", 1)]
    group.flush()
    assert group.released["p0", ct + 1][1] == 1, "what follows depends on m"
    assert group.finished()


class SmallK(PakCredit):
    """Takes a k that is too small."""

    _least_k = 1


@pytest.mark.parametrize("ct", [1, 2, 3, 5])
def test_with_k_2ct_the_two_figures_look_the_same(ct: int) -> None:
    """Fig. 8a with k = 2ct: ct ahead is taken for ct behind, and m overtakes (ERRATA 8.1)."""
    for k in (2 * ct, 2 * ct + 1):
        group = Group(partial(SmallK, ct=ct, k=k), 3)
        for _ in range(ct):
            group.send("p0")
            group.hop("p0", "p1")
        group.send("p1")
        if k == 2 * ct:
            with pytest.raises(OrderError, match="before"):
                group.hop("p1", "p2")
        else:
            group.hop("p1", "p2")
            group.flush()
            assert group.finished()
