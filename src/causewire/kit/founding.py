"""Who begins a group again when nobody is a member any more.

A group ends for everybody when its parts have given up each other, or when all processes were
restarted. Somebody has to begin it again. Two processes must not: each of them would let others
in, and the two groups would never learn of each other. This module decides who does, without a
coordinator and without a clock.

**Nobody is a member.** A process asks all others that may be members, in rounds. One that is not a
member says so, with its `Standing`; a member does not answer. If all have answered in two rounds,
one after the other, and have said the same both times, then nobody was a member at the moment
between the rounds: a process that had become one and lost that again would have counted it
(`entered`), or would be another incarnation. A state that was on its way to a process, so that it
was about to become a member, has arrived before the second question: causal order delivers first
what its sender sent before it answered.

**Only one of them begins.** From such a moment on, a process becomes a member only when somebody
begins. Of those who may, the one with the highest rank does, and all others wait for it. The rank
is the generation of the group when the process was last a member, then how much it had delivered,
then its name: so the state that survives is the one that knows most. One that left the group by
itself ranks below those who did not. The rank changes only when a process becomes a member or is
restarted. If two had begun after the same moment, each would have found its own rank to be higher
than that of the other.

**What this assumes.** Those who may begin ask each other: the application gives all of them the
same list. If one that is asked does not answer, nobody begins, since it may be a member that cannot
be reached. So there is no group until it is back. That is the price for never having two.
"""

from __future__ import annotations

from .entries import Absent, Standing

__all__ = ["Founding"]


class Founding:
    """The questions of one process, and what it concludes from the answers.

    Args:
        me: The name of the process.
    """

    def __init__(self, me: str) -> None:
        self._me = me
        self._round = 0
        self._others: frozenset[str] = frozenset()
        self._answers: dict[str, Standing] = {}
        self._before: dict[str, Standing] | None = None

    def ask(self, number: int, others: frozenset[str]) -> None:
        """Begin a round of questions to these processes; no other round has its number."""
        self._before = self._answers if self.complete else None
        self._round = number
        self._others = others
        self._answers = {}

    def answered(self, name: str, absent: Absent) -> None:
        """Note the answer of a process; one to an earlier round does not count."""
        if absent.round == self._round and name in self._others:
            self._answers[name] = absent.standing

    @property
    def complete(self) -> bool:
        """Whether all have answered in this round."""
        return self._answers.keys() == self._others

    def begins(self, mine: Standing, listed: frozenset[str]) -> int:
        """Return the generation that this process has to begin, or 0 if it must not.

        Args:
            mine: The standing of this process, which is not a member.
            listed: Who else may begin.
        """
        if not self.complete or self._answers != self._before:
            return 0
        for name in listed & self._answers.keys():
            theirs, ours = _seniority(self._answers[name]), _seniority(mine)
            if theirs > ours or (theirs == ours and name < self._me):
                return 0
        return 1 + max([it.generation for it in (mine, *self._answers.values())])


def _seniority(standing: Standing) -> tuple[bool, int, int]:
    return not standing.left, standing.generation, standing.delivered
