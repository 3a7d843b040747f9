"""How `adaptive` is carried: lists as bytes, the stream of control packets, incarnations."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from causewire import protocols
from causewire.core.adaptive import Adaptive, Dest, Entry
from causewire.core.endpoint import RemoteProtocolError
from causewire.core.run import MessageRun
from causewire.testing.wire.runs import play
from causewire.transport.budget import Budget
from causewire.transport.carrier import Native
from causewire.transport.frames import put_run, read
from causewire.transport.identities import Identities
from causewire.transport.identity import Identity
from causewire.transport.listing import Listing
from causewire.transport.lists import LONGEST, MOST, ListReader, ListWriter
from causewire.transport.stream import ControlStream
from causewire.transport.varint import MalformedError

PEOPLE = {name: (name, number) for number, name in enumerate("abcdefgh", 7)}


def global_names(dest: Dest) -> Any:
    return PEOPLE[dest] if isinstance(dest, str) else tuple(PEOPLE[name] for name in dest)


def some_list(chance: random.Random) -> tuple[tuple[str, ...], tuple[Entry, ...]]:
    names = sorted(PEOPLE)

    def group() -> tuple[str, ...]:
        return tuple(sorted(chance.sample(names, chance.randint(3, 5))))

    entries = []
    for _ in range(chance.randint(0, 6)):
        dest: Dest = group() if chance.random() < 0.3 else chance.choice(names)
        members = dest if isinstance(dest, tuple) else [name for name in names if name != dest]
        entries.append(
            (chance.choice(members), dest, chance.randint(1, 1 << chance.choice([5, 40])))
        )
    return group() if chance.random() < 0.2 else (), tuple(entries)


def test_lists_are_read_as_they_were_written() -> None:
    chance = random.Random(1)
    writer, reader = ListWriter(PEOPLE.__getitem__), ListReader()
    for _ in range(400):
        group, entries = some_list(chance)
        data = writer.write(group, entries)
        read_group, read_entries, end = reader.read(b"ahead" + data + b"behind", 5)
        assert end == 5 + len(data)
        assert read_group == global_names(group)
        assert read_entries == [(PEOPLE[o], global_names(d), mid) for o, d, mid in entries]


def test_tables_begin_anew_before_they_are_too_long() -> None:
    writer = ListWriter(lambda name: (name, 1))
    reader = ListReader()
    longest = 0
    for k in range(3 * MOST):
        entries = ((f"p{k}", "q", k + 1),)
        _, back, _ = reader.read(writer.write((), entries), 0)
        assert back == [((f"p{k}", 1), ("q", 1), k + 1)]
        longest = max(longest, len(reader._pairs))
    assert MOST <= longest <= MOST + 1


def test_an_entry_takes_two_bytes_once_its_pair_is_known() -> None:
    writer = ListWriter(PEOPLE.__getitem__)
    first = writer.write((), (("a", "b", 1000), ("a", ("a", "b", "c"), 1001)))
    again = writer.write((), (("a", "b", 1020), ("a", ("a", "b", "c"), 1021)))
    assert (len(first) > 40, len(again)) == (True, 1 + 2 * 2)


def test_a_list_of_the_longest_names_is_far_from_too_long() -> None:
    entries = tuple([(f"{k}".ljust(255, "o"), f"{k}".ljust(255, "d"), 1 << 61) for k in range(128)])
    assert len(ListWriter(lambda name: (name, 1)).write((), entries)) < 69 << 10 < LONGEST


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x04",  # an entry, and nothing follows
        b"\x04\x01\x02",  # a pair that is not defined
        b"\x04\x00\x05\x06\x02",  # slots that are not defined
        b"\x02\x00\x01a" + bytes(8),  # a process as the group of a message
        b"\x04\x00\x00\x01a" + bytes(8) + b"\x00\x01b" + bytes(8) + b"\x02",  # an origin not met
        b"\x04\x00\x00\x01a" + bytes(7) + b"\x01\x02\x02",  # from a to a
        b"\x04\x00\x00\x01a" + bytes(7) + b"\x01\x00\x01b" + bytes(8) + b"\x03",  # number -1
        b"\x02\x01\x03\x00\x01a" + bytes(8) + b"\x02\x02",  # a group with somebody twice
        b"\x02\x01\x3f",  # a group that is longer than the data
    ],
)
def test_lists_that_nobody_writes(data: bytes) -> None:
    with pytest.raises(MalformedError):
        ListReader().read(data, 0)


# -- bytes on the wire -------------------------------------------------------------


def carrier(name: str = "me", incarnation: int = 5, **options: Any) -> Listing:
    about = protocols.describe("adaptive").with_options(**options)
    return Listing(about, Identity(name, incarnation, "adaptive", 1), 1000)


def meet(listing: Listing, name: str, incarnation: int) -> str:
    return listing.establish(listing.meet(name, 0), name, incarnation)


def frames(runs: list[tuple[str, MessageRun]]) -> bytes:
    return b"".join(put_run(run, list(map(len, run.payloads))) for _, run in runs)


@pytest.mark.parametrize("count", [1, 3, 100])
def test_messages_without_dependencies_take_not_a_byte_more_than_under_csps(count: int) -> None:
    listing = carrier()
    name = meet(listing, "you", 9)
    csps = Native(protocols.describe("csps"), "me")
    for send in (listing.sender_to(name), csps.sender_to("you")):
        for _ in range(count):
            send(b"payload")
    assert frames(listing.take_runs()) == frames(
        [(to, run) for to, run in csps.take_runs()][:1]
        if count == 1
        else [("you", MessageRun(range(1, count + 1), 0, [b"payload"] * count))]
    )


def test_a_message_to_each_of_two_has_an_entry_of_few_bytes() -> None:
    listing = carrier()
    names = [meet(listing, name, 9) for name in ("one", "two")]
    for turn in range(3):
        for name in names:
            listing.send(name, b"payload")
        runs = listing.take_runs()
        sizes = [len(run.payloads[0]) - len(b"payload") for _, run in runs if run.per]
        assert len(sizes) == 2
        # The length of the list, the number of entries, a pair, a difference.
        assert turn == 0 or sizes == [4, 4]


def test_a_list_travels_and_its_bytes_are_not_counted_as_payload() -> None:
    ann, bob = carrier("ann", 3), carrier("bob", 4)
    to_bob, to_cat = meet(ann, "bob", 4), meet(ann, "cat", 8)
    from_ann = meet(bob, "ann", 3)
    ann.send(to_cat, b"first")
    ann.send(to_bob, b"second")
    ((_, run),) = [(to, run) for to, run in ann.take_runs() if to == to_bob]
    assert ann.list_bytes(run.payloads[0], True) == len(run.payloads[0]) - len(b"second")
    (arrived,) = read(put_run(run, [len(run.payloads[0])])).runs
    bob.receive(from_ann, arrived)
    assert bob.take_deliveries() == [(from_ann, 2, b"second")]
    assert list(bob.endpoint._past) == [("ann", "cat", 1)]
    assert ann.acked(to_bob, 2) == len(run.payloads[0]) - len(b"second")
    with pytest.raises(RemoteProtocolError):
        bob.receive(from_ann, MessageRun([3], 2, [b"\x3f"], True))


def test_news_of_all_messages_to_processes_not_met() -> None:
    ann, bob = carrier("ann", 3), carrier("bob", 4)
    to_bob, from_ann = meet(ann, "bob", 4), meet(bob, "ann", 3)
    ann.meet("cat", 0)
    ann.send("cat\0\0", b"never arrives")
    ann.send(to_bob, b"x")
    ((_, run),) = ann.take_runs()
    bob.receive(from_ann, read(put_run(run, [len(run.payloads[0])])).runs[0])
    assert list(bob.endpoint._past) == [("ann", "cat\0", 1)]
    ann.forget("cat\0\0")
    for name, record in ann.take_control():
        assert name == to_bob
        bob.control(from_ann, record)
    assert not list(bob.endpoint._past)
    assert bob.endpoint._unmet == {"ann": 1}


# -- the stream ---------------------------------------------------------------------


def test_nothing_is_kept_of_names_that_others_dialled() -> None:
    """ann dials one name after the other, and gives each up; bob hears of every one."""
    ann, bob = carrier("ann", 3), carrier("bob", 4)
    to_bob, from_ann = meet(ann, "bob", 4), meet(bob, "ann", 3)

    def turn() -> None:
        for name, run in ann.take_runs():
            if name == to_bob:
                bob.receive(from_ann, read(put_run(run, list(map(len, run.payloads)))).runs[0])
        for _ in range(4):
            for one, other, source, target in (
                (ann, bob, from_ann, to_bob),
                (bob, ann, to_bob, from_ann),
            ):
                for name, record in one.take_control():
                    if name == target:
                        other.control(source, record)
            for mid in bob.endpoint.take_acks().values():
                ann.acked(to_bob, mid)
        bob.take_deliveries()

    kept = []
    for k in range(300):
        alias = ann.meet(f"worker {k}", 0)
        ann.send(alias, b"it never arrives")
        ann.send(to_bob, b"it depends on that")
        turn()
        ann.forget(alias)
        turn()
        kept.append([len(repr(one._identities.saved())) for one in (ann, bob)])
    assert kept[0] == kept[-1]


def test_the_stream_delivers_every_record_once_and_in_order() -> None:
    for seed in range(40):
        chance = random.Random(seed)
        ours, theirs = ControlStream(), ControlStream()
        records = [chance.randbytes(chance.choice([0, 1, 5, 70, 700])) for _ in range(30)]
        waiting, got = list(records), []
        flying: list[list[tuple[int, bytes]]] = []
        while waiting or flying or ours.pending:
            if waiting and chance.random() < 0.5:
                ours.add(waiting.pop(0))
            budget, chunks = Budget(chance.choice([10, 20, 100, 400])), []  # type: ignore[var-annotated]
            if ours.fill(budget, chunks):
                assert read(b"".join(budget.frames)).control == chunks
                flying.append(chunks)
            if flying and chance.random() < 0.7:
                chunks = flying.pop(chance.randrange(len(flying)))
                if chance.random() < 0.3:
                    ours.lost(chunks)
                else:
                    got += theirs.receive(chunks)
                    if chance.random() < 0.2:
                        got += theirs.receive(chunks)
        assert got == records
        assert not theirs._early_bytes


# -- incarnations -------------------------------------------------------------------


def test_strings_for_incarnations() -> None:
    identities = Identities(Identity("me", 5, "adaptive", 1))
    assert identities.string(("me", 5)) == identities.string(("me", 0)) == "me"
    assert identities.gone(("me", 4))
    assert identities.string(("you", 7)) == "you"
    later = identities.string(("you", 8))
    assert later != "you"
    assert identities.process(later) == ("you", 8)
    assert identities.process(identities.alias("you")) == ("you", 0)
    assert identities.process(identities.string(("you", 0))) == ("you", 0)
    assert identities.below("you", 8) == ["you"]
    identities.floors["you"] = 8
    assert [identities.gone(("you", k)) for k in (0, 7, 8)] == [False, True, False]
    identities.drop("you")
    assert identities.string(("you", 9)) not in ("you", later), "a string keeps its meaning"


def test_what_names_the_dead_is_dropped_on_arrival() -> None:
    ann, bob = carrier("ann", 3), carrier("bob", 4)
    to_bob, to_cat = meet(ann, "bob", 4), meet(ann, "cat", 8)
    from_ann = meet(bob, "ann", 3)
    bob.bury("cat", 9)
    ann.send(to_cat, b"")
    ann.send(to_bob, b"")
    for to, run in ann.take_runs():
        if to == to_bob:
            bob.receive(from_ann, run)
    assert not list(bob.endpoint._past)


def test_names_of_the_dead_are_dropped_when_nothing_mentions_them() -> None:
    listing = carrier()
    for incarnation in range(1, 2000):
        name = meet(listing, "you", incarnation)
        listing.send(name, b"")
        listing.take_runs()
        listing.forget(name)
        listing.bury("you", incarnation + 1)
    assert len(listing.endpoint.forgotten) < 600
    assert len(listing._identities._processes) < 600


Patch = tuple[Any, str, Callable[..., Any]]

MISTAKES: dict[str, tuple[Patch, tuple[int, ...], bool]] = {
    "entries of the dead are kept": ((Identities, "gone", lambda *_: False), (54, 62, 281), True),
    "nobody is buried": ((Listing, "bury", lambda *_: None), (54, 62, 281), True),
    "what is void is waited for": ((Adaptive, "void", lambda *_: None), (28,), False),
    "no list arrives": ((Listing, "_resolve", lambda *_: None), (2,), False),
}
"""Mistakes in what is carried; seeds of runs, of which one finds each; whether processes fail."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (where, name, instead), seeds, failures = MISTAKES[mistake]
    assert all(play(seed, "adaptive", None, failures).fine for seed in seeds)
    monkeypatch.setattr(where, name, instead)
    assert not all(play(seed, "adaptive", None, failures).fine for seed in seeds)


@pytest.mark.parametrize("options", [{}, {"cap": 0}, {"cap": 1, "groups": 1}])
def test_runs_in_which_processes_fail(options: dict[str, Any]) -> None:
    about = protocols.describe("adaptive").with_options(**options)
    for seed in range(500, 512):
        verdict = play(seed, about, None, failures=True)
        assert verdict.fine, (seed, verdict.complaints)
