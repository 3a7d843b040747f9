"""What members of a group tell each other: entries of the log, and frames.

All of them are values. `machine` decides with them, `wire` turns them into bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

__all__ = [
    "Absent",
    "Add",
    "Alert",
    "Ask",
    "Collect",
    "Cut",
    "Decided",
    "Entries",
    "Entry",
    "Evicted",
    "Frame",
    "Have",
    "Hello",
    "Item",
    "Joined",
    "Leave",
    "Leaving",
    "Left",
    "Member",
    "Missed",
    "Op",
    "Poll",
    "Position",
    "Post",
    "Posted",
    "Refused",
    "Remove",
    "Report",
    "SecondGroup",
    "Sponsor",
    "Standing",
    "Stranger",
    "View",
    "Welcome",
]


class Member(NamedTuple):
    """One membership of a process: it never comes back, even if the process does.

    Attributes:
        name: The name of the process.
        incarnation: The incarnation of its node.
        term: How many times that incarnation has joined this group.
    """

    name: str
    incarnation: int
    term: int

    def __str__(self) -> str:
        return self.name


Cut: TypeAlias = Mapping[Member, int]
"""For each author, how many of its entries were delivered."""


# -- entries ------------------------------------------------------------------


class Post(NamedTuple):
    """A message of the application, with its headers in front."""

    payload: bytes


class Add(NamedTuple):
    """A process becomes a member; its state begins at `cut`, and its sponsor is the author."""

    member: Member
    address: str
    cut: Cut


class Leave(NamedTuple):
    """The author leaves; this is its last entry.

    `known` has the members that it knew, and after which of its entries it sent to them.
    """

    known: Cut


class Remove(NamedTuple):
    """Members that are gone are removed; all that remains of them was delivered before."""

    members: tuple[Member, ...]


Op: TypeAlias = Post | Add | Leave | Remove


class Entry(NamedTuple):
    """An entry of the log.

    Attributes:
        author: Who made it.
        number: Its number among the entries of its author, from 1.
        deps: The entries that it follows directly: the last ones, of each author, that no
            other entry known to its author follows.
        op: What it does.
    """

    author: Member
    number: int
    deps: tuple[tuple[Member, int], ...]
    op: Op


# -- frames -------------------------------------------------------------------


class Position(NamedTuple):
    """How far the state of an application goes: what it has of which group.

    Attributes:
        identity: Distinguishes the group from all others, also from those of the same name.
        cut: For each author, up to which number its messages are in the state.
    """

    identity: bytes
    cut: Cut


class Missed(NamedTuple):
    """A message that was delivered while a process was not a member."""

    author: Member
    number: int
    payload: bytes


View: TypeAlias = Mapping[Member, tuple[str, Member, int]]
"""For each member: its address, and the entry that added it (author and number)."""


class Ask(NamedTuple):
    """A process asks to be let in.

    Attributes:
        member: The membership that it asks for.
        address: Where others reach it, or an empty string if they know.
        left: Its memberships up to this term ended with a leave.
        since: How far the state goes that it still has, if any.
    """

    member: Member
    address: str
    left: int
    since: Position | None = None


class Entries(NamedTuple):
    """Entries, by their author or by another member that passes them on."""

    entries: tuple[Entry, ...]


class Welcome(NamedTuple):
    """The state of a group at a cut, for a member that begins there.

    Attributes:
        sponsor: Who sends it.
        member: Who begins there.
        identity: Distinguishes the group from all others.
        cut: What is in the state.
        heads: The entries of the cut that no other one follows.
        view: The members.
        past: The former members.
        log: Entries in the cut that others may lack.
        missed: The messages that the member lacks, or None if it gets the whole state.
        state: The state of the application, if it has any.
        generation: How many times the group was begun, up to this one.
    """

    sponsor: Member
    member: Member
    identity: bytes
    cut: Cut
    heads: Cut
    view: View
    past: frozenset[Member]
    log: tuple[Entry, ...]
    missed: tuple[Missed, ...] | None = None
    state: bytes | None = None
    generation: int = 0


class Refused(NamedTuple):
    """A process cannot let another one in.

    Attributes:
        member: The membership that was asked for.
        final: Whether it can never be let in, so that another one has to be asked for.
        reason: Why a member cannot, in words; empty if the process is not a member itself.
    """

    member: Member
    final: bool
    reason: str = ""


class Alert(NamedTuple):
    """To the coordinator: these members are gone, and these exist.

    `added` is the entry that added the sender.
    """

    sender: Member
    to: Member
    added: tuple[Member, int]
    dead: frozenset[Member]
    known: frozenset[Member]


class Collect(NamedTuple):
    """From the coordinator: deliver nothing more of these members, and report."""

    sender: Member
    to: Member
    added: tuple[Member, int]
    round: int
    counts: Cut


class Report(NamedTuple):
    """To the coordinator: how far the sender has come, with what the coordinator lacks."""

    sender: Member
    round: int
    counts: Cut
    entries: tuple[Entry, ...]
    dead: frozenset[Member]
    known: frozenset[Member]


class Decided(NamedTuple):
    """From the coordinator: deliver the entries of these members up to these numbers."""

    sender: Member
    round: int
    counts: Cut
    entries: tuple[Entry, ...]


class Have(NamedTuple):
    """What the sender has delivered, as far as it has changed."""

    sender: Member
    counts: Cut


class Hello(NamedTuple):
    """To a process that is not a member: the sender is one, of the group with this identity."""

    sender: Member
    identity: bytes


class Leaving(NamedTuple):
    """The sender has left, and asks whether the receiver has delivered that."""

    sender: Member
    to: Member


class Evicted(NamedTuple):
    """The receiver is not a member, whatever it thinks.

    If there is a cut, the group has removed these members, with these numbers as their last
    ones. Whoever has delivered more of them is not a member, and tells its peers.
    """

    member: Member
    final: Cut


class Stranger(NamedTuple):
    """The sender is not a member any more, with this term or an earlier one."""

    member: Member


class Standing(NamedTuple):
    """What a process that is not a member has of a group; see `founding`.

    Attributes:
        incarnation: The incarnation of its node.
        entered: How many times it has become a member.
        generation: How many times the group had been begun when it was a member last.
        delivered: How many entries it had delivered then.
        left: Whether it has left by itself.
    """

    incarnation: int
    entered: int
    generation: int
    delivered: int
    left: bool


class Poll(NamedTuple):
    """The sender asks, in a round of this number, who is not a member."""

    round: int


class Absent(NamedTuple):
    """The sender is not a member: the answer to a `Poll`."""

    round: int
    standing: Standing


Frame: TypeAlias = (
    Ask
    | Entries
    | Welcome
    | Refused
    | Alert
    | Collect
    | Report
    | Decided
    | Have
    | Hello
    | Leaving
    | Evicted
    | Stranger
    | Poll
    | Absent
)


# -- what comes out -----------------------------------------------------------


class Posted(NamedTuple):
    """A message was delivered; `members` are those of the group at this place."""

    author: Member
    number: int
    payload: bytes
    members: tuple[Member, ...]


class Joined(NamedTuple):
    """A process has become a member. Nothing of it was delivered before."""

    member: Member


class Left(NamedTuple):
    """A process is not a member any more: it left, or it is `gone`. Nothing of it follows."""

    member: Member
    gone: bool


class SecondGroup(NamedTuple):
    """Another group of the same name exists; the two never become one by themselves.

    It was begun by a process that did not know of this one.

    Attributes:
        member: A process that is a member there.
        reason: What happened and what to do, in words.
    """

    member: Member
    reason: str


class Sponsor(NamedTuple):
    """The state of the application at this place has to be sent to a new member."""

    welcome: Welcome


Item: TypeAlias = Posted | Joined | Left | Sponsor
