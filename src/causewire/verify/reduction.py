"""Which packets may go first: derived from the unreduced system, not declared.

Events at different processes commute: the one takes from its own inbox, the other
puts at most into it. So what matters is the order of events at one process. Let
packet p lie in the inbox of a process in local state l. If p commutes with every
event that can happen there while p is pending, now and at all local states to
which such events lead, then nothing is lost if p is received first, and nothing
else is looked at in this state: a singleton ample set. (Runs are finite, as every
run makes finitely many sends and each send causes finitely many packets, so
nothing is put off for ever; and a violation on a way that is left out is a
violation on the way that is taken, because the steps of the one are steps of the
other, with the same deliveries.)

Which events can happen while p is pending? A search of the system *without
ghost*, unreduced, has met all stations of each process: all combinations of a
local state with an inbox. That search is made anyway, for everything but causal
order. The ghost of the searches for causal order changes nothing in what a
protocol does, so a local state with a ghost and two pending packets with tags
can only occur together if they do so with all tags wiped off. Hence

    p may go first at l   iff   its receipt gives one outcome (but for reactions
                                that can as well follow it), that is no violation
                                and no end, and for every e that was met together
                                with p at l without tags, with whatever tags, and
                                for the client's send:
                                  l, then e, then p  =  l, then p, then e
                                in local state, packets sent and verdict, and
                                p may go first after e, too.

This is the diamond check, and its greatest solution is the reduction: nothing is
applied that was not proved for the very system at hand, and a protocol with a
mistake in it is no exception. Equality of packets is equality of bags, or of the
sequence to each receiver if channels are FIFO.

Not used where packets may be lost or repeated: to receive p first is not to lose
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from .actor import Actor
from .event import SEND, TICKS, Outcome
from .ghost import retagged, tags_in, untainted
from .post import Sent

__all__ = ["Commuting", "Diamond"]

Node = tuple[int, int]
"""A local state and a packet that is pending there."""


_Close: TypeAlias = tuple[int, Sent, int, bool, str | None]
"""Where two events in a row lead: state, packets, cost, end, and verdict."""


class Diamond:
    """The commutation of pending packets at one process."""

    def __init__(
        self, plain: Actor, reached: Iterable[int], ghosted: Actor, several: bool = True
    ) -> None:
        self.plain = plain
        self.actor = ghosted
        self.taints = ghosted.ghost.taints(ghosted.index, several)
        self.post = ghosted.post
        self.together: dict[int, dict[int, set[int]]] = {}
        """Without ghost: by local state and packet, what else was pending."""
        self.checked = 0
        """How many pairs of events were tried in both orders."""
        self._first: dict[Node, bool] = {}
        self._wiped: dict[int, int] = {}
        self._variants: dict[int, list[int]] = {}
        for station in reached:
            local, _ = plain.stations.values[station]
            ready = list(self.post.ready(plain.index, plain.inbox(station)))
            here = self.together.setdefault(local, {})
            for packet, rest in ready:
                others = here.setdefault(packet, set())
                others.update(other for other, _ in ready if other != packet)
                if not self.post.ordered and packet in rest:
                    others.add(packet)

    # -- without tags ---------------------------------------------------------

    def _local_without_ghost(self, local: int) -> int | None:
        """The local state with its tags wiped off, if the plain search has met it."""
        known = self._wiped.get(local)
        if known is None:
            state = self.actor.locals[local]
            value = untainted(state.endpoint.value(), lambda tag: True)
            key = (value, state.left, state.got, 0, 0, 0)
            known = self._wiped[local] = self.plain.ids.get(key, -1)
        return known if known >= 0 else None

    def _tagged(self, packet: int) -> list[int]:
        """The packet with all tags that it may have; without any comes first."""
        variants = self._variants.get(packet)
        if variants is None:
            numbering = self.post.packets[self.actor.index]
            sender, value = numbering.values[packet]
            variants = [numbering((sender, variant)) for variant in retagged(value, self.taints)]
            self._variants[packet] = variants
        return variants

    # -- who may go first -----------------------------------------------------

    def goes_first(self, local: int, packet: int) -> bool:
        """Whether to receive `packet` in this local state is all there is to look at."""
        known = self._first.get((local, packet))
        if known is None:
            self._decide((local, packet))
            known = self._first[local, packet]
        return known

    def _decide(self, root: Node) -> None:
        """The greatest solution for `root` and all that it depends on."""
        before: dict[Node, list[Node]] = {root: []}
        refuted: list[Node] = []
        todo = [root]
        while todo:
            node = todo.pop()
            then = self._check(node)
            if then is None or any(self._first.get(each) is False for each in then):
                refuted.append(node)
                continue
            for each in then:
                if each not in self._first:
                    if each not in before:
                        before[each] = []
                        todo.append(each)
                    before[each].append(node)
        for node in before:
            self._first[node] = True
        while refuted:
            node = refuted.pop()
            if self._first[node]:
                self._first[node] = False
                refuted += before[node]

    def _check(self, node: Node) -> list[Node] | None:
        """The diamonds of one node; None if one does not close, else what must hold, too."""
        local, packet = node
        first = self._receipt(local, packet)
        if first is None:
            return None
        then: list[Node] = []
        for event in self._events(local, packet):
            self.checked += 1
            one: set[_Close] = set()
            for outcome in self.actor.outcomes(local, event):
                if outcome.violation is not None or outcome.over:
                    one.add((-1, (), outcome.cost, outcome.over, outcome.violation))
                    continue
                second = self._receipt(outcome.local, packet)
                if second is None:
                    return None
                sent = self.post.merged(outcome.sent, second.sent)
                one.add((second.local, sent, outcome.cost, False, None))
                then.append((outcome.local, packet))
            other: set[_Close] = set()
            for outcome in self.actor.outcomes(first.local, event):
                if outcome.violation is not None or outcome.over:
                    other.add((-1, (), outcome.cost, outcome.over, outcome.violation))
                    continue
                sent = self.post.merged(first.sent, outcome.sent)
                other.add((outcome.local, sent, outcome.cost, False, None))
            if one != other:
                return None
        return then

    def _receipt(self, local: int, packet: int) -> Outcome | None:
        """The one outcome of a receipt, if there is only one that counts."""
        outcomes = self.actor.outcomes(local, packet)
        first = outcomes[0]
        if first.violation is not None or first.over:
            return None
        for other in outcomes[1:]:
            if not self.actor.said_after(local, other, outcomes):
                return None
        return first

    def _events(self, local: int, packet: int) -> Iterable[int]:
        """All that can happen in a local state while a packet is pending."""
        plain = self._local_without_ghost(local)
        if plain is not None:
            others = self.together.get(plain, {}).get(self._tagged(packet)[0])
            if others is not None:
                if self.actor.sends_now(local):
                    yield SEND
                if self.post.setup.network.ticks:
                    yield TICKS
                here = [self._taint(packet), *self._known(local)]
                for other in others:
                    for variant in self._tagged(other):
                        if self.actor.ghost.agree([*here, self._taint(variant)]):
                            yield variant

    def _taint(self, packet: int) -> int:
        for tag in tags_in(self.post.packets[self.actor.index].values[packet][1]):
            return int(tag.taint)
        return 0

    def _known(self, local: int) -> list[Any]:
        """What a local state says of the marked message, in its ghost and its buffers."""
        state = self.actor.locals[local]
        known = [state.ghost] if self.actor.ghost.marks else []
        return [*known, *(tag.taint for tag in tags_in(self.actor.key(state)[0]))]


class Commuting:
    """The reduction for a whole system: a rule for `Machine(eager=...)`."""

    def __init__(
        self, plain: Sequence[Actor], reached: Sequence[Iterable[int]], ghosted: Sequence[Actor]
    ) -> None:
        several = any(len(send.to) > 1 for actor in ghosted for send in actor.sends)
        self.diamonds = [
            Diamond(*each, several) for each in zip(plain, reached, ghosted, strict=True)
        ]

    def __call__(self, index: int, local: int, packet: int) -> bool:
        return self.diamonds[index].goes_first(local, packet)
