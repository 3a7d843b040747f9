"""Epochs: how a group whose protocol knows its members goes on when members come and go.

A protocol on a link (`link`) has an endpoint for a group of given processes. When the group
changes, the endpoint ends, and everybody continues with a new one for the new group. The time
between two changes is an *epoch*. This module decides when a process may begin one.

**What is known.** For each name, the *status* is one number that only grows: `2 * i` if
incarnation i is alive, `2 * i + 1` if it is gone. What a process knows is a *view*: a mapping
from names to statuses. That an incarnation is alive is known to those that have a session with
it; that it is gone is passed on, as an obituary of the transport. Since a status only grows, it
does not matter in which order news arrives. An epoch is named by the view with which it begins;
its members are the processes that are alive in it. Every process starts alone.

**The change.** A process that learns of any change

1. stops: what its application sends waits (a queue in `link`), and everything else goes on.
   For the protocol, those that are gone are forgotten (`Endpoint.forget`);
2. tells every peer its view, in the stream of packets of the link, which is ordered;
3. says that it is *drained* when all messages that it has sent are delivered at all members
   that are still alive (the link has notices of that);
4. begins the new epoch when it is drained and all others that are alive in its view have said
   so of the same view. It tells the others that it *enters*, ahead of its first packet.

If anything else changes meanwhile, steps 2 to 4 begin again with the larger view.

**A process that entered pulls the others along.** A process that has said that it is drained
does not know whether somebody has everything needed to enter. So it may learn of the next
change while others have entered already, and sent messages. Therefore a process enters a view
at once when it learns that a peer has entered it. This is allowed: that peer had heard that
everybody is drained. If the view is out of date by then, the next change continues from there.

**Safety.** Let p enter the epoch E. Everybody alive in E was drained before, and did not send
in between, since it sends again when it has entered E or a later view. So all messages of
earlier epochs among those alive in E are delivered by then, everywhere. Hence no message of
an earlier epoch is delivered after one of E, and whatever a message of E may depend on is
delivered before it is sent: the cut is causal, and the endpoints of E need not know anything
about the past. Within an epoch, order is kept by the protocol, and by the rules for obituaries
when a member is forgotten (`peers`). What still arrives from an earlier epoch contains no
message and is dropped. Two views that were entered have an order if they have a common member,
since what a process knows only grows. Otherwise the group was split, and each side has given up
the other.

**A protocol that cannot forget** (`ks`: without the packets of the one that is gone, it does
not know in which order to deliver some messages that are here). The messages that it holds
back carry Lamport times. When all peers have told the view of this process, they have stopped,
and their packets have arrived ahead of that. Nothing of the living is missing then, so the
messages that are held back are delivered in the order of their Lamport times, which extends
causal order. Messages of those that are gone are dropped. This needs a protocol whose packets
are all messages; others that cannot forget are refused at construction.

**Liveness.** If the living can reach each other, and their protocol delivers everything once
the senders stop and the dead are forgotten, all become drained, all views become equal, and
all enter. A member that does not answer holds everybody up until it answers or somebody gives
it up (`give_up_after`): a group protocol needs all its members. The same is true of a process
that some can reach and others cannot (`absent`).
"""

from __future__ import annotations

from typing import TypeAlias

from .varint import MalformedError, get, get_text, put, put_text

__all__ = ["Epochs", "View", "decode", "encode", "members", "name_of"]

View: TypeAlias = dict[str, int]
"""The status of each process: twice its incarnation, plus 1 if that is gone."""

MOST = 1 << 16
"""The most processes in a view."""


def members(view: View) -> list[str]:
    """Return the names of the processes that are alive in a view."""
    return sorted(name for name, status in view.items() if not status & 1)


def covers(one: View, other: View) -> bool:
    """Return whether a view knows everything that another one does."""
    return all(one.get(name, 0) >= status for name, status in other.items())


def encode(view: View) -> bytes:
    """Return a view as bytes."""
    parts = [put(len(view))]
    for name, status in sorted(view.items()):
        parts += (put_text(name), status.to_bytes(8, "big"))
    return b"".join(parts)


def decode(data: bytes, at: int) -> View:
    """Return the view that these bytes contain from an index on.

    Raises:
        MalformedError: There is none.
    """
    count, at = get(data, at)
    if count > MOST:
        raise MalformedError("too many processes")
    view: View = {}
    for _ in range(count):
        name, at = get_text(data, at)
        if at + 8 > len(data):
            raise MalformedError("cut short")
        view[name] = status = int.from_bytes(data[at : at + 8], "big")
        if not name.isprintable() or not 1 < status < (1 << 64) - 2:
            raise MalformedError("an impossible name or incarnation")
        at += 8
    if at != len(data) or len(view) != count:
        raise MalformedError("bytes after a view, or a name twice")
    return view


