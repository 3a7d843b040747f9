"""What protocols have in common that know their members beforehand.

Matrix and vector clocks need an index for each process, and a broadcast needs to know who
the members are. Such endpoints are created with `group=`, the same at all processes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Self

from .endpoint import Endpoint, LocalProtocolError, RemoteProtocolError, destinations

__all__ = ["BroadcastEndpoint", "GroupEndpoint"]


class GroupEndpoint(Endpoint):
    """An endpoint of a fixed group: members have indexes 0 to n-1, by name."""

    __slots__ = ("group", "index")

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me)
        if group is None:
            raise LocalProtocolError(
                f"{type(self).__name__} needs group=, the names of all members"
            )
        self.group = destinations(tuple(group))
        self.index = {name: k for k, name in enumerate(self.group)}
        if me not in self.index:
            raise LocalProtocolError(f"{me!r} is not a member of the group {list(self.group)}")

    def _member(self, source: str) -> int:
        """Return the index of the process that a packet claims to come from."""
        k = self.index.get(source)
        if k is None or source == self.me:
            raise RemoteProtocolError(f"a packet from {source!r}, which is not another member")
        return k

    def _members(self, to: str | Collection[str]) -> tuple[str, ...]:
        """Check destinations and return them, all members of the group."""
        names = destinations(to)
        strangers = [name for name in names if name not in self.index]
        if strangers:
            raise LocalProtocolError(f"not in the group {list(self.group)}: {strangers}")
        if self._forgotten:
            self._refuse_forgotten(names)
        return names

    def _forget(self, peer: str) -> tuple[int, ...]:
        if peer not in self.index:
            raise LocalProtocolError(f"{peer!r} is not in the group {list(self.group)}")
        return ()

    def _copy_into(self, twin: Self) -> None:
        twin.group = self.group
        twin.index = self.index


class BroadcastEndpoint(GroupEndpoint):
    """An endpoint that can only send to everybody, itself included or not."""

    __slots__ = ("others",)

    def __init__(self, me: str, group: Iterable[str] | None = None) -> None:
        super().__init__(me, group)
        self.others = tuple(name for name in self.group if name != me)
        """All other members that were not forgotten."""

    def _everybody(self, to: str | Collection[str]) -> bool:
        """Check that `to` is everybody; return whether it includes this process."""
        names = self._members(to)
        to_self = self.me in names
        if len(names) - to_self != len(self.others):
            raise LocalProtocolError(
                f"{type(self).__name__} only broadcasts: send to all of {list(self.others)}"
            )
        return to_self

    def _forget(self, peer: str) -> tuple[int, ...]:
        super()._forget(peer)
        self.others = tuple(name for name in self.others if name != peer)
        return ()

    def _copy_into(self, twin: Self) -> None:
        super()._copy_into(twin)
        twin.others = self.others
