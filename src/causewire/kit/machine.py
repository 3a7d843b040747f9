"""One member of a group, as a state machine without I/O.

**The log.** Members share a log of entries: messages of the application, and changes of the
membership (`Add`, `Leave`, `Remove`). An entry has a number among those of its author and names
the entries that it follows directly. A member delivers it when it has delivered those and the
author's previous one. So every member delivers every entry after all that its author had
delivered or written before; concurrent entries may come in any order. Who is a member is a
function of the *set* of delivered entries (added, and neither left nor removed; a `Member` is
unique to one joining, so that it is never added again). Replicas that have delivered the same
entries agree on it: membership is an operation-based CRDT, carried like the messages.

The transport delivers in causal order already, so entries normally never wait here. Two things
are beyond its promise, and are the reason why entries name what they follow: a message that was
not addressed to a process because it joined meanwhile, and one whose sender died before it
reached everybody ("an effect without its cause").

**Joining.** A member, the sponsor, writes `Add` and sends the newcomer its state at that cut.
From then on it sends its entries to the newcomer as well. Any other member does so when it
delivers `Add`, and first sends those of its own that the cut lacks. Everything of the newcomer
follows the `Add`, which was in its cut. If the sponsor dies half-way, the newcomer asks another
one, under the same membership; a second `Add` of it has no effect but that members send again
what the second cut lacks. A newcomer keeps what arrives before its state does. One that was a
member before, and has kept its state, gets the messages that it missed instead (`history`).

**Leaving.** `Leave` is the author's last entry. The author stays until everybody has delivered
it, so that what it has passed on to nobody else yet is not lost with it.

**Dying.** Entries of a member that died may have reached some and not others. Before it is
removed, everybody must have the same ones. The coordinator, the lowest member that is not dead,
asks all that are left (`Collect`). Each one *freezes* the dead: it delivers nothing more of them,
and reports how far it has come (`Report`), who else is dead, and whom it knows. The coordinator
asks those too that only others know, and starts again when more are dead. With all reports, the
highest number for each dead member is final: some survivor has delivered that much, and none
more. The coordinator announces it, with the entries that each one lacks (`Decided`), delivers
them itself, and writes `Remove`, which therefore follows the last entry of those who went.
If the coordinator dies, the next one starts again; reports state what was delivered by then, so
whatever a survivor has delivered is never forgotten. A member freezes again with every report,
and obeys the lowest coordinator alive. Nobody sponsors a newcomer while it has the dead to
remove: so a newcomer is either known to a survivor when that reports, or begins after `Remove`.
A newcomer whose `Add` died with its sponsor learns from the coordinator that it is out.

**Branches.** If a member is taken for dead and is not, or a newcomer knows only the dead, two sets
of members may remove each other, each with fewer entries than the other has. There is no majority
to prevent that: a group of two survives the loss of either. When a member of one branch hears from
the other, and has delivered more of somebody than the other has removed it with, it is not a
member any more; it tells its peers, who see the same, and all of them join again (`Evicted`).

**Stability.** Members report what they have delivered (`Have`). An entry that all members have
delivered is stable; only others are kept, to be passed on. A report counts once the entries
that its sender had written by then are delivered: they may have added somebody.
"""

from __future__ import annotations

from collections.abc import Iterable

from .entries import (
    Add,
    Alert,
    Ask,
    Collect,
    Decided,
    Entries,
    Evicted,
    Frame,
    Have,
    Hello,
    Leave,
    Leaving,
    Member,
    Missed,
    Position,
    Post,
    Posted,
    Refused,
    Report,
    Sponsor,
    Stranger,
    Welcome,
)
from .removal import Removal

__all__ = ["Machine", "answer_of_stranger"]

PATIENCE = 3
"""Ticks that a new membership waits for the `Leave` of the one before."""


def answer_of_stranger(me: Member, frame: Frame) -> Frame | None:
    """Return what to answer to a frame for a group that this process is not a member of.

    Args:
        me: The last membership of this process, whose term is 0 if there was none.
        frame: The frame.
    """
    if isinstance(frame, Ask):
        return Refused(frame.member, False)
    if isinstance(frame, Stranger | Evicted | Refused | Welcome | Hello) or not me.term:
        return None
    return Stranger(me)


