"""Why messages were not delivered, and whether they could have been.

A protocol that tolerates loss delivers everything in the end, unless links stay cut
or held for good, or processes stay frozen. Then messages sent across such links are
never delivered, and neither are those that wait for them: behind a message that
cannot arrive, for an ack that cannot come back, or for a process that waits itself.
Anything else is a failure of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .config import SimulationConfig
from .links import Links
from .process import Process
from .summary import Undelivered
from .tally import Tally

__all__ = ["explain"]

_EXAMPLES = 3


def explain(
    config: SimulationConfig,
    tally: Tally,
    links: Links,
    processes: Sequence[Process],
    cut_short: bool,
) -> Undelivered | None:
    """Return what was not delivered in a run that is over, and why; None if all was."""
    copies = tally.copies - tally.deliveries
    if not copies:
        return None
    protocol = config.about
    reasons = []
    if cut_short:
        reasons.append(f"the run was ended at {config.until} ns")
    if links.lost and not protocol.tolerates_loss:
        reasons.append(f"{links.lost} packets were lost, and {protocol.name} tolerates no loss")
    if links.duplicated and not protocol.tolerates_duplication:
        reasons.append(f"packets were duplicated, and {protocol.name} tolerates no duplication")
    if protocol.needs_fifo and not config.fifo():
        reasons.append(f"channels were not FIFO, and {protocol.name} needs that")
    if reasons:
        return Undelivered(copies=copies, unavoidable=True, reasons=tuple(reasons))
    lasting = links.timeline.lasting()
    across, stranded, unexplained = _sort_out(tally.undelivered or {}, links, processes)
    if lasting and not unexplained:
        if across:
            reasons.append(f"{across} were sent across links that never came back")
        if stranded:
            reasons.append(f"{stranded} wait for something from across such links")
        return Undelivered(copies=copies, unavoidable=True, reasons=(*lasting, *reasons))
    blocked = [str(entry) for p in processes for entry in p.endpoint.blocked()]
    reasons += blocked[:_EXAMPLES]
    if len(blocked) > _EXAMPLES:
        reasons.append(f"{len(blocked) - _EXAMPLES} more are held back")
    return Undelivered(
        copies=copies,
        unavoidable=False,
        reasons=tuple(reasons) or (f"{protocol.name} holds nothing back, and lost them",),
    )


def _sort_out(
    undelivered: Mapping[tuple[str, str], int], links: Links, processes: Sequence[Process]
) -> tuple[int, int, int]:
    """Return the numbers of undelivered copies: on dead links, waiting for such, unexplained."""
    index = {p.name: p.index for p in processes}
    timeline = links.timeline

    def dead(p: int, q: int) -> bool:
        return timeline.is_cut(p, q) or timeline.is_held(p, q)

    cut_off = _cut_off(processes, [link for link in sorted(links.struck) if dead(*link)])
    across = stranded = unexplained = 0
    for (source, destination), copies in undelivered.items():
        if dead(index[source], index[destination]):
            across += copies
        elif cut_off[source] or cut_off[destination]:
            stranded += copies
        else:
            unexplained += copies
    return across, stranded, unexplained


def _cut_off(processes: Sequence[Process], lost: Sequence[tuple[int, int]]) -> dict[str, bool]:
    """Return which processes wait, directly or not, for something from a dead link.

    `lost` are the dead links on which something was lost: a message, an ack or a
    permit. Both ends of such a link may wait for it.
    """
    cut_off = {p.name: False for p in processes}
    for link in lost:
        for i in link:
            cut_off[processes[i].name] |= not processes[i].endpoint.idle
    waits = {
        p.name: {wait.peer for entry in p.endpoint.blocked() for wait in entry.waits}
        for p in processes
    }
    changed = True
    while changed:
        changed = False
        for name, peers in waits.items():
            if not cut_off[name] and any(cut_off[peer] for peer in peers):
                cut_off[name] = changed = True
    return cut_off
