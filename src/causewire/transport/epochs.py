"""Epochs: how a group whose protocol knows its members goes on when members come and go.

A protocol on a link (`link`) has an endpoint for a group of given processes. When the group
changes, the endpoint ends, and everybody continues with a new one for the new group. The time
between two changes is an *epoch*. This module decides when a process may begin one.

**What is known.** Each process has a *view*: which incarnation of which process is alive, and a
number. A process is alive in it while there is a session with it. An epoch is named by the view
with which it begins; its members are the processes that are alive in it. Every process starts
alone, with number 0.

The number tells views with the same members apart, so that those that are gone need not be
named: a view is as large as the group is, however many have passed through. There are two rules.

- When the members change, the number grows, at least to the highest that a peer has told.
- When a peer has told the same members with a higher number, the number becomes that one.

By the first rule the view of one process has each number with one set of members only, and
views of a process are ordered by their numbers. By the second rule all processes with the same
members come to have the same view. The transport has the obituaries of those that are gone, and
drops them in its time (`peers`). It sends them ahead of everything else, so also ahead of views.

**The change.** A process that learns of any change

1. stops: what its application sends waits (a queue in `link`), and everything else goes on.
   For the protocol, those that are gone are forgotten (`Endpoint.forget`);
2. tells every peer its view, in the stream of packets of the link, which is ordered;
3. says that it is *drained* when all messages that it has sent are delivered at all members
   that are still alive (the link has notices of that);
4. begins the new epoch when it is drained and all others that are alive in its view have said
   so of the same view. It tells the others that it *enters*, ahead of its first packet.

If anything else changes meanwhile, steps 2 to 4 begin again with the next view.

**A process that entered pulls the others along.** A process that has said that it is drained
does not know whether somebody has everything needed to enter. So it may learn of the next
change while others have entered already, and sent messages. Therefore a process enters a view
at once when it learns that a peer has entered it, unless it has entered a later one. This is
allowed: that peer had heard that everybody is drained. If the view is out of date by then, the
next change continues from there.

**Safety.** Let p enter the epoch E. Everybody alive in E was drained before, and did not send
in between, since it sends again when it has entered E or a later view. So all messages of
earlier epochs among those alive in E are delivered by then, everywhere. Hence no message of
an earlier epoch is delivered after one of E, and whatever a message of E may depend on is
delivered before it is sent: the cut is causal, and the endpoints of E need not know anything
about the past. Within an epoch, order is kept by the protocol, and by the rules for obituaries
when a member is forgotten (`peers`). What still arrives from an earlier epoch contains no
message and is dropped. Two views that were entered have an order if they have a common member,
the order of their numbers, since that member has told both. Otherwise the group was split, and
each side has given up the other, or they have never met.

Without the number, a view could return: x joins p and q, and is given up by p at once. The view
of p is then what it was, and what q told before x came would count as its consent, although q
has entered the epoch with x meanwhile, and sends.

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

from typing import NamedTuple

from .varint import LARGEST, MalformedError, get, get_text, put, put_text

__all__ = ["Epochs", "View", "decode", "encode", "name_of"]

MOST = 1 << 16
"""The most processes in a view."""

FARTHEST = 1 << 32
"""How far the number of a view may be ahead, so that a peer that lies does not use them up."""


class View(NamedTuple):
    """Who is alive, as one process knows it."""

    number: int
    """This grows with each change."""
    alive: dict[str, int]
    """The incarnations that are alive, by name."""


def encode(view: View) -> bytes:
    """Return a view as bytes."""
    parts = [put(view.number), put(len(view.alive))]
    for name, incarnation in sorted(view.alive.items()):
        parts += (put_text(name), incarnation.to_bytes(8, "big"))
    return b"".join(parts)


def decode(data: bytes, at: int) -> View:
    """Return the view that these bytes contain from an index on.

    Raises:
        MalformedError: There is none.
    """
    number, at = get(data, at)
    count, at = get(data, at)
    if count > MOST:
        raise MalformedError("too many processes")
    alive: dict[str, int] = {}
    for _ in range(count):
        name, at = get_text(data, at)
        if at + 8 > len(data):
            raise MalformedError("cut short")
        alive[name] = incarnation = int.from_bytes(data[at : at + 8], "big")
        if not name.isprintable() or not 0 < incarnation < 1 << 63:
            raise MalformedError("an impossible name or incarnation")
        at += 8
    if at != len(data) or len(alive) != count:
        raise MalformedError("bytes after a view, or a name twice")
    return View(number, alive)


class Epochs:
    """What one process knows about its group, and which epoch it is in.

    Attributes:
        known: The view of this process.
        current: The view that names the current epoch.
        drained: Whether this process has said that it is drained, of `known`.
        due: The peers that have to learn `known`, by alias.
        aliases: What the link calls the living peers that it has a session with, by name.
    """

    def __init__(self, me: str, incarnation: int) -> None:
        self._me = me
        self.known = self.current = View(0, {me: incarnation})
        self.drained = False
        self.due: set[str] = set()
        self.aliases: dict[str, str] = {}
        self._incarnations: dict[str, int] = {}
        """Those that there is a session with, by alias."""
        self._told: dict[str, tuple[View, bool]] = {}
        """The last view of each peer, and whether it is drained, by alias."""
        self._highest = 0
        """The highest number that a peer has told."""
        self._gone: dict[str, int] = {}
        """The lowest incarnation that may be alive, by name, while the link has an alias."""

    # -- news -----------------------------------------------------------------

    def met(self, alias: str, name: str, incarnation: int, mine: int) -> None:
        """Note that there is a session with an incarnation, and what is this process's own."""
        me, alive = self._me, self.known.alive
        if len(alive) == 1 or mine > alive[me]:
            self.known = View(self.known.number, {**alive, me: mine})
            self.current = View(self.current.number, {**self.current.alive, me: mine})
        self.aliases[name] = alias
        self._incarnations[alias] = incarnation
        self.due.add(alias)
        if incarnation >= self._gone.get(name, 0):
            self._changed({**self.known.alive, name: incarnation})

    def ended(self, alias: str) -> None:
        """Note that the session with an incarnation is over."""
        name = name_of(alias)
        if self.aliases.get(name) == alias:
            del self.aliases[name]
        self.due.discard(alias)
        self._told.pop(alias, None)
        incarnation = self._incarnations.pop(alias, 0)
        if incarnation:
            self._gone[name] = incarnation + 1
            alive = self.known.alive
            self._changed({one: alive[one] for one in alive if one != name})

    def discard(self, alias: str) -> None:
        """Drop what is left of an incarnation that is gone."""
        self._gone.pop(name_of(alias), None)

    def told(self, alias: str, view: View, drained: bool) -> None:
        """Note what a peer knows, and whether it is drained.

        Raises:
            MalformedError: The number of the view is too far ahead.
        """
        alone = len(self.current.alive) == 1
        if view.number > (LARGEST >> 1 if alone else self.known.number + FARTHEST):
            raise MalformedError("a number of a view that nobody can have used")
        self._told[alias] = view, drained
        self._highest = max(self._highest, view.number)
        if view.alive == self.known.alive and view.number > self.known.number:
            self._next(view)

    def _changed(self, alive: dict[str, int]) -> None:
        self._next(View(max(self.known.number + 1, self._highest), alive))

    def _next(self, view: View) -> None:
        self.known = view
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
        return sorted(name for name in self.known.alive if name != self._me)

    def alias(self, name: str) -> str | None:
        """Return the alias of the living incarnation of a process, if there is a session."""
        alias = self.aliases.get(name)
        if alias is None or self._incarnations[alias] != self.known.alive.get(name):
            return None
        return alias

    def present(self, alias: str) -> bool:
        """Return whether an incarnation is a member of the current epoch."""
        incarnation = self._incarnations.get(alias)
        return incarnation is not None and self.current.alive.get(name_of(alias)) == incarnation

    @property
    def absent(self) -> dict[str, int]:
        """The incarnations that others have a session with, and this process does not."""
        found: dict[str, int] = {}
        for view, _ in self._told.values():
            for name, incarnation in view.alive.items():
                lowest = max(self.known.alive.get(name, 0) + 1, self._gone.get(name, 0))
                if incarnation >= lowest and name != self._me:
                    found[name] = max(incarnation, found.get(name, 0))
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
        if view.number <= self.current.number:
            return False
        if (
            view.number > self.known.number
            or view.alive.get(self._me) != self.known.alive[self._me]
        ):
            raise MalformedError("a view that nobody can have entered")
        return True


def name_of(alias: str) -> str:
    """Return the name of the process that the link calls by an alias."""
    return alias.partition("\0")[0]
