"""A process that crashes and comes back with its memory is the same process to its peer."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from causewire.core import LocalProtocolError, RemoteProtocolError
from causewire.core.run import MessageRun
from causewire.protocols import describe
from causewire.transport import PeerForgotten, PeerRestarted, Transport
from causewire.transport.heads import Greeting
from causewire.transport.identity import Identity
from causewire.transport.inbox import Inbox
from causewire.transport.journal import Journal
from causewire.transport.listed_journal import ListedJournal
from causewire.transport.memory import JournalError, Memory
from causewire.transport.obituaries import LEFT
from causewire.transport.varint import put

from .pair import PLAIN_AND_SEALED, A, B, Pair, events

PROTOCOLS = pytest.mark.parametrize("protocol", ["fifo", "csps", "sps", "adaptive"])


class Kept(Pair):
    """A pair of which one, or both, write a journal."""

    def __init__(self, *keep: str, **settings: Any) -> None:
        self.snapshot: dict[str, bytes] = dict.fromkeys(keep, b"")
        self.batches: dict[str, list[bytes]] = {name: [] for name in keep}
        self.opened = dict.fromkeys(keep, 0)
        super().__init__(**settings)

    def start(self, name: str, incarnation: int, **more: Any) -> Transport[Any]:
        if name in self.snapshot:
            protocol = describe(self.settings.get("protocol", "csps"))
            memory = Memory(name, protocol, self.snapshot[name], self.batches[name])
            opened = self.opened[name]
            more |= {"memory": memory, "connection": opened if memory.incarnation else 0}
            more["entropy"] = Random(f"{name} {opened}").randbytes
            incarnation = memory.incarnation or incarnation
            self.opened[name] += 1
        return super().start(name, incarnation, **more)

    def out(self, transport: Transport[Any]) -> list[bytes]:
        datagrams = super().out(transport)
        journal = transport.journal
        if journal is not None:
            name = transport.me.name
            self.batches[name].append(journal.take())
            journal.inbox.stored(journal.inbox.unstored)
        return datagrams

    def compact(self, transport: Transport[Any]) -> None:
        """Replace the record by a snapshot."""
        assert transport.journal is not None
        self.out(transport)
        self.snapshot[transport.me.name] = transport.journal.snapshot()
        self.batches[transport.me.name] = []

    def crash(self, name: str) -> Transport[Any]:
        """One of them loses its memory, and comes back with what it has stored."""
        again = self.start(name, 7)
        setattr(self, name, again)
        other, address = ("bob", B) if name == "ann" else ("ann", A)
        again.add_peer(other, address, self.now)
        again.timer_fired(self.now)
        return again


def payloads(transport: Transport[Any]) -> list[bytes]:
    """What the application of a transport gets now."""
    journal = transport.journal
    queue = transport.messages if journal is None else journal.inbox.ready
    return [queue.popleft().payload for _ in range(len(queue))]


@PROTOCOLS
@PLAIN_AND_SEALED
@pytest.mark.parametrize("who", ["ann", "bob"])
@pytest.mark.parametrize("snapshot", [False, True])
def test_both_directions_go_on(protocol: str, key: bytes | None, who: str, snapshot: bool) -> None:
    pair = Kept(who, protocol=protocol, key=key)
    pair.meet()
    for k in range(3):
        pair.ann.send("bob", b"a%d" % k)
        pair.bob.send("ann", b"b%d" % k)
    pair.exchange()
    assert payloads(pair.ann) == [b"b0", b"b1", b"b2"]
    assert payloads(pair.bob) == [b"a0", b"a1", b"a2"]
    for k in range(3, 6):
        pair.ann.send("bob", b"a%d" % k)
        pair.bob.send("ann", b"b%d" % k)
    pair.out(pair.ann), pair.out(pair.bob)  # all of which are lost
    keeper = getattr(pair, who)
    keeper.journal.inbox.done()
    if snapshot:
        pair.compact(keeper)
    else:
        pair.out(keeper)
    incarnation = keeper.me.incarnation
    again = pair.crash(who)
    assert again.me.incarnation == incarnation
    pair.exchange()
    for k in range(6, 8):
        pair.ann.send("bob", b"a%d" % k)
        pair.bob.send("ann", b"b%d" % k)
    pair.exchange()
    for _ in range(20):
        pair.later(0.02)
        pair.exchange()
    assert payloads(pair.ann) == [b"b3", b"b4", b"b5", b"b6", b"b7"]
    assert payloads(pair.bob) == [b"a3", b"a4", b"a5", b"a6", b"a7"]
    assert pair.ann.settled
    assert pair.bob.settled
    ended = events(pair.ann) + events(pair.bob)
    assert not [e for e in ended if isinstance(e, PeerRestarted | PeerForgotten)]


@PLAIN_AND_SEALED
def test_both_crash(key: bytes | None) -> None:
    pair = Kept("ann", "bob", key=key)
    pair.meet()
    for crash in range(3):
        pair.ann.send("bob", b"a%d" % crash)
        pair.bob.send("ann", b"b%d" % crash)
        pair.out(pair.ann), pair.out(pair.bob)
        pair.crash("ann")
        pair.crash("bob")
        for _ in range(3):
            pair.exchange()
            pair.later(0.5)
    assert payloads(pair.ann) == [b"b0", b"b1", b"b2"]
    assert payloads(pair.bob) == [b"a0", b"a1", b"a2"]


def test_what_was_not_handled_comes_again_and_what_was_does_not() -> None:
    pair = Kept("bob")
    pair.meet()
    for k in range(4):
        pair.ann.send("bob", b"%d" % k)
    pair.exchange()
    inbox = pair.bob.messages
    assert isinstance(inbox, Inbox)
    assert [inbox.ready.popleft().payload for _ in range(3)] == [b"0", b"1", b"2"]
    pair.out(pair.bob)
    pair.crash("bob")
    assert payloads(pair.bob) == [b"2", b"3"]  # the third was in hand
    pair.bob.journal.inbox.done()  # type: ignore[union-attr]
    pair.out(pair.bob)
    pair.crash("bob")
    assert payloads(pair.bob) == []
    assert pair.bob.status().peers["ann"].incarnation == 1001


@PLAIN_AND_SEALED
def test_recorded_greetings_change_nothing(key: bytes | None) -> None:
    """Neither greetings of a former connection, nor those of the present one again."""
    pair = Kept("ann", key=key)
    pair.meet()
    recorded: list[bytes] = []
    give = pair.give

    def record(transport: Transport[Any], *datagrams: bytes) -> None:
        recorded.extend(data for data in datagrams if data[0] & 0xF == 1)
        give(transport, *datagrams)

    pair.give = record  # type: ignore[method-assign]
    for _ in range(3):
        pair.crash("ann")
        pair.exchange()
        pair.later(0.5)
        pair.exchange()
    session = pair.bob.status().peers["ann"]
    assert session.up
    pair.give = give  # type: ignore[method-assign]
    for k, data in enumerate(recorded):
        give(pair.bob, data)
        give(pair.ann, data)
        pair.ann.send("bob", b"%d" % k)
        pair.exchange()
    assert payloads(pair.bob) == [b"%d" % k for k in range(len(recorded))]
    for _ in range(20):
        pair.later(0.02)
        pair.exchange()
    assert pair.ann.settled


def test_a_peer_that_restarted_meanwhile_is_a_new_one() -> None:
    pair = Kept("ann")
    pair.meet()
    pair.ann.send("bob", b"lost")
    pair.out(pair.ann)
    pair.bob = pair.start("bob", 3001)
    pair.crash("ann")
    pair.exchange()
    assert [e for e in events(pair.ann) if isinstance(e, PeerRestarted)] == [
        PeerRestarted("bob", 1)
    ]
    pair.ann.send("bob", b"found")
    pair.exchange()
    assert payloads(pair.bob) == [b"found"]


def test_who_was_given_up_meanwhile_learns_it() -> None:
    pair = Kept("ann")
    pair.meet()
    pair.bob.forget("ann", pair.now)
    pair.out(pair.bob)
    pair.crash("ann")
    pair.exchange()
    assert pair.ann.me.superseded > pair.ann.me.incarnation


def test_what_cannot_be_remembered() -> None:
    with pytest.raises(LocalProtocolError, match="csps, sps, fifo or adaptive, not mf"):
        Memory("ann", describe("mf"))
    for batch in (b"\xff", b"\x04", b"\x04\x03bob\x07", b"\x0a\x01{", b"\x03\x03bob\x00"):
        with pytest.raises(JournalError, match="is invalid"):
            Memory("ann", describe("csps"), batches=[batch])
    with pytest.raises(JournalError, match="is invalid"):
        Memory("ann", describe("csps"), b"nonsense that is long enough")


def test_a_journal_is_a_carrier_that_costs_nothing_else() -> None:
    me = Identity("ann", 1, "csps", 1)
    journal = Memory("ann", describe("csps")).journal(me, None, False, 100)
    assert isinstance(journal, Journal)
    assert not journal.linked
    assert journal.permits


def test_a_greeting_states_the_connection() -> None:
    for connection in (0, 1, 1000):
        tokens = b"a token.", b"its echo"
        greeting = Greeting(
            7, True, "csps", 1, 10, 100, 1232, *tokens, b"exchange", connection=connection
        )
        assert Greeting.decode(greeting.encode()) == greeting


def test_a_peer_that_does_not_come_back_is_given_up() -> None:
    """Even if nothing is under way to it, since its permits may be missing."""
    pair = Kept("ann", give_up_after={"bob": 5.0})
    pair.meet()
    pair.out(pair.ann)
    pair.crash("ann")
    for _ in range(100):
        pair.later(0.1)
        pair.out(pair.ann)
    assert not pair.ann.status().peers["bob"].up
    assert [e for e in events(pair.ann) if isinstance(e, PeerForgotten)] == [
        PeerForgotten("bob", 0)
    ]


@pytest.mark.parametrize("snapshot", [False, True])
def test_obituaries_are_remembered(snapshot: bool) -> None:
    pair = Kept("ann")
    pair.meet()
    pair.bob.close()
    pair.exchange()
    word = pair.ann._peers.obituaries.word("bob")
    if snapshot:
        pair.compact(pair.ann)
    pair.crash("ann")
    assert pair.ann._peers.obituaries.word("bob") == word >= LEFT
    assert not pair.ann.status().peers["bob"].up


@pytest.mark.parametrize("snapshot", [False, True])
def test_what_a_wrong_peer_sends_does_not_spoil_the_store(snapshot: bool) -> None:
    """A list or a control packet may have changed tables before it turns out to be wrong."""
    pair = Kept("ann", protocol="adaptive")
    pair.meet()
    pair.bob.send("ann", b"right")
    pair.exchange()
    journal = pair.ann.journal
    assert isinstance(journal, ListedJournal)
    strangers = b"\0\x01z" + bytes(7) + b"\x01" + b"\0\x01y" + bytes(7) + b"\x01"
    wrong = b"\x02\x01\x04\0" + strangers + b"\x07"  # a number below 1
    with pytest.raises(RemoteProtocolError):
        journal.control("bob", wrong)
    listed = put(len(wrong) - 2) + wrong[2:]
    with pytest.raises(RemoteProtocolError):
        journal.receive("bob", MessageRun([7], 1, [listed], True))
    if snapshot:
        pair.compact(pair.ann)
    pair.out(pair.ann)
    memory = Memory("ann", describe("adaptive"), pair.snapshot["ann"], pair.batches["ann"])
    assert memory.endpoint == journal.endpoint
    assert memory.carried() == journal.carried()
    assert "z" in str(memory.carried())


def test_records_of_adaptive_that_make_no_sense() -> None:
    for batch in (b"\x11\x03bob\x05\x00", b"\x13\x03bob\x03bob" + bytes(8), b"\x16\x03bob"):
        with pytest.raises(JournalError, match="is invalid"):
            Memory("ann", describe("adaptive"), batches=[batch])
        with pytest.raises(JournalError, match="is invalid"):
            Memory("ann", describe("csps"), batches=[batch])
