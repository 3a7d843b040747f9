"""The judge of `campaigns.groups`: it sees what applications got, and nothing of the machine."""

from __future__ import annotations

from causewire.kit.entries import Member

__all__ = ["Judge", "Replica", "Wrong"]


class Wrong(Exception):  # noqa: N818
    """A run in which the machine broke a promise."""


class Replica:
    """What one membership of an application has seen: the judge's notes."""

    def __init__(self, seen: int, members: set[Member]) -> None:
        self.seen = seen
        self.members = set(members)
        self.left: set[Member] = set()


class Judge:
    """Knows what everybody got, and what followed from what."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Member, int], int] = {}
        self.past: list[int] = []
        self.authors: list[Member] = []

    def posted(self, replica: Replica, author: Member, number: int) -> None:
        """A message was sent, by somebody who has seen this."""
        self.numbers[author, number] = len(self.past)
        self.past.append(replica.seen)
        self.authors.append(author)

    def delivered(
        self, replica: Replica, author: Member, number: int, missed: bool = False
    ) -> None:
        """A message was delivered: not twice, and after what it depends on.

        The author of one that was `missed` may have joined and left meanwhile.
        """
        index = self.numbers[author, number]
        if replica.seen >> index & 1:
            raise Wrong(f"message {number} of {author} came twice")
        if self.past[index] & ~replica.seen:
            raise Wrong(f"message {number} of {author} came before one that it depends on")
        if missed:
            replica.seen |= 1 << index
            return
        if author in replica.left:
            raise Wrong(f"message {number} of {author} came after its author had left")
        if author not in replica.members:
            raise Wrong(f"message {number} of {author} came before its author had joined")
        replica.seen |= 1 << index

    def changed(self, replica: Replica, member: Member, joined: bool) -> None:
        """A member joined or left, once."""
        if joined == (member in replica.members) or member in replica.left:
            raise Wrong(f"{member} {'joined' if joined else 'left'} twice")
        if joined:
            replica.members.add(member)
        else:
            replica.members.discard(member)
            replica.left.add(member)

    def compare(self, finals: dict[Member, Replica], sure: set[Member]) -> None:
        """At the end: the same messages and members everywhere, and none is missing.

        None, that is, of those who are still members or left properly (`sure`). Of others the
        last messages may be lost, for all.
        """
        everybody = set(finals)
        for member, replica in finals.items():
            if replica.members != everybody:
                raise Wrong(f"{member} knows {sorted(replica.members)}, not {sorted(everybody)}")
        masks = {replica.seen for replica in finals.values()}
        if len(masks) > 1:
            raise Wrong("replicas differ")
        for index, author in enumerate(self.authors):
            if author in everybody | sure and not all(mask >> index & 1 for mask in masks):
                raise Wrong(f"a message of {author} is missing")
