"""Answers to clicks: about one event, about two, about violations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..check import Link, MessageId, Report, Violation
from ..report.names import shown
from .causality import Causality, Hop
from .faults import fault_spans
from .held import story
from .run import Axis, RunData
from .times import duration

__all__ = ["counterpart", "described", "event_words", "related", "violations"]


def event_words(run: RunData, axis: Axis, row: int) -> str:
    """Return what a row says, in a short sentence."""
    rows = run.rows
    who = run.shown[int(rows.process[row])]
    kind = run.kinds[int(rows.kind[row])]
    peers = [run.shown[p] for p in rows.peers[rows.first[row] : rows.first[row + 1]].tolist()]
    message = run.message(row) if rows.origin[row] >= 0 else ""
    others = _listed(peers)
    words = {
        "send": f"{who} sends {message} to {others}",
        "release": f"{message} leaves {who} for {others}",
        "receive": f"{message} arrives at {who}",
        "deliver": f"{who} delivers {message}",
        "retransmit": f"{who} sends {message} to {others} again",
        "duplicate": f"{message} arrives at {who} again",
        "drop": f"a packet from {who} to {others} is lost",
        "ack": f"{who} acknowledges {message} to {others}",
        "ack_receive": f"{who} gets the ack of {message} from {others}",
        "permit": f"{who} sends {others} the permit for {message}",
        "permit_receive": f"{who} gets the permit for {message} from {others}",
        "control": f"{who} sends a control packet to {others}",
        "control_receive": f"{who} gets a control packet from {others}",
    }.get(kind)
    if words is None:
        words = f"{who}: {shown(kind)}" + (f" {message}" if message else "")
    if axis.name == "time":
        words += f" at {duration(float(axis.x[row]))}"
    return words


def described(
    run: RunData, axis: Axis, causality: Causality, row: int, copy: int
) -> dict[str, Any]:
    """Return everything about one event, and about the message that it is part of.

    Args:
        run: The run that the event is part of.
        axis: The axis on which places are given.
        causality: The happened-before relation of the run.
        row: The event; -1 stands for the send of the message.
        copy: A copy of the message; -1 if the event is about none.
    """
    if row < 0:
        row = int(run.copies.send[copy])
    past, future = causality.past(row), causality.future(row)
    counts = np.diff(run.bounds)
    before, after = int(past.sum()) - 1, int((counts - future).sum()) - 1
    result: dict[str, Any] = {
        "row": row,
        "copy": copy,
        "process": int(run.rows.process[row]),
        "x": float(axis.x[row]),
        "words": event_words(run, axis, row),
        "past": past.tolist(),
        "future": future.tolist(),
        "past_x": _edge(run, axis, past, -1),
        "future_x": _edge(run, axis, future, 0),
        "before": before,
        "after": after,
        "concurrent": len(run) - before - after - 1,
        "sentences": [],
        "waits": [],
        "copies": [],
    }
    if copy >= 0:
        told = story(run, axis, causality, fault_spans(run, axis), copy)
        result |= {
            "title": run.message(int(run.copies.send[copy])),
            "sentences": told.sentences,
            "waits": told.waits,
            "copies": [
                [int(c), run.shown[int(run.copies.target[c])]]
                for c in np.flatnonzero(run.copies.send == run.copies.send[copy])[:50].tolist()
            ],
            "source": int(run.copies.source[copy]),
            "target": int(run.copies.target[copy]),
            "until": float(axis.ends[copy]),
        }
    else:
        result["title"] = result["words"]
    return result


def _edge(run: RunData, axis: Axis, places: Any, shift: int) -> list[float | None]:
    """Return where on the axis the past ends, or the future begins, at each process."""
    counts = np.diff(run.bounds)
    result: list[float | None] = []
    for process, place in enumerate((places + shift).tolist()):
        fine = 0 <= place < counts[process]
        result.append(float(axis.x[run.row_at(process, place)]) if fine else None)
    return result


def related(run: RunData, axis: Axis, causality: Causality, a: int, b: int) -> dict[str, Any]:
    """Return whether two events are ordered, and by which chain of messages."""
    if a == b:
        return {"relation": "same", "words": "This is the same event.", "chain": []}
    first, second = a, b
    chain = causality.chain(a, b)
    if chain is None:
        first, second = b, a
        chain = causality.chain(b, a)
    names = [_short(run, row) for row in (first, second)]
    if chain is None:
        words = (
            f"{names[0][:1].upper()}{names[0][1:]} and {names[1]} are concurrent: no chain of "
            "messages leads from one to the other."
        )
        return {"relation": "concurrent", "words": words, "chain": []}
    how = _chain_words(run, first, second, chain)
    words = f"{names[0][:1].upper()}{names[0][1:]} happened before {names[1]}. {how}"
    return {
        "relation": "before" if first == a else "after",
        "words": words,
        "chain": [_hop(run, axis, hop) for hop in chain],
    }


def _short(run: RunData, row: int) -> str:
    kind = run.kinds[int(run.rows.kind[row])]
    who = run.shown[int(run.rows.process[row])]
    about = f" of {run.message(row)}" if run.rows.origin[row] >= 0 else ""
    return f"the {shown(kind).replace('_', ' ')}{about} at {who}"


def _chain_words(run: RunData, first: int, second: int, chain: list[Hop]) -> str:
    if not chain:
        return f"Both happened at {run.shown[int(run.rows.process[first])]}, in this order."
    steps = []
    for hop in chain:
        message = run.message(hop.send)
        sender = run.shown[int(run.rows.process[hop.send])]
        target = run.shown[int(run.rows.process[hop.deliver])]
        steps.append(f"{sender} sent {message}, and {target} delivered it")
    if len(steps) > 8:
        steps = [*steps[:4], f"… {len(steps) - 7} more messages …", *steps[-3:]]
    return f"The chain: {'; then '.join(steps)}."


def _hop(run: RunData, axis: Axis, hop: Hop) -> dict[str, Any]:
    return {
        "copy": hop.copy,
        "message": run.message(hop.send),
        "from": int(run.rows.process[hop.send]),
        "to": int(run.rows.process[hop.deliver]),
        "send": float(axis.x[hop.send]),
        "deliver": float(axis.x[hop.deliver]),
    }


def counterpart(run: RunData, copy: int, other: RunData) -> int:
    """Return the copy of another run that stands for the same send; -1 if there is none.

    A replay numbers messages anew, so a send is known by its place among the
    sends of its process.
    """
    source, target = (
        run.processes[int(ends[copy])] for ends in (run.copies.source, run.copies.target)
    )
    if source not in other.processes or target not in other.processes:
        return -1
    mine = np.unique(run.copies.send[run.copies.source == run.copies.source[copy]])
    theirs = np.unique(other.copies.send[other.copies.source == other.processes.index(source)])
    place = int(np.searchsorted(mine, run.copies.send[copy]))
    if place >= len(theirs):
        return -1
    hits = np.flatnonzero(
        (other.copies.send == theirs[place])
        & (other.copies.target == other.processes.index(target))
    )
    return int(hits[0]) if len(hits) else -1


def violations(run: RunData, axis: Axis, report: Report) -> list[dict[str, Any]]:
    """Return the violations of a run that the check explains, and where they are."""
    number = {name: k for k, name in enumerate(run.processes)}
    result = []
    for violation in report.examples:
        if violation.run != run.name:
            continue
        row = _row(run, number[violation.process], violation.seq)
        heirs = [link.message.origin for link in violation.chain[1:]] + [violation.process]
        chain = (
            [
                _message(run, number, link.message, heir, exact=True)["copy"]
                for link, heir in zip(violation.chain, heirs, strict=True)
            ]
            if violation.chain
            else []
        )
        result.append(
            {
                "words": str(_readable(violation)),
                "process": number[violation.process],
                "row": row,
                "x": float(axis.x[row]),
                "first": _message(run, number, violation.first, violation.process),
                "second": _message(run, number, violation.second, violation.process),
                "chain": [copy for copy in chain if copy >= 0],
            }
        )
    return result


def _row(run: RunData, process: int, seq: int) -> int:
    a, b = int(run.bounds[process]), int(run.bounds[process + 1])
    rows = run.by_process[a:b]
    place = int(np.searchsorted(run.rows.seq[rows], seq))
    return int(rows[min(place, len(rows) - 1)])


def _message(
    run: RunData, number: dict[str, int], message: MessageId, target: str, *, exact: bool = False
) -> dict[str, Any]:
    """Return a copy of a message: that for the target, or else any unless it has to be exact."""
    copies = run.copies_of(number[message.origin], message.mid)
    found = copies[run.copies.target[copies] == number[target]]
    if not len(found) and not exact:
        found = copies
    copy = int(found[0]) if len(found) else -1
    return {"copy": copy, "name": f"{shown(message.origin)}:{message.mid}"}


def _readable(violation: Violation) -> Violation:
    """Return a violation with names that can be shown."""

    def named(message: MessageId) -> MessageId:
        return MessageId(shown(message.origin), message.mid)

    return replace(
        violation,
        run=shown(violation.run),
        process=shown(violation.process),
        first=named(violation.first),
        second=named(violation.second),
        chain=tuple(Link(named(k.message), tuple(map(shown, k.to))) for k in violation.chain),
    )


def _listed(names: list[str]) -> str:
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more"]
    if len(names) < 2:
        return "".join(names) or "nobody"
    return ", ".join(names[:-1]) + " and " + names[-1]
