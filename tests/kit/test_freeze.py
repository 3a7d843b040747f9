"""What the removal of a dead member is for, step by step.

Why a member delivers nothing more of a dead one once it has reported how far it has come.

`bob` has one message of `dave` and reports so. The next one, which was under way, arrives after
that. The coordinator has decided by the report, so nobody else will ever deliver that message.
"""

from __future__ import annotations

from causewire.kit.entries import Entries, Frame, Member, Post, Posted, Report, Sponsor, Stranger
from causewire.kit.machine import Machine
from causewire.kit.removal import Round

ALICE, BOB, DAVE = (Member(name, 1, 1) for name in ("alice", "bob", "dave"))


class DoesNotFreeze(Machine):
    """Goes on to deliver what arrives of the dead."""

    def _bury(self, member: Member) -> None:
        super()._bury(member)
        del self._limit[member]


class RemovesAtOnce(Machine):
    """The coordinator asks nobody before it removes the dead."""

    def _invite(self, survey: Round) -> None:
        pass


class Table:
    """Three machines, and what is under way between them."""

    def __init__(self, make: type[Machine]) -> None:
        self.machines = {member: make(member) for member in (ALICE, BOB, DAVE)}
        self.under_way: dict[tuple[Member, Member], list[Frame]] = {}
        self.seen: dict[Member, list[bytes]] = {member: [] for member in self.machines}
        self.machines[ALICE].found("")
        for newcomer in (BOB, DAVE):
            self.machines[ALICE].ask(newcomer, "")
            self.settle()

    def collect(self) -> None:
        for member, machine in self.machines.items():
            out, machine.out = machine.out, []
            items, machine.items = machine.items, []
            for to, frame in out:
                for other in to:
                    self.under_way.setdefault((member, other), []).append(frame)
            for item in items:
                if isinstance(item, Sponsor):
                    welcome = item.welcome._replace(state=b"")
                    self.under_way.setdefault((member, welcome.member), []).append(welcome)
                elif isinstance(item, Posted):
                    self.seen[member].append(item.payload)

    def settle(self) -> None:
        """Let everything arrive."""
        self.collect()
        while links := [link for link, frames in self.under_way.items() if frames]:
            for source, to in links:
                self.machines[to].received(self.under_way[source, to].pop(0))
                self.collect()


def play(make: type[Machine]) -> Table:
    table = Table(make)
    dave = table.machines[DAVE]
    dave.post(b"one")
    table.settle()
    dave.post(b"two")
    dave.over = "evicted"  # it has begun again, and its last message is under way
    table.collect()
    late = table.under_way.pop((DAVE, BOB))
    table.under_way[DAVE, ALICE].clear()
    table.machines[ALICE].received(Stranger(DAVE))
    table.collect()
    (survey,) = table.under_way.pop((ALICE, BOB))
    table.machines[BOB].received(survey)
    table.collect()
    assert isinstance(table.under_way[BOB, ALICE][0], Report)
    assert isinstance(late[0], Entries)
    assert late[0].entries[0].op == Post(b"two")
    table.machines[BOB].received(late[0])
    table.settle()
    return table


def test_a_member_that_has_reported_delivers_nothing_more_of_the_dead() -> None:
    table = play(Machine)
    assert table.seen[ALICE] == table.seen[BOB] == [b"one"]
    for member in (ALICE, BOB):
        assert set(table.machines[member].view) == {ALICE, BOB}


def test_without_that_replicas_differ() -> None:
    table = play(DoesNotFreeze)
    assert table.seen[ALICE] == [b"one"]
    assert table.seen[BOB] == [b"one", b"two"]


def last_message_reaches_bob_only(make: type[Machine]) -> Table:
    table = Table(make)
    table.machines[DAVE].post(b"one")
    table.collect()
    table.under_way[DAVE, ALICE].clear()
    table.settle()
    assert table.seen[BOB] == [b"one"]
    table.machines[DAVE].over = "evicted"
    table.machines[ALICE].received(Stranger(DAVE))
    table.settle()
    for _ in range(3):
        for member in (ALICE, BOB):
            table.machines[member].tick()
            table.settle()
    return table


def test_what_one_survivor_has_all_get() -> None:
    table = last_message_reaches_bob_only(Machine)
    assert table.seen[ALICE] == table.seen[BOB] == [b"one"]
    assert table.machines[BOB].over is None


def test_without_asking_the_message_is_lost_and_who_has_it_must_join_again() -> None:
    table = last_message_reaches_bob_only(RemovesAtOnce)
    assert table.seen[ALICE] == []
    assert table.machines[BOB].over == "evicted"


def test_a_coordinator_does_not_wait_for_a_newcomer_that_is_gone_already() -> None:
    """bob lets carol in, and she dies at once. alice hears of her end, then that she exists."""
    carol = Member("carol", 1, 1)
    table = Table(Machine)
    alice, bob = table.machines[ALICE], table.machines[BOB]
    table.machines[carol] = Machine(carol)
    table.machines[DAVE].over = table.machines[carol].over = "evicted"
    bob.ask(carol, "")
    bob.post(b"hello")
    table.collect()
    late = table.under_way.pop((BOB, ALICE))
    alice.gone("carol", 1)
    alice.received(Stranger(DAVE))
    table.collect()
    (survey,) = table.under_way.pop((ALICE, BOB))
    bob.received(survey)
    table.collect()
    answers = table.under_way.pop((BOB, ALICE))
    assert any(isinstance(answer, Report) and carol in answer.known for answer in answers)
    for frame in answers + late:
        alice.received(frame)
    bob.gone("carol", 1)
    for _ in range(3):
        for machine in (alice, bob):
            machine.tick()
            table.settle()
    assert table.seen[ALICE] == table.seen[BOB] == [b"hello"]
    assert set(alice.view) == set(bob.view) == {ALICE, BOB}


def test_a_process_that_is_met_again_is_not_dead() -> None:
    """It was taken for dead in a former life of this process, which was cut off itself."""
    newcomer = Member("carol", 1, 1)
    table = Table(Machine)
    table.machines[newcomer] = carol = Machine(newcomer)
    table.seen[newcomer] = []
    carol.gone("alice", 1)
    carol.met("alice")
    table.machines[ALICE].ask(newcomer, "")
    table.settle()
    assert carol.members == table.machines[ALICE].members == (ALICE, BOB, newcomer, DAVE)