class Epochs:
    """What one process knows about its group, and which epoch it is in.

    Attributes:
        known: Everything that is known.
        current: The view that names the current epoch.
        drained: Whether this process has said that it is drained, of `known`.
        due: The peers that have to learn `known`, by alias.
        rumours: Obituaries in the views of others that are news here: the lowest incarnation
            that may be alive, by name. The transport decides whether to believe them.
        aliases: What the link calls the living peers that it has a session with, by name.
    """

    def __init__(self, me: str, incarnation: int) -> None:
        self._me = me
        self.known: View = {me: 2 * incarnation}
        self.current: View = dict(self.known)
        self.drained = False
        self.due: set[str] = set()
        self.aliases: dict[str, str] = {}
        self._incarnations: dict[str, int] = {}
        self.rumours: dict[str, int] = {}
        self._told: dict[str, tuple[View, bool]] = {}
        """The last view of each peer, and whether it is drained, by alias."""

    # -- news -----------------------------------------------------------------

    def met(self, alias: str, name: str, incarnation: int, mine: int) -> None:
        """Note that there is a session with an incarnation, and what is this process's own."""
        if len(self.known) == 1 or mine > self.known[self._me] >> 1:
            self.known[self._me] = self.current[self._me] = 2 * mine
        self.aliases[name] = alias
        self._incarnations[alias] = incarnation
        self._raise(name, 2 * incarnation)
        self.due.add(alias)

    def ended(self, alias: str) -> None:
        """Note that the session with an incarnation is over."""
        name = name_of(alias)
        if self.aliases.get(name) == alias:
            del self.aliases[name]
        self.due.discard(alias)
        self._told.pop(alias, None)
        incarnation = self._incarnations.pop(alias, 0)
        if incarnation:
            self._raise(name, 2 * incarnation + 1)

    def buried(self, name: str, floor: int) -> None:
        """Note that all incarnations of a process below `floor` are gone."""
        if name != self._me:
            self._raise(name, 2 * floor - 1)

    def told(self, alias: str, view: View, drained: bool) -> None:
        """Note what a peer knows, and whether it is drained."""
        self._told[alias] = view, drained
        for name, status in view.items():
            if status & 1 and status > self.known.get(name, 0) and name != self._me:
                self.rumours[name] = max(status // 2 + 1, self.rumours.get(name, 0))

    def _raise(self, name: str, status: int) -> None:
        if status > self.known.get(name, 0):
            self.known[name] = status
            self.drained = False
            self.due.update(self.aliases.values())

    # -- questions ------------------------------------------------------------

    @property
    def changing(self) -> bool:
        """Whether the group is about to change, so that nothing may be sent."""
        return self.known != self.current

    @property
    def others(self) -> list[str]:
        """The other processes that are alive, as far as is known."""
        return [name for name in members(self.known) if name != self._me]

    def alias(self, name: str) -> str | None:
        """Return the alias of the living incarnation of a process, if there is a session."""
        alias = self.aliases.get(name)
        if alias is None or 2 * self._incarnations[alias] != self.known[name]:
            return None
        return alias

    def present(self, alias: str) -> bool:
        """Return whether an incarnation is a member of the current epoch."""
        incarnation = self._incarnations.get(alias)
        return incarnation is not None and self.current.get(name_of(alias)) == 2 * incarnation

    @property
    def absent(self) -> dict[str, int]:
        """The incarnations that others have a session with, and this process does not."""
        found: dict[str, int] = {}
        for view, _ in self._told.values():
            for name, status in view.items():
                if status > self.known.get(name, 0) and name != self._me:
                    found[name] = max(status >> 1, found.get(name, 0))
        return found

    def all_told(self, drained: bool) -> bool:
        """Return whether all others have told the same view, and are drained if that is asked."""
        return all(self._agrees(self.alias(name), drained) for name in self.others)

    def _agrees(self, alias: str | None, drained: bool) -> bool:
        view, ready = self._told.get(alias or "", (None, False))
        return view == self.known and (ready or not drained)

    @property
    def missing(self) -> list[str]:
        """The others that have not said that they are drained, of the same view."""
        return [name for name in self.others if not self._agrees(self.alias(name), True)]

    def pulls(self, view: View) -> bool:
        """Return whether a view that a peer enters comes after the current epoch here.

        Raises:
            MalformedError: This process has not agreed to enter it.
        """
        if view == self.current or not covers(view, self.current):
            return False
        if view.get(self._me) != self.known[self._me] or not covers(self.known, view):
            raise MalformedError("a view that nobody can have entered")
        return True


def name_of(alias: str) -> str:
    """Return the name of the process that the link calls by an alias."""
    return alias.partition("\0")[0]
