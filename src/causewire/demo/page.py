"""The report of the demo: one page that opens offline, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..check import Violation
from ..protocols import describe
from ..report.page import diagram, page, paragraph, section
from ..report.tables import html_table, significant
from ..trace import open_trace
from .judge import Isolation, Judgement
from .stage import DemoNetwork, Freeze, Performance
from .telling import clearest, drawn, told

__all__ = [
    "DIAGRAM",
    "Told",
    "comparison",
    "details",
    "introduction",
    "price",
    "tell",
    "told_freeze",
    "write_page",
]

DIAGRAM = "violation.svg"


class Told(NamedTuple):
    """A violation, told in the words of the chat."""

    violation: Violation
    lines: list[str]


def introduction(network: DemoNetwork) -> str:
    """Return a description of what the demo does."""
    low, high = (1000 * seconds for seconds in network.delay)
    return (
        "Five friends chat, each in a process of its own; every line goes to all others. The "
        f"network between them loses {network.loss:.0%} of the datagrams, sends "
        f"{network.duplicate:.0%} twice, damages {network.corrupt:.0%}, and takes {low:g} to "
        f"{high:g} ms for each."
    )


def tell(performance: Performance, judgement: Judgement) -> Told | None:
    """Return the clearest violation of a chat in words, if there is one."""
    if not judgement.report.examples:
        return None
    violation = clearest(judgement.report.examples, performance.said)
    trace = open_trace(performance.traces)
    return Told(violation, told(violation, performance.said, trace))


def comparison(runs: Sequence[tuple[Performance, Judgement]]) -> list[list[str]]:
    """Return the table in short: a heading, then the measures that matter most."""

    def ms(ns: float) -> str:
        return f"{significant(ns / 1e6, 3)} ms"

    return [
        ["", *(performance.protocol for performance, _ in runs)],
        ["lines read before what they answer", *(f"{j.report.violations:,}" for _, j in runs)],
        ["time until a line is read, mean", *(ms(j.mean_ns) for _, j in runs)],
        ["the least that causal order permits", *(_least(p, j, ms) for p, j in runs)],
        ["bytes added to a line", *(f"{j.metadata:.1f}" for _, j in runs)],
        ["lines lost or read twice", *(_wrong(j) for _, j in runs)],
    ]


def _least(performance: Performance, judgement: Judgement, ms: Callable[[float], str]) -> str:
    return ms(judgement.unavoidable_ns) if describe(performance.protocol).causal else ""


def _wrong(judgement: Judgement) -> str:
    return f"{judgement.report.undelivered + judgement.report.duplicates:,}"


def price(runs: Sequence[tuple[Performance, Judgement]]) -> str:
    """Return a sentence on what causal order costs."""
    (performance, judgement) = runs[-1]
    extra = judgement.mean_ns / judgement.unavoidable_ns - 1
    return (
        f"{performance.protocol} keeps causal order, and a line takes {max(extra, 0):.0%} longer "
        "than the network and causality make unavoidable."
    )


def told_freeze(freeze: Freeze, protocol: str, others: Isolation) -> str:
    """Return what the other friends got done while one of them stood still."""
    begin = (
        f"{freeze.who}'s process stood still for {freeze.lasting:g} seconds in another chat under "
        f"{protocol}. Meanwhile the others "
    )
    if others.median_ns is None:
        return f"{begin}wrote nothing to each other, so this says nothing about {protocol}."
    before = "" if others.before_ns is None else f" (before: {others.before_ns / 1e6:.0f} ms)"
    return (
        f"{begin}read {others.read / others.lines:.0%} of the lines that they wrote to each "
        f"other, {others.median_ns / 1e6:.0f} ms after these were written{before}. "
        f"Then {freeze.who} caught up."
    )


def details(runs: Sequence[tuple[Performance, Judgement]]) -> list[list[str]]:
    """Return the whole table: a heading, then a row for each measure."""
    rows = [["", *(performance.protocol for performance, _ in runs)]]

    def row(what: str, values: list[str]) -> None:
        rows.append([what, *values])

    row("messages, each to four", [f"{j.report.messages:,}" for _, j in runs])
    row("deliveries", [f"{p.totals['delivered']:,}" for p, _ in runs])
    row("violations of causal order", [f"{j.report.violations:,}" for _, j in runs])
    row("delivered twice", [f"{j.report.duplicates:,}" for _, j in runs])
    row("never delivered", [f"{j.report.undelivered:,}" for _, j in runs])
    row("latency, mean, ms", [significant(j.mean_ns / 1e6, 3) for _, j in runs])
    row("unavoidable, mean, ms", [significant(j.unavoidable_ns / 1e6, 3) for _, j in runs])
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
    notes: Sequence[str] = (),
) -> None:
    """Write index.html and its figures.

    Args:
        folder: Where to write them.
        runs: The chats and their judgements.
        network: The network between the friends.
        checked_by: Where the traces were checked.
        notes: Further sentences for the result.
    """
    sections = [paragraph(introduction(network))]
    heading, *body = comparison(runs)
    table = html_table(["measure", *heading[1:]], body, "The result")
    sections.append(section("The result", table, *map(paragraph, notes)))
    for performance, judgement in runs:
        story = tell(performance, judgement)
        if story is not None:
            picture = drawn(story.violation, open_trace(performance.traces))
            (folder / DIAGRAM).write_text(picture, encoding="utf-8")
            sections.insert(1, _violation(performance.protocol, story, picture))
            break
    measured = [row for performance, judgement in runs for row in _rows(performance, judgement)]
    if measured and find_spec("vl_convert") is not None:
        from ..report.times import write_times

        sections.append(write_times(measured, folder))
    heading, *body = details(runs)
    table = html_table(["measure", *heading[1:]], body, "In detail")
    counted = "Counted in the traces of the nodes and by the nodes themselves"
    sections.append(
        section("In detail", table, paragraph(f"{counted}; checked {checked_by}.", "small"))
    )
    sections.append(_traces(runs))
    title = " and ".join(performance.protocol for performance, _ in runs)
    question = "Do messages need causal order, and what does it cost?"
    (folder / "index.html").write_text(
        page(
            f"A chat under {title}",
            question,
            escape(f"{_broken(runs[0])} {price(runs)}"),
            sections,
            good=runs[-1][1].report.ordered,
        ),
        encoding="utf-8",
    )


def _broken(run: tuple[Performance, Judgement]) -> str:
    performance, judgement = run
    number = judgement.report.violations
    if not number:
        return f"This time {performance.protocol} was lucky."
    return f"Under {performance.protocol}, {number:,} lines were read before what they answer."


def _rows(performance: Performance, judgement: Judgement) -> list[dict[str, Any]]:
    """Return the measurements of a chat, which the pipeline may have made already."""
    if judgement.row is not None:
        return [judgement.row]
    if find_spec("numba") is None or find_spec("pyarrow") is None:
        return []
    from ..metrics import measure

    return [run.summary() for run in measure(open_trace(performance.traces))]


def _violation(protocol: str, story: Told, picture: str) -> str:
    lines = [line.strip().split("  ", 1) for line in story.lines]
    steps = [f"<li><span>{escape(at)}</span> {escape(what)}</li>" for at, what in lines]
    return section(
        f"What {protocol} did",
        "\n".join(['<ol class="story">', *steps, "</ol>"]),
        diagram(picture, f"In the words of the check: {story.violation}.", DIAGRAM),
    )


def _traces(runs: Sequence[tuple[Performance, Judgement]]) -> str:
    links = [
        f"{escape(performance.protocol)}: {', '.join(_links(performance))}"
        for performance, _ in runs
    ]
    look = "<code>causewire explore</code> and one of these directories shows every message of it."
    return section("The traces", *(f'<p class="small">{line}</p>' for line in [look, *links]))


def _links(performance: Performance) -> list[str]:
    folder = performance.traces
    names = sorted(file.name for file in folder.glob("*.jsonl"))
    return [f'<a href="{folder.name}/{name}">{escape(name)}</a>' for name in names]
