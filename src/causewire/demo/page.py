"""The report of the demo: one page that opens offline, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from ..check import Violation
from ..report.page import page, paragraph, section
from ..report.tables import html_table, significant
from ..trace import open_trace
from .judge import Judgement
from .stage import DemoNetwork, Performance
from .telling import clearest, drawn, told

__all__ = ["PRICE", "Told", "comparison", "introduction", "write_page"]

DIAGRAM = "violation.svg"

PRICE = (
    "Causal order has a price in time: what may depend on something waits for it, at its sender or "
    "at its receiver, and longer where acknowledgements are lost, as they are here."
)


class Told(NamedTuple):
    """A violation, told in the words of the chat."""

    violation: Violation
    lines: list[str]


def introduction(network: DemoNetwork) -> str:
    """Return a description of what the demo does."""
    low, high = (1000 * seconds for seconds in network.delay)
    return (
        "Five friends chat: five processes on this machine, every line to all the others. Between "
        f"them is a network that loses {network.loss:.0%} of all datagrams, sends "
        f"{network.duplicate:.0%} twice, damages {network.corrupt:.0%}, and takes {low:g} to "
        f"{high:g} ms for each. fifo delivers what each sends in order, and no more; a causal "
        "protocol delivers nothing before what it may depend on."
    )


def comparison(runs: Sequence[tuple[Performance, Judgement]]) -> list[list[str]]:
    """Return the table: a heading, then a row for each measure with a column for each run."""
    rows = [["", *(performance.protocol for performance, _ in runs)]]

    def row(what: str, values: list[str]) -> None:
        rows.append([what, *values])

    row("messages, each to four", [f"{j.report.messages:,}" for _, j in runs])
    row("deliveries", [f"{p.totals['delivered']:,}" for p, _ in runs])
    row("violations of causal order", [f"{j.report.violations:,}" for _, j in runs])
    row("delivered twice", [f"{j.report.duplicates:,}" for _, j in runs])
    row("never delivered", [f"{j.report.undelivered:,}" for _, j in runs])
    row("latency, median, ms", [significant(j.median_ns / 1e6, 3) for _, j in runs])
    row("latency, 99th percentile, ms", [significant(j.p99_ns / 1e6, 3) for _, j in runs])
    row("metadata of a message, bytes", [f"{j.metadata:.1f}" for _, j in runs])
    row("datagrams sent", [f"{p.totals['datagrams_out']:,}" for p, _ in runs])
    row("lost by the network", [f"{p.lost:,}" for p, _ in runs])
    row("copies dropped on arrival", [f"{p.copies:,}" for p, _ in runs])
    row("damaged (or early), dropped", [f"{p.damaged:,}" for p, _ in runs])
    return rows


def write_page(
    folder: Path,
    runs: Sequence[tuple[Performance, Judgement]],
    network: DemoNetwork,
    checked_by: str,
) -> Told | None:
    """Write index.html and its figures, and return the violation that it shows, if any."""
    heading, *body = comparison(runs)
    sections = [paragraph(introduction(network)), section("The result")]
    sections += [html_table(heading, body), paragraph(PRICE)]
    sections.append(paragraph(f"Checked {checked_by}.", "small"))
    story = None
    for performance, judgement in runs:
        if judgement.report.examples and story is None:
            trace = open_trace(performance.traces)
            violation = clearest(judgement.report.examples, performance.said)
            story = Told(violation, told(violation, performance.said, trace))
            (folder / DIAGRAM).write_text(drawn(violation, trace), encoding="utf-8")
            sections.append(_violation(performance.protocol, story))
    measured = [judgement.row for _, judgement in runs if judgement.row is not None]
    if measured:
        from ..report.times import write_times

        sections.append(write_times(measured, folder))
    sections.append(_traces(runs))
    title = " and ".join(performance.protocol for performance, _ in runs)
    text = page(f"A chat under {title}", sections)
    (folder / "index.html").write_text(text, encoding="utf-8")
    return story


def _violation(protocol: str, story: Told) -> str:
    said = escape(str(story.violation))
    return section(
        f"One violation under {protocol}",
        f"<pre>{escape(chr(10).join(story.lines))}</pre>",
        f'<figure>\n<img src="{DIAGRAM}" alt="{said}">\n<figcaption>In the words of the check: '
        f'{said}. (<a href="{DIAGRAM}">SVG</a>)</figcaption>\n</figure>',
    )


def _traces(runs: Sequence[tuple[Performance, Judgement]]) -> str:
    links = [
        f"{escape(performance.protocol)}: {', '.join(_links(performance))}"
        for performance, _ in runs
    ]
    return section("The traces", *(f'<p class="small">{line}</p>' for line in links))


def _links(performance: Performance) -> list[str]:
    folder = performance.traces
    names = sorted(file.name for file in folder.glob("*.jsonl"))
    return [f'<a href="{folder.name}/{name}">{escape(name)}</a>' for name in names]
