"""Why a message took as long as it did, in sentences.

Some traces say what a message waited for, in rows `held_for` and `lane`
(`causewire.trace`). Others do not, but they show what happened last
before the wait was over: the row of the same process that the end of the wait
follows directly. An acknowledgement or a permit that arrives, or a predecessor
that is delivered, is what the protocol had been waiting for.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..report.names import shown
from ..trace import HELD, HELD_FOR, LANE
from .behind import Leg, arrival_before, behind
from .causality import Causality
from .faults import WORDS, Span
from .run import Axis, RunData
from .table import RECEIVED, RELEASED
from .times import duration

__all__ = ["Cause", "Story", "beyond", "story"]

_PACKETS = {
    "ack_receive": "the ack of {message} from {peer} arrived",
    "permit_receive": "the permit of {peer} for {message} arrived",
    "control_receive": "a control packet from {peer} arrived",
}


class Cause(NamedTuple):
    """What ended a wait: a row, the same in words, and the packets behind it."""

    row: int
    words: str
    legs: list[Leg]


class Story(NamedTuple):
    """What became of a copy."""

    sentences: list[str]
    waits: list[dict[str, Any]]
    """For the picture: where it waited, from when to when, and what row ended it."""


def story(run: RunData, axis: Axis, causality: Causality, spans: list[Span], copy: int) -> Story:
    """Return what became of a copy, and what held it back, where and for how long."""
    c = run.copies
    send, release = int(c.send[copy]), int(c.release[copy])
    receive, deliver = int(c.receive[copy]), int(c.deliver[copy])
    message = run.message(send)
    source, target = run.shown[int(c.source[copy])], run.shown[int(c.target[copy])]
    words = _Words(axis)
    sentences: list[str] = []
    waits: list[dict[str, Any]] = []
    peers: set[int] = set()

    def wait(where: int, begin: int, end: int, cause: Cause | None, held_at: str) -> None:
        legs = cause.legs if cause is not None else []
        peers.update(int(run.rows.process[leg.departure]) for leg in legs)
        waits.append(
            {
                "process": where,
                "from": float(axis.x[begin]),
                "to": float(axis.x[end]) if end >= 0 else axis.end,
                "held_at": held_at,
                "cause": None if cause is None else cause.row,
                "cause_x": None if cause is None else float(axis.x[cause.row]),
                "cause_process": None if cause is None else int(run.rows.process[cause.row]),
                "legs": [
                    {
                        "from": int(run.rows.process[leg.departure]),
                        "to": int(run.rows.process[leg.arrival]),
                        "send": float(axis.x[leg.departure]),
                        "deliver": float(axis.x[leg.arrival]),
                    }
                    for leg in legs
                ],
            }
        )

    first = f"{source} sent {message} to {target} at {words.at(send)}"
    if deliver >= 0:
        total = words.between(send, deliver)
        sentences.append(f"{first}; {target} delivered it {total} later.")
    else:
        sentences.append(f"{first}; {target} never delivered it.")
    if release >= 0 and axis.x[release] > axis.x[send] and not _waited(run, send, release):
        sentences.append(f"It left {source} after {words.between(send, release)}.")
    elif release >= 0 and axis.x[release] > axis.x[send]:
        cause = _cause(run, causality, send, release, send)
        wait(int(c.source[copy]), send, release, cause, "sender")
        why = f", until {cause.words}" if cause else "; the trace does not say what for"
        sentences.append(
            f"It was held at its sender {source} for {words.between(send, release)}{why}."
        )
        sentences += _in_lane(run, send, release, target)
        sentences += [text] if cause and (text := _explained(run, axis, cause.legs)) else []
    elif release < 0 and receive < 0 and deliver < 0 and _has(run, RELEASED):
        wait(int(c.source[copy]), send, -1, None, "sender")
        sentences.append(f"It never left {source}: it was still held there when the trace ended.")
    left = release if release >= 0 else send
    if receive >= 0 and receive != left:
        again = _repeated(run, copy, left, receive)
        lost = f" {again}" if again else ""
        sentences.append(f"The network took {words.between(left, receive)}.{lost}")
    elif release >= 0 and receive < 0 and _has(run, RECEIVED) and deliver < 0:
        sentences.append(f"It left {source} and never arrived. {_lost(run, copy)}".strip())
    if receive >= 0 and deliver >= 0 and not _waited(run, receive, deliver):
        if axis.x[deliver] > axis.x[receive] and axis.name == "time":
            took = words.between(receive, deliver)
            sentences.append(f"It was delivered {took} after its arrival.")
    elif receive >= 0 and deliver >= 0 and axis.x[deliver] > axis.x[receive]:
        cause = _cause(run, causality, receive, deliver, send)
        wait(int(c.target[copy]), receive, deliver, cause, "receiver")
        why = f", until {cause.words}" if cause else "; the trace does not say what for"
        sentences.append(
            f"It was held at its receiver {target} for {words.between(receive, deliver)}{why}."
        )
        sentences += _listed(run, receive)
        sentences += [text] if cause and (text := _explained(run, axis, cause.legs)) else []
    elif receive >= 0 and deliver < 0:
        wait(int(c.target[copy]), receive, -1, None, "receiver")
        sentences.append(f"It arrived at {target}, and was still held there when the trace ended.")
        sentences += _listed(run, receive)
    if not waits and deliver >= 0 and (release >= 0 or receive >= 0):
        sentences.append("Nothing held it back.")
    struck = _struck(run, axis, spans, copy, send, deliver, peers)
    return Story(sentences + struck, waits)


def _listed(run: RunData, receive: int) -> list[str]:
    """Return what a message that arrived had to wait for, if the trace says it."""
    process, place = int(run.rows.process[receive]), int(run.place[_held(run, receive)])
    last = int(run.bounds[process + 1] - run.bounds[process])
    own: list[str] = []
    others: list[str] = []
    for k in range(place + 1, last):
        row = run.row_at(process, k)
        if run.kinds[int(run.rows.kind[row])] != HELD_FOR:
            break
        same = run.rows.origin[row] == run.rows.origin[receive]
        (own if same else others).append(run.message(row))
    sentences = []
    if others:
        listed = " and ".join(filter(None, [", ".join(others[:-1]), others[-1]]))
        were = "was" if len(others) == 1 else "were"
        sentences.append(f"It lists {listed}, which {were} not delivered to {run.shown[process]}.")
    if own:
        sentences.append(f"{own[0]}, before it on the same channel, was not delivered either.")
    return sentences


def _held(run: RunData, receive: int) -> int:
    """Return the row after which the trace says what a message that arrived waits for.

    It is a row of its own where messages arrive in runs, as at a node.
    """
    rows = run.rows
    kinds = [k for k, kind in enumerate(run.kinds) if kind == HELD]
    same = (
        np.isin(rows.kind, kinds)
        & (rows.process == rows.process[receive])
        & (rows.origin == rows.origin[receive])
        & (rows.mid == rows.mid[receive])
    )
    return int(np.argmax(same)) if same.any() else receive


def _in_lane(run: RunData, send: int, release: int, target: str) -> list[str]:
    """Return that a message waited for its destination alone, if the trace says it."""
    kinds = [k for k, kind in enumerate(run.kinds) if kind == LANE]
    rows = run.rows
    inside = slice(send, release)
    if not np.any(
        np.isin(rows.kind[inside], kinds)
        & (rows.origin[inside] == rows.origin[send])
        & (rows.mid[inside] == rows.mid[send])
    ):
        return []
    why = "it lists more messages than one message carries, or comes behind one that does"
    return [f"It waited in the lane of {target}, for nobody but {target}: {why}."]


def beyond(took: float, least: float) -> str:
    """Return how much of a latency causal order did not require, in a sentence."""
    if not np.isfinite(took) or not np.isfinite(least):
        return ""
    if took - least < max(1.0, 0.001 * took):
        return "No protocol could have delivered it earlier without breaking causal order."
    return (
        f"Causal order alone would have allowed its delivery after {duration(least)}: "
        f"the other {duration(took - least)} are what the protocol added."
    )


class _Words:
    """Points and lengths of an axis in words."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis

    def at(self, row: int) -> str:
        return self.place(float(self._axis.x[row]))

    def place(self, x: float) -> str:
        return duration(x) if self._axis.name == "time" else f"row {x:.0f}"

    def between(self, a: int, b: int) -> str:
        length = float(self._axis.x[b] - self._axis.x[a])
        if self._axis.name == "time":
            return duration(length)
        return "1 row" if length == 1 else f"{length:,.0f} rows"


