"""Removing members that died, so that all others end up with the same entries from them.

See `machine` for the theory. This module has the coordinator's survey, and how others answer it.
"""

from __future__ import annotations

from .entries import (
    Alert,
    Collect,
    Cut,
    Decided,
    Evicted,
    Have,
    Member,
    Position,
    Remove,
    Report,
    Stranger,
)
from .replica import Replica

__all__ = ["Removal", "Round"]


class Round:
    """A coordinator's survey of how far everybody has come."""

    __slots__ = ("dead", "decided", "number", "reports", "waiting")

    def __init__(self, number: int, dead: frozenset[Member]) -> None:
        self.number = number
        self.dead = dead
        self.waiting: set[Member] = set()
        self.reports: dict[Member, Cut] = {}
        self.decided: dict[Member, int] | None = None


class Removal(Replica):
    """How a member learns that others are gone, and has them removed."""

    def __init__(self, me: Member) -> None:
        super().__init__(me)
        self._asked: dict[Member, tuple[str, Position | None]] = {}
        """Processes that asked to join: their addresses, and what they have."""
        self._extra: set[Member] = set()
        """Members that others know, and that are not in the view."""
        self._round: Round | None = None
        self._rounds = 0
        self._obeys: tuple[Member, int] | None = None
        """The coordinator that the last report went to, and the number of its survey."""
        self._waited: dict[Member, int] = {}
        """Ticks for which others of the same process could not be let in because of a member."""
        self._alerted: tuple[Member, frozenset[Member], frozenset[Member]] | None = None

    def suspect(self, member: Member) -> None:
        """Act on the news that a member is gone: its process left, died or was given up."""
        if member == self.me or member in self.dead or member in self.past or self.over:
            return
        self._bury(member)
        self._asked.pop(member, None)
        self._settle()

    def gone(self, name: str, incarnation: int) -> None:
        """Act on the news that an incarnation of a process, and earlier ones, are gone.

        Incarnation 0 stands for one that was never reached: all members of that name.
        """
        self._floors[name] = max(self._floors.get(name, 0), incarnation)
        for member in self._known():
            if member.name == name and (not incarnation or member.incarnation <= incarnation):
                self.suspect(member)

    def met(self, name: str) -> None:
        """Act on the news that a process is not gone, as this one believed in a former life.

        This membership has just begun: it does not know anything of that process yet.
        """
        self._floors.pop(name, None)
        self.dead = {member for member in self.dead if member.name != name or member in self.view}

    def _known(self) -> list[Member]:
        """Everybody who is a member, wants to be one, or says so."""
        obeys = () if self._obeys is None else (self._obeys[0],)
        return sorted({*self.view, *self._extra, *self._asked, *obeys})

    def _bury(self, member: Member) -> None:
        self.dead.add(member)
        self._limit[member] = self.delivered.get(member, 0)
        self._dropped(member)

    def _dropped(self, member: Member) -> None:
        self._waited.pop(member, None)
        self._extra.discard(member)
        if self._obeys is not None and self._obeys[0] == member:
            self._obeys = None
        if self._round is not None:
            self._round.waiting.discard(member)

    def _is_gone(self, member: Member) -> bool:
        return member in self.dead or member in self.past or self._has_ended(member)

    def _dying(self) -> tuple[Member, ...]:
        """The members that are dead and not removed."""
        return tuple([m for m in self.view if m in self.dead]) if self.dead else ()

    def _changed(self) -> None:
        """Have the dead removed: as the coordinator, or by telling it."""
        if not self.joined or self.over is not None:
            return
        dying = self._dying()
        if not dying:
            self._round = self._obeys = self._alerted = None
            self._extra.clear()
            return
        coordinator = min(m for m in self.view if m not in self.dead)
        if self._obeys is not None:
            coordinator = min(coordinator, self._obeys[0])
        if coordinator != self.me:
            news = coordinator, frozenset(dying), frozenset(self._extra)
            if self._alerted != news:
                self._alerted = news
                self.out.append(((coordinator,), self._alert(coordinator)))
        elif self._round is None or not self._round.dead.issuperset(dying):
            self._survey(dying)
        else:
            self._decide(self._round)

    def _alert(self, to: Member) -> Alert:
        known = frozenset(self.view) | self._extra
        return Alert(self.me, to, self._added, frozenset(self._dying()), known)

    @property
    def _added(self) -> tuple[Member, int]:
        """The entry that added this member."""
        _, author, number = self.view[self.me]
        return author, number

    def _survey(self, dying: tuple[Member, ...]) -> None:
        """Ask everybody how far they have come with those who died."""
        self._rounds += 1
        self._obeys = None
        survey = self._round = Round(self._rounds, frozenset(dying))
        for member in dying:
            self._limit[member] = self.delivered.get(member, 0)
        self._decide(survey)

    def _invite(self, survey: Round) -> None:
        """Ask those who were not asked yet."""
        counts = {member: self.delivered.get(member, 0) for member in survey.dead}
        for member in sorted({*self.peers, *self._extra}):
            if member not in survey.waiting and member not in survey.reports:
                survey.waiting.add(member)
                collect = Collect(self.me, member, self._added, survey.number, counts)
                self.out.append(((member,), collect))

    def _was_alerted(self, alert: Alert) -> None:
        sender = alert.sender
        if not self.joined:
            self._begin_again(sender)
            return
        if sender in self.dead:
            return
        if self._evict(sender, alert.added, {}):
            return
        final = {member: self.delivered.get(member, 0) for member in alert.dead & self.past}
        if final:
            entries = [entry for member in final for entry in self._log.get(member, {}).values()]
            self.out.append(((sender,), Decided(self.me, 0, final, tuple(entries))))
        self._learn(alert.dead, alert.known | {sender})

    def _evict(self, sender: Member, added: tuple[Member, int], counts: Cut) -> bool:
        """Tell a process that it is not a member, if so; return whether it is not.

        It was removed; or it has delivered more of a removed member, `added` perhaps, than the
        group: what it has is lost, and so are all that it was with.
        """
        have = dict(counts)
        if sender not in self.view:
            author, number = added
            have[author] = max(number, have.get(author, 0))
        lost = self._lost(have)
        if sender in self.past:
            self.out.append(((sender,), Evicted(sender, {})))
        elif lost:
            self.out.append(((sender,), Evicted(sender, lost)))
        return sender in self.past or bool(lost)

    def _lost(self, counts: Cut) -> dict[Member, int]:
        """Return the last numbers of removed members of which somebody has delivered more."""
        delivered = self.delivered
        return {
            member: delivered.get(member, 0)
            for member, count in counts.items()
            if member in self.past and count > delivered.get(member, 0)
        }

    def _compare(self, have: Have) -> None:
        """Find out by its report whether the sender is in another branch of the group."""
        sender, counts = have
        if not self.joined or self._is_gone(sender):
            return
        if lost := self._lost(counts):
            self.out.append(((sender,), Evicted(sender, lost)))
        elif sender not in self.view:
            more = {
                member: self.delivered[member]
                for member, count in counts.items()
                if member in self.past and self.delivered.get(member, 0) > count
            }
            if more:
                self.out.append(((sender,), Have(self.me, more)))

    def _was_evicted(self, final: Cut) -> None:
        if final:
            if all(last >= self.delivered.get(m, 0) for m, last in final.items()):
                return
            self.out += [((member,), Evicted(member, final)) for member in self.peers]
        self.over = "evicted"

    def _begin_again(self, sender: Member) -> None:
        """Give up this membership, which others count on before it is ready."""
        self.out.append(((sender,), Stranger(self.me)))
        self.over = "evicted"

    def _learn(self, dead: frozenset[Member], known: frozenset[Member]) -> None:
        """Note who is dead, and who exists."""
        for member in dead - self.dead - self.past - {self.me}:
            self._bury(member)
        if self._dying():
            unknown = known - self.view.keys()
            self._extra |= {member for member in unknown if not self._is_gone(member)}

    def _collected(self, collect: Collect) -> None:
        sender = collect.sender
        if self.me in collect.counts:
            self.over = "evicted"
            return
        if self._evict(sender, collect.added, collect.counts):
            return
        if sender in self.dead:
            return
        lower = self._obeys is not None and self._obeys[0] < sender and self.joined
        if lower or (self._round is not None and self.me < sender):
            # It is going to obey that lower one too, which has to know of it.
            self._learn(frozenset(collect.counts), frozenset({sender}))
            return
        self._round = None
        self._obeys = sender, collect.round
        for member in collect.counts:
            if member not in self.past:
                self._bury(member)
        entries = [
            entry
            for member, count in collect.counts.items()
            for entry in self._log.get(member, {}).values()
            if entry.number > count
        ]
        counts = {member: self.delivered.get(member, 0) for member in collect.counts}
        known = frozenset(self.view) | self._extra | {self.me}
        dead = frozenset(self._dying())
        report = Report(self.me, collect.round, counts, tuple(entries), dead, known)
        self.out.append(((sender,), report))

    def _reported(self, report: Report) -> None:
        survey = self._round
        sender = report.sender
        if survey is None or survey.number != report.round or self._is_gone(sender):
            return
        self._keep(report.entries)
        self._learn(report.dead, report.known)
        survey.reports[sender] = report.counts
        survey.waiting.discard(sender)

    def _decide(self, survey: Round) -> None:
        """With all reports: the highest numbers are final."""
        if survey.decided is not None:
            return
        self._invite(survey)
        if survey.waiting:
            return
        reports = survey.reports
        final = survey.decided = {
            member: max(
                [self.delivered.get(member, 0), *[r.get(member, 0) for r in reports.values()]]
            )
            for member in survey.dead
        }
        have = {
            member: {**self._early.get(member, {}), **self._log.get(member, {})} for member in final
        }
        for reporter, counts in reports.items():
            missing = [
                have[member][number]
                for member, last in final.items()
                for number in range(counts.get(member, 0) + 1, last + 1)
                if number in have[member]
            ]
            self.out.append(((reporter,), Decided(self.me, survey.number, final, tuple(missing))))
        self._limit.update(final)

    def _decided(self, decided: Decided) -> None:
        if self._is_gone(decided.sender):
            return
        if any(last < self.delivered.get(m, 0) for m, last in decided.counts.items()):
            # What this member began with has died with its sponsor.
            self.out.append((self.peers, Stranger(self.me)))
            self.over = "evicted"
            return
        if decided.round and self._obeys != (decided.sender, decided.round):
            return
        self._keep(decided.entries)
        for member, last in decided.counts.items():
            if member not in self.past:
                self._limit[member] = last

    def _conclude(self) -> None:
        """Remove the dead, when everything of them that remains is delivered."""
        survey = self._round
        if survey is None or survey.decided is None or self.over is not None:
            return
        left = [m for m in survey.decided if m in self.view]
        if all(self.delivered.get(m, 0) >= survey.decided[m] for m in left):
            self._round = None
            if left:
                self._write(Remove(tuple(sorted(left))))

    def _remind(self) -> None:
        """Repeat what others may have had to ignore."""
        survey = self._round
        if survey is None:
            self._alerted = None
            self._changed()
        elif survey.decided is None:
            asked, survey.waiting = survey.waiting, set()
            self._invite(survey)
            survey.waiting |= asked