class Machine(Removal):
    """One membership of a process.

    The driver calls `found`, or passes on the `Welcome` that it got; then `post`, `leave`,
    `ask`, `received`, `suspect` and `tick`. After any of these, it takes what is in `out` (frames
    and to whom) and in `items` (what the application gets), in their order.

    Args:
        me: The membership. Its term must be higher than that of every earlier one.
    """

    def found(self, address: str, identity: bytes = b"") -> None:
        """Begin a new group, with this process as its only member.

        Args:
            address: Where others reach it, or an empty string if they know.
            identity: Distinguishes the group from all others.
        """
        self.joined = True
        self.identity = identity
        self._write(Add(self.me, address, {}))

    def position(self, waiting: Iterable[tuple[Member, int]]) -> Position:
        """Return how far the state of the application goes.

        Args:
            waiting: Authors and numbers of messages that the application has not taken.
        """
        cut = dict(self.delivered)
        for author, number in waiting:
            cut[author] = min(cut[author], number - 1)
        return Position(self.identity, cut)

    def post(self, payload: bytes) -> int:
        """Send a message to all members, and return its number."""
        self._write(Post(payload))
        return self.delivered[self.me]

    def leave(self) -> None:
        """Leave the group; `over` says when all others have delivered that."""
        self._write(Leave({member: self._base.get(member, 0) for member in self.view}))

    def doubt(self, other: Member) -> None:
        """Find out whether this process and one that is in the group, too, are in one branch.

        A member does not count this process as one: its answer to the question may be `Evicted`.
        Or the other one counts itself as a member, and is none here. It may be about to become
        one. If not, it has delivered other messages than these of members that were removed.
        """
        if other in self.view:
            self.out.append(((other,), self._alert(other)))
        else:
            past = {member: self.delivered.get(member, 0) for member in self.past}
            self.out.append(((other,), Have(self.me, past)))

    # -- frames -----------------------------------------------------------------

    def received(self, frame: Frame) -> None:
        """Process what another member has sent."""
        if self.over is not None:
            return
        if isinstance(frame, Alert | Collect | Leaving) and frame.to != self.me:
            self.out.append(((frame.sender,), Stranger(frame.to)))
            return
        if isinstance(frame, Entries):
            self._keep(frame.entries)
        elif isinstance(frame, Have):
            self._claims.setdefault(frame.sender, {}).update(frame.counts)
            self._compare(frame)
            if self._leaving and frame.counts.get(self.me, 0) >= self._leaving:
                self._informed.add(frame.sender)
        elif isinstance(frame, Collect):
            self._collected(frame)
        elif isinstance(frame, Report):
            self._reported(frame)
        elif isinstance(frame, Decided):
            self._decided(frame)
        elif isinstance(frame, Alert):
            self._was_alerted(frame)
        elif isinstance(frame, Welcome):
            self._welcomed(frame)
        elif isinstance(frame, Leaving):
            if not self.joined:
                self._begin_again(frame.sender)
            elif frame.sender in self.past:
                count = self.delivered.get(frame.sender, 0)
                self.out.append(((frame.sender,), Have(self.me, {frame.sender: count})))
        elif isinstance(frame, Evicted):
            if frame.member == self.me:
                self._was_evicted(frame.final)
        elif isinstance(frame, Stranger):
            name, incarnation, term = frame.member
            for member in self._known():
                if member[:2] == (name, incarnation) and member.term <= term:
                    self.suspect(member)
        self._settle()

    def _settle(self) -> None:
        """Do everything that has become possible."""
        self._advance()
        if self.dead:
            self._changed()
            self._advance()
            self._conclude()
        elif self._round is not None or self._extra or self._obeys is not None:
            self._changed()
        self._admit()
        self._take_claims()
        if self._leaving and self.over is None and self._informed.issuperset(self.peers):
            self._drop(self.me, gone=False)

    def tick(self) -> None:
        """Tell the others what was delivered since the last call, and drop what is stable."""
        if not self.joined or self.over is not None:
            return
        told = self._told
        news = {m: n for m, n in self.delivered.items() if told.get(m) != n}
        peers = self.peers
        if news and peers:
            self.out.append((peers, Have(self.me, news)))
        self._told.update(news)
        self._prune()
        if not news and self._log:
            # Whoever is behind should at least answer that it is not a member.
            behind = [m for m in peers if self._is_behind(self._have.get(m, {}))]
            if behind:
                self.out.append((tuple(behind), Have(self.me, {})))
        if self._leaving:
            for member in self.peers:
                if member not in self._informed:
                    self.out.append(((member,), Leaving(self.me, member)))
        self._lose_patience()
        if self.dead and self.over is None:
            self._remind()

    def _lose_patience(self) -> None:
        """Suspect members whose process has begun another membership, and whose `Leave` is overdue.

        Those who delivered it may have been removed since, or were in another branch.
        """
        for member in [*self._asked, *self.view]:
            for other in self._namesakes(member):
                waited = self._waited[other] = self._waited.get(other, 0) + 1
                if waited > PATIENCE:
                    self.suspect(other)

    # -- joining ----------------------------------------------------------------

    def ask(
        self, member: Member, address: str, left: int = 0, since: Position | None = None
    ) -> None:
        """Let a process in, as soon as that is possible.

        Args:
            member: Its new membership.
            address: Where others reach it, or an empty string if they know.
            left: The last term of this incarnation that ended with a leave. Of later ones
                nothing more is to be expected.
            since: How far the state goes that it still has, if any.
        """
        if self._is_gone(member):
            self.out.append(((member,), Refused(member, True)))
            return
        for other in [one for one in self._asked if one.name == member.name and one < member]:
            del self._asked[other]
        self._asked[member] = address, since
        for other in self._namesakes(member):
            if other.incarnation < member.incarnation or other.term > left:
                self.suspect(other)
        self._settle()

    def _namesakes(self, member: Member) -> list[Member]:
        """Earlier memberships of the same process that have not ended yet."""
        return [other for other in self.view if other.name == member.name and other < member]

    def _admit(self) -> None:
        while self._asked and self.joined and not (self.over or self._leaving or self._dying()):
            ready = [member for member in self._asked if not self._namesakes(member)]
            if not ready:
                break
            member = min(ready)
            address, since = self._asked.pop(member)
            if self._is_gone(member):
                self.out.append(((member,), Refused(member, True)))
                continue
            self._write(Add(member, address, dict(self.delivered)))
            log = [entry for entries in self._log.values() for entry in entries.values()]
            self.items.append(
                Sponsor(
                    Welcome(
                        self.me,
                        member,
                        self.identity,
                        dict(self.delivered),
                        dict(self._heads),
                        dict(self.view),
                        frozenset(self.past),
                        tuple(log),
                        self._missed(since),
                    )
                )
            )

    def _missed(self, since: Position | None) -> tuple[Missed, ...] | None:
        """Return the messages after a position, or None if the whole state has to be sent."""
        if since is None or since.identity != self.identity:
            return None
        return self.history.since(since.cut, self.delivered)

    def _welcomed(self, welcome: Welcome) -> None:
        if self.joined or welcome.member != self.me or welcome.sponsor in self.dead:
            return
        self.joined = True
        self.view = dict(welcome.view)
        self.dead |= {member for member in self.view if self._has_ended(member)}
        self.past = set(welcome.past)
        self.dead -= self.past
        if self._obeys is not None and self._obeys[0] not in self.view:
            self._obeys = None
        self.delivered = dict(welcome.cut)
        self.identity = welcome.identity
        missed = welcome.missed or ()
        self.history.begin(welcome.cut, missed)
        self.items += [Posted(*message, self.members) for message in missed]
        self._heads = dict(welcome.heads)
        for entry in welcome.log:
            self._log.setdefault(entry.author, {})[entry.number] = entry
        early, self._early = self._early, {}
        for entries in early.values():
            self._keep(entries.values())
        for member in self._dying():
            count = self.delivered.get(member, 0)
            self._limit[member] = max(self._limit.get(member, 0), count)