def _has(run: RunData, kind: int) -> bool:
    return bool((run.rows.kind == kind).any())


def _cause(run: RunData, causality: Causality, begin: int, end: int, send: int) -> Cause | None:
    """Return what happened directly before the end of a wait, if it can be its cause."""
    row = arrival_before(run, end, int(run.place[begin]))
    if row < 0:
        return _predecessor(run, causality, begin, end, send)
    who = run.shown[int(run.rows.process[row])]
    about = run.message(row) if run.rows.origin[row] >= 0 else ""
    kind = run.kinds[int(run.rows.kind[row])]
    if kind in _PACKETS:
        peer = run.rows.peers[run.rows.first[row] : run.rows.first[row + 1]]
        other = run.shown[int(peer[0])] if len(peer) else "somebody"
        words = _PACKETS[kind].format(message=about or "a message", peer=other)
        return Cause(row, words, behind(run, row))
    if not about:
        return Cause(row, f"something arrived at {who}", [])
    sent = _send_of(run, row)
    if sent >= 0 and sent != send and causality.chain(sent, send) is not None:
        return Cause(row, f"{about}, which happened before it, arrived at {who}", [])
    return Cause(row, f"{about} arrived at {who}", [])


def _predecessor(
    run: RunData, causality: Causality, begin: int, end: int, send: int
) -> Cause | None:
    """Return the predecessor that a message waited for at its receiver, a little before its end.

    The clock of a live node goes on between an arrival and what follows from it.
    """
    row = arrival_before(run, end, int(run.place[begin]), at_once=False)
    sent = _send_of(run, row) if row >= 0 else -1
    if sent < 0 or sent == send or run.rows.kind[begin] != RECEIVED:
        return None
    if causality.chain(sent, send) is None:
        return None
    who = run.shown[int(run.rows.process[row])]
    return Cause(row, f"{run.message(row)}, which happened before it, arrived at {who}", [])


