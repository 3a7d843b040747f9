"""What `adaptive` keeps, as plain values, and back (`saved`).

Everything is saved in the order in which it is kept, since the order of lists, parts and news
follows from it: an endpoint that was restored does exactly what the original would have done.

    saved       the past with its stamps, who knows each item, who gets which news; lanes;
                lists of messages in flight; parts that came ahead; messages that wait here;
                what is void; what aliases stood for
    computed    the index of lanes' entries by key, how many needs of a message are not met
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .adaptive import Adaptive
from .adaptive_held import RunBuffer
from .adaptive_packets import AdaptiveMessage, Dest, Entries, Entry
from .adaptive_past import Past
from .adaptive_peer import AdaptivePeer, Listing, Waiting
from .run import MessageRun

__all__ = [
    "newest_from",
    "restore_adaptive",
    "restore_adaptive_peer",
    "save_adaptive",
    "save_adaptive_peer",
    "untaken",
]

_new = tuple.__new__


def untaken(endpoint: Adaptive) -> bool:
    """Return whether there is anything that the driver has not taken."""
    return bool(endpoint._burst or endpoint._due)


def newest_from(endpoint: Adaptive, name: str) -> int:
    """Return the number of the newest message of a process that was held here, or 0."""
    return endpoint._held._newest.get(name, 0)


# -- what is kept for a peer ------------------------------------------------------------


def save_adaptive_peer(peer: AdaptivePeer) -> list[Any]:
    """Return what is kept for a peer in addition to its columns."""
    return [
        peer.upto,
        peer.posted,
        peer.provisional,
        peer.alias,
        [[w.mid, w.group, list(w.rest), w.parts, w.part, w.late] for w in peer.lane],
        [[mid, s.group, s.parts, s.entries, s.late] for mid, s in peer.sent.items()],
        _pairs(peer.news),
        peer.unseen,
        peer.number,
        list(peer.parts.items()),
    ]


def restore_adaptive_peer(peer: AdaptivePeer, saved: list[Any]) -> None:
    """Do the reverse."""
    peer.upto, peer.posted, peer.provisional, alias, lane, sent, news, unseen, *more = saved
    peer.alias = tuple(alias) if alias else None
    for mid, group, rest, parts, part, late in lane:
        waiting = Waiting(mid, tuple(group), _entries(rest))
        waiting.parts, waiting.part, waiting.late = [*_entries(parts)], part, [*_entries(late)]
        peer.lane.append(waiting)
    for mid, group, parts, entries, late in sent:
        lists = _entries(parts), _entries(entries), [*_entries(late)]
        peer.sent[mid] = Listing(tuple(group), *lists)
    peer.news = _by_pair(news)
    peer.unseen = _entries(unseen)
    peer.number, ahead = more
    peer.parts = {mid: [*map(_entries, parts)] for mid, parts in ahead}


# -- the rest ---------------------------------------------------------------------------


def save_adaptive(endpoint: Adaptive, index: Callable[[Any], int]) -> list[Any]:
    """Return what an endpoint keeps apart from its peers.

    Args:
        endpoint: The endpoint.
        index: Returns the index of a payload.
    """
    indexed = [[*pair, [[*key] for key in waiting]] for pair, waiting in endpoint._indexed.items()]
    return [
        _past(endpoint._past),
        _held(endpoint._held, index),
        indexed,
        list(endpoint._open.items()),
        list(endpoint._copies.items()),
        endpoint._void,
        [endpoint._aliased, endpoint._over, endpoint._dropped, endpoint._unmet],
    ]


def restore_adaptive(endpoint: Adaptive, payloads: list[Any], saved: list[Any]) -> None:
    """Do the reverse; the peers are there already."""
    past, held, indexed, groups, copies, void, aliases = saved
    _restore_past(endpoint._past, *past)
    _restore_held(endpoint._held, payloads, *held)
    lanes = {(name, w.mid): w for name, peer in endpoint._peers.items() for w in peer.lane}
    for origin, dest, keys in indexed:
        endpoint._indexed[origin, _dest(dest)] = {
            (listed, name, mid): lanes[name, mid] for listed, name, mid in keys
        }
    endpoint._open = {tuple(group): mid for group, mid in groups}
    endpoint._copies = {mid: count for mid, count in copies}  # noqa: C416 - lists of two
    endpoint._void = dict(void)
    endpoint._aliased, endpoint._over, dropped, unmet = aliases
    endpoint._dropped, endpoint._unmet = dict(dropped), dict(unmet)


def _past(past: Past) -> list[Any]:
    items = []
    item = past._end.next
    while item is not past._end:
        items.append([item.origin, item.dest, item.mid, item.stamp, sorted(item.knowing)])
        item = item.next
    owed = [
        [*pair, [[peer, *due] for peer, due in peers.items()]] for pair, peers in past._owed.items()
    ]
    return [past.stamp, items, owed, _pairs(past._settled)]


def _restore_past(
    past: Past, stamp: int, items: list[Any], owed: list[Any], settled: list[Any]
) -> None:
    for origin, dest, mid, at, knowing in items:
        past.stamp = at - 1
        past.put(origin, _dest(dest), mid, set(knowing))
    past.stamp = stamp
    for origin, dest, peers in owed:
        due = {peer: (mid, listing) for peer, mid, listing in peers}
        past._owed[origin, _dest(dest)] = due
    past._settled = _by_pair(settled)


def _held(held: RunBuffer, index: Callable[[Any], int]) -> list[Any]:
    messages = [
        [source, mid, m[2], index(m[3]), m[4], m[5]] for (source, mid), m in held._messages.items()
    ]
    behind = [
        [source, mid, list(run.mids[at + 1 :]), list(map(index, run.payloads[at + 1 :]))]
        for (source, mid), (run, at) in held._runs.items()
    ]
    queues = [[origin, [[*need] for need in queue]] for origin, queue in held._queues.items()]
    return [messages, behind, queues, held._newest]


def _restore_held(
    held: RunBuffer,
    payloads: list[Any],
    messages: list[Any],
    behind: list[Any],
    queues: list[Any],
    newest: dict[str, int],
) -> None:
    for source, mid, pid, k, dests, entries in messages:
        fields = ("msg", mid, pid, payloads[k], tuple(dests), _entries(entries))
        held._messages[source, mid] = _new(AdaptiveMessage, fields)
    for source, mid, mids, indexes in behind:
        first = held._messages[source, mid]
        run = MessageRun([mid, *mids], first[2], [first[3], *[payloads[k] for k in indexes]])
        held._runs[source, mid] = run, 0
        held._behind += len(mids)
    for origin, queue in queues:
        held._queues[origin] = [(needed, source, mid) for needed, source, mid in queue]
        for _, source, mid in queue:
            held._missing[source, mid] = held._missing.get((source, mid), 0) + 1
    held._newest = dict(newest)


# -- lists that were tuples ---------------------------------------------------------------


def _dest(dest: Any) -> Dest:
    return dest if isinstance(dest, str) else tuple(dest)


def _entries(entries: Iterable[Any]) -> Entries:
    return tuple([(origin, _dest(dest), mid) for origin, dest, mid in entries])


def _pairs(numbers: dict[tuple[str, Dest], int]) -> list[Entry]:
    return [(*pair, mid) for pair, mid in numbers.items()]


def _by_pair(saved: Iterable[Any]) -> dict[tuple[str, Dest], int]:
    return {(origin, _dest(dest)): mid for origin, dest, mid in saved}
