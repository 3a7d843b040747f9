"""The page of the study: its text, with tables made of the results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from causewire.report.numbers import Estimate
from causewire.sim.characteristics import PUBLISHED, characteristics
from causewire.sim.workloads import Deployment

from .parts import title
from .results import ASSUMPTIONS, CAUSAL, LIMITS, PROTOCOLS, Cell, Results

__all__ = ["filled", "tables"]

_FROZEN, _RUNNING = "one is frozen", "nobody is frozen"
_WORKLOADS = {
    "request-reply": "19 clients and a server",
    "uniform": "20 processes, to random others",
    "groups": "20 processes, groups of five",
    "broadcast": "10 processes, to all others",
}


def filled(template: str, blocks: dict[str, str]) -> str:
    """Return the text of the page, with `{{name}}` replaced by blocks.

    Raises:
        KeyError: The template names a block that does not exist.
    """
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda found: blocks[found[1]], template)


def tables(results: Results, about: str) -> dict[str, str]:
    """Return all blocks of the page.

    Args:
        results: What the study has found.
        about: How and when it was run, in a sentence or two.
    """
    return {
        "about": about,
        "runs": _runs(results),
        "workload": _workload(),
        "small": _costs(results.grids("small")),
        "replay": _costs(results.grids("replay")),
        "requests": f"{results.requests:,}",
        "latency": _by_size(results, Cell.stretch),
        "milliseconds": _by_size(results, _mean(lambda row: row["latency_mean_ns"] / 1e6)),
        "tail": _by_size(results, Cell.tail),
        "metadata": _by_size(results, Cell.bits),
        "packets": _by_size(results, _mean(lambda row: 1 + row["control_per_message"])),
        "send-buffer": _by_size(results, _mean(lambda row: row["max_send_buffer"])),
        "receive-buffer": _by_size(results, _mean(lambda row: row["max_receive_buffer"])),
        "computation": _effort(results, "cpu_us_per_message"),
        "state": _effort(results, "state_mean"),
        "assumptions": _assumptions(results),
        "orders": _orders(results),
        "distance": _distance(results),
        "freeze": _freeze(results),
        "limits": "\n".join(f"- {limit.text}" for limit in LIMITS.values()),
        "usable": _usable(results),
        "choice": _choice(results),
        "verdict": _verdict(results),
    }


# -- how numbers look -------------------------------------------------------------------------


def number(value: float) -> str:
    """Return a number with three digits that count."""
    if value >= 999.5:
        return f"{value:,.0f}"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}"


def said(found: Estimate | None) -> str:
    """Return a mean with its error, if that shows in the digits."""
    if found is None:
        return ""
    mean = number(found.mean)
    if not found.error or found.error < 0.01 * abs(found.mean):
        return mean
    return f"{mean} ± {number(found.error)}"


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


# -- tables ----------------------------------------------------------------------------------------


def _mean(of: Callable[[Any], float]) -> Callable[[Cell, str], Estimate | None]:
    return lambda cell, protocol: cell.value(protocol, of)


def _code(name: str) -> str:
    return f"`{name}`"


def _runs(results: Results) -> str:
    rows = []
    for part, found in results.parts.items():
        seeds = len({row["seed"] for row in found})
        failed = sum(row["status"] != "done" for row in found)
        messages = sum(row["deliveries"] or 0 for row in found)
        counts = f"{len(found):,}", str(seeds), f"{messages / 1e6:,.1f}", str(failed)
        rows.append([_code(part), title(part), *counts])
    head = ["part", "what it is about", "runs", "seeds", "messages (million)", "failed"]
    return table(head, rows)


def _workload() -> str:
    found = characteristics(Deployment())
    rows = []
    for row in PUBLISHED:
        value = found[row.key]
        text = f"{value:.0%}" if row.published.endswith("%") else f"{value:.3g}"
        rows.append([row.text, row.published, text, row.source])
    return table(["", "published", "generated", "source"], rows)


def _costs(cells: dict[str, Cell]) -> str:
    head = [
        *("", "protocol", "mean latency (ms)", "/ minimum", "p99 (ms)", "metadata (bits)"),
        *("packets", "send buffer", "receive buffer"),
    ]
    rows = []
    for name, cell in cells.items():
        for protocol in PROTOCOLS:
            if protocol in cell.runs:
                values = [
                    cell.value(protocol, lambda row: row["latency_mean_ns"] / 1e6),
                    cell.stretch(protocol),
                    cell.value(protocol, lambda row: row["latency_p99_ns"] / 1e6),
                    cell.bits(protocol),
                    cell.value(protocol, lambda row: 1 + row["control_per_message"]),
                    cell.value(protocol, lambda row: row["max_send_buffer"]),
                    cell.value(protocol, lambda row: row["max_receive_buffer"]),
                ]
                rows.append([name, _code(protocol), *map(said, values)])
    return table(head, rows)


def _by_size(results: Results, of: Callable[[Cell, str], Estimate | None]) -> str:
    sizes = results.sizes()
    rows = [
        [_code(protocol), *(said(of(cell, protocol)) for cell in sizes.values())]
        for protocol in PROTOCOLS
    ]
    return table(["", *(f"{size:,}" for size in sizes)], rows)


def _effort(results: Results, column: str) -> str:
    sizes = sorted({size for _, size in results.effort})
    rows = []
    for protocol in PROTOCOLS:
        found = [results.effort.get((protocol, size)) for size in sizes]
        rows.append([_code(protocol), *(number(row[column]) if row else "" for row in found)])
    return table(["", *(f"{size:,}" for size in sizes)], rows)


def _distance(results: Results) -> str:
    cells = results.distances()
    shown = [p for p in PROTOCOLS if any(p in cell.runs for cell in cells.values())]
    rows = []
    for (network, load), cell in cells.items():
        least = cell.value(cell.minimum, lambda row: row["latency_mean_ns"] / 1e6)
        stretches = [said(cell.stretch(protocol)) for protocol in shown]
        rows.append([network, str(load), said(least), *stretches])
    return table(["", "requests/s", "minimum (ms)", *map(_code, shown)], rows)


def _assumptions(results: Results) -> str:
    """Return the mean latency for each value of each assumption, over all others."""
    cells = results.assumptions()
    shown = [p for p in CAUSAL if any(p in cell.runs for cell in cells.values())]

    def means(protocol: str, among: Iterable[Cell]) -> list[float]:
        return [found.mean for cell in among if (found := cell.stretch(protocol))]

    rows = []
    for k, text in enumerate(ASSUMPTIONS.values()):
        for value in sorted({key[k] for key in cells}):
            among = [cell for key, cell in cells.items() if key[k] == value]
            found = [means(protocol, among) for protocol in shown]
            rows.append([text, f"{value:g}", *(number(fmean(s)) if s else "" for s in found)])
    every = list(cells.values())
    found = [means(protocol, every) for protocol in shown]
    rows.append(["any", "least", *(number(min(s)) if s else "" for s in found)])
    rows.append(["any", "most", *(number(max(s)) if s else "" for s in found)])
    within = [sum(p in cell.runs and not cell.exceeded(p) for cell in every) for p in shown]
    rows.append(["within the limits", f"of {len(every)}", *map(str, within)])
    return table(["assumption", "value", *map(_code, shown)], rows)


def _orders(results: Results) -> str:
    """Return in how many combinations of assumptions each order of latency is found."""
    cells = results.assumptions().values()
    orders: Counter[tuple[str, ...]] = Counter()
    for cell in cells:
        shown = [p for p in ("adaptive", "sps", "csps", "cykas", "mf") if p in cell.runs]
        orders[tuple(sorted(shown, key=lambda p: _of(cell.stretch(p))))] += 1
    rows = [[", ".join(map(_code, order)), str(many)] for order, many in orders.most_common()]
    return table(["the fastest first", f"combinations, of {len(cells)}"], rows)


def _freeze(results: Results) -> str:
    cells = results.cells("freeze", lambda row: (row["workload"], row["grid"]))
    shown = [p for p in PROTOCOLS if any(p in cell.runs for cell in cells.values())]
    rows = []
    for workload, text in _WORKLOADS.items():
        frozen, running = cells.get((workload, _FROZEN)), cells.get((workload, _RUNNING))
        if frozen is None or running is None:
            continue
        shares = []
        for protocol in shown:
            before = running.value(protocol, lambda row: row["deliveries"])
            after = frozen.value(protocol, lambda row: row["deliveries"])
            shares.append(f"{after.mean / before.mean:.0%}" if after and before else "")
        rows.append([text, *shares])
    return table(["", *map(_code, shown)], rows)


# -- the answer ------------------------------------------------------------------------------------


def _span(values: Iterable[Estimate | None]) -> str:
    means = [value.mean for value in values if value is not None]
    if not means:
        return "not run"
    low, high = number(min(means)), number(max(means))
    return low if low == high else f"{low} to {high}"


def _is_far(scenario: str) -> bool:
    return "three regions" in scenario


def _usable(results: Results) -> str:
    """Return, for each protocol, where it exceeds a limit."""
    sizes = results.sizes()
    others = {
        n: c for n, c in results.scenarios().items() if not n.endswith(" in a zone") or "spans" in n
    }
    near = {name: cell for name, cell in others.items() if not _is_far(name)}
    far = {name: cell for name, cell in others.items() if _is_far(name)}
    rows = []
    for protocol in CAUSAL:
        ran = [size for size, cell in sizes.items() if protocol in cell.runs]
        large = [(n, sizes[n].exceeded(protocol)) for n in ran if sizes[n].exceeded(protocol)]
        reasons = [f"{', '.join(why)}: from {n:,} processes" for n, why in large[:1]]
        slow = [
            size
            for (name, size), row in results.effort.items()
            if name == protocol and row["cpu_us_per_message"] > LIMITS["cpu"].most
        ]
        reasons += [f"{LIMITS['cpu'].name}: from {min(slow):,} processes"] if slow else []
        most = f"{max(ran):,}" if ran else "not run"
        grows = "; ".join(reasons) or "within the limits"
        rows.append([_code(protocol), most, grows, _beyond(near, protocol), _beyond(far, protocol)])
    head = ["", "run with up to", "in a zone, by size", "other scenarios in a data centre"]
    return table([*head, "between regions"], rows)


def _beyond(cells: Mapping[str, Cell], protocol: str) -> str:
    """Return in how many scenarios a protocol exceeds limits, and which limits."""
    ran = [cell for cell in cells.values() if protocol in cell.runs]
    why = [cell.exceeded(protocol) for cell in ran]
    beyond = sum(map(bool, why))
    if not ran:
        return "not run"
    if not beyond:
        return f"within the limits in all {len(ran)}"
    reasons = dict.fromkeys(reason for reasons in why for reason in reasons)
    return f"beyond in {beyond} of {len(ran)} ({', '.join(reasons)})"


def _choice(results: Results) -> str:
    """Return what each protocol costs, over all scenarios."""
    scenarios = results.scenarios()
    near = [cell for name, cell in scenarios.items() if not _is_far(name)]
    far = [cell for name, cell in scenarios.items() if _is_far(name)]
    packets = _mean(lambda row: 1 + row["control_per_message"])
    rows = [
        [
            _code(protocol),
            _span(cell.stretch(protocol) for cell in near),
            _span(cell.stretch(protocol) for cell in far),
            _span(cell.tail(protocol) for cell in near),
            _span(cell.bits(protocol) for cell in scenarios.values()),
            _span(packets(cell, protocol) for cell in scenarios.values()),
        ]
        for protocol in CAUSAL
    ]
    head = ["", "latency / minimum, in a data centre", "... between regions"]
    head += ["p99 / minimum, in a data centre", "metadata (bits per message)", "packets"]
    return table(head, rows)


def _verdict(results: Results) -> str:
    """Return the scenarios, who stays within the limits, who is fastest, who adds least."""
    rows = []
    for name, cell in results.scenarios().items():
        ran = [protocol for protocol in CAUSAL if protocol in cell.runs]
        good = [protocol for protocol in ran if not cell.exceeded(protocol)]
        by_latency = sorted(good, key=lambda p: _of(cell.stretch(p)))
        by_bits = sorted(good, key=lambda p: _of(cell.bits(p)))
        out = [protocol for protocol in ran if protocol not in good]
        rows.append(
            [
                name,
                ", ".join(map(_code, by_latency)) or "none",
                ", ".join(map(_code, by_bits[:1])) or "none",
                ", ".join(map(_code, out)) or "none",
            ]
        )
    head = ["scenario", "within the limits, the fastest first", "least metadata of these"]
    return table([*head, "beyond a limit"], rows)


def _of(found: Estimate | None) -> float:
    return found.mean if found else float("inf")