def _waited(run: RunData, begin: int, end: int) -> bool:
    """Tell whether anything arrived during a wait that could have ended it."""
    return arrival_before(run, end, int(run.place[begin]), at_once=False) >= 0


def _explained(run: RunData, axis: Axis, legs: list[Leg]) -> str:
    """Return why a packet did not come earlier, in a sentence."""
    words = _Words(axis)
    parts = []
    for leg, earlier in pairwise(legs):
        who = run.shown[int(run.rows.process[leg.departure])]
        source = run.shown[int(run.rows.process[earlier.departure])]
        parts.append(
            f"{who} sent the {leg.words} at {words.at(leg.departure)}, "
            f"when the {earlier.words} arrived from {source}"
        )
    return "; ".join(parts) + "." if parts else ""


def _send_of(run: RunData, row: int) -> int:
    copy = int(run.copies.of_row[row])
    return -1 if copy < 0 else int(run.copies.send[copy])


def _about(run: RunData, copy: int, kinds: tuple[str, ...]) -> Any:
    """Return the rows of some kinds that tell of a copy."""
    numbers = [k for k, kind in enumerate(run.kinds) if kind in kinds]
    if not numbers:
        return np.array([], np.int64)
    send, target = int(run.copies.send[copy]), int(run.copies.target[copy])
    rows = run.rows
    hits = np.flatnonzero(
        np.isin(rows.kind, numbers)
        & (rows.origin == rows.origin[send])
        & (rows.mid == rows.mid[send])
    )
    return np.array(
        [r for r in hits.tolist() if target in rows.peers[rows.first[r] : rows.first[r + 1]]],
        np.int64,
    )


def _repeated(run: RunData, copy: int, left: int, came: int) -> str:
    """Return how often a copy was lost and sent again on its way, in words."""
    again = [r for r in _about(run, copy, ("retransmit",)).tolist() if left < r < came]
    lost = [r for r in _about(run, copy, ("drop",)).tolist() if r < came]
    if not again and not lost:
        return ""
    times = {0: "never", 1: "once", 2: "twice"}
    gone = times.get(len(lost), f"{len(lost)} times")
    repeated = times.get(len(again), f"{len(again)} times")
    return f"On the way it was lost {gone}, and sent again {repeated}."


def _lost(run: RunData, copy: int) -> str:
    lost = _about(run, copy, ("drop",))
    return (
        f"The network lost it {len(lost)} times."
        if len(lost) > 1
        else ("The network lost it." if len(lost) else "")
    )


def _struck(
    run: RunData, axis: Axis, spans: list[Span], copy: int, begin: int, end: int, peers: set[int]
) -> list[str]:
    """Return the faults that were in force at those concerned while the copy was under way."""
    ends = {int(run.copies.source[copy]), int(run.copies.target[copy])} | peers
    low = float(axis.x[begin])
    high = float(axis.x[end]) if end >= 0 else axis.end
    words = _Words(axis)
    sentences = []
    for span in spans:
        if span.process not in ends or span.low > high or span.high < low:
            continue
        until = f"until {words.place(span.high)}" if span.end >= 0 else "until the end"
        what = WORDS.get(span.kind, f"suffered a fault ({shown(span.kind)})")
        who = run.shown[span.process]
        sentences.append(f"Meanwhile {who} {what}, from {words.place(span.low)} {until}.")
    return sentences[:4]
