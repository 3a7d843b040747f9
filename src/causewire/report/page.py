"""The HTML page of a report: one file that opens offline and loads nothing.

The question comes first, then the answer in a sentence, then the evidence. Figures
are drawn by the runtime of the plotting library, which is in the page; every one of
them has its numbers as a table, and as CSV.
"""

from __future__ import annotations

import csv
import io
import shutil
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from .charts import Spec
from .names import visible
from .plan import ReportError

__all__ = [
    "csv_link",
    "details",
    "diagram",
    "figure",
    "markup",
    "page",
    "paragraph",
    "section",
    "whole",
    "write_csv",
]

_HINT = (
    "In the figures: point at a mark to read its numbers, click a name in a legend to show only "
    "that line, drag to move, Shift and wheel to zoom, double-click to go back."
)


@contextmanager
def whole(out: Path) -> Iterator[Path]:
    """Yield a directory to write a report to; at the end it replaces `out`.

    Raises:
        ReportError: `out` exists and is not a report, or cannot be written.
    """
    if out.exists() and not (out / "index.html").is_file():
        raise ReportError(f"{out} exists, and is not a report")
    place = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        yield place
        if out.exists():
            shutil.rmtree(out)
        place.rename(out)
    except OSError as error:
        raise ReportError(f"{out} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def write_csv(path: Path, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV, and return its text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return text.getvalue()


def markup(text: str) -> str:
    """Return text as it can stand in HTML: escaped, with everything in it visible."""
    return escape(visible(text))


def paragraph(text: str, kind: str = "") -> str:
    """Return text as HTML, with a paragraph for each part between empty lines."""
    attribute = f' class="{kind}"' if kind else ""
    parts = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    return "\n".join(f"<p{attribute}>{markup(part)}</p>" for part in parts if part)


def csv_link(name: str, text: str) -> str:
    """Return a link that saves a table, which is in the page, as a CSV file."""
    data = b64encode(text.encode()).decode()
    return f'<a download="{escape(name)}" href="data:text/csv;base64,{data}">{escape(name)}</a>'


def details(summary: str, *parts: str) -> str:
    """Return a part of the page that is shown on demand."""
    inside = "\n".join(parts)
    return f"<details>\n<summary>{markup(summary)}</summary>\n{inside}\n</details>"


def figure(name: str, spec: Spec, caption: str, numbers: str) -> str:
    """Return a figure as HTML.

    Args:
        name: What its files are called when they are saved.
        spec: What is drawn.
        caption: What it shows, and where its numbers come from.
        numbers: The same numbers as a table, as HTML.
    """
    from .vega import script_json

    return (
        f'<figure class="chart" data-name="{escape(name)}">\n'
        f'<div class="drawing" role="img" aria-label="{markup(spec["description"])}"></div>\n'
        f"<figcaption>{markup(caption)}</figcaption>\n"
        f'<script type="application/json">{script_json(spec)}</script>\n'
        f"</figure>\n{details('The numbers as a table', numbers)}"
    )


def diagram(svg: str, alternative: str, name: str) -> str:
    """Return a diagram as HTML, with a link that saves it."""
    data = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
    said = markup(alternative)
    saves = f'<a download="{escape(name)}" href="{data}">{escape(name)}</a>'
    return (
        f'<figure class="diagram" role="group" tabindex="0" aria-label="{said}">\n'
        f'<img src="{data}" alt="{said}">\n'
        f"<figcaption>{said} Save: {saves}.</figcaption>\n</figure>"
    )


def section(title: str, *parts: str) -> str:
    """Return a section with a heading as HTML."""
    inside = "\n".join(part for part in parts if part)
    return f"<section>\n<h2>{markup(title)}</h2>\n{inside}\n</section>"


def page(
    title: str, question: str, answer: str, sections: Sequence[str], *, good: bool | None = None
) -> str:
    """Return the whole page as HTML.

    Args:
        title: What the report is about.
        question: What it answers.
        answer: The answer in a sentence or two, as HTML.
        sections: The evidence, as HTML.
        good: Whether the answer is good news, if it is news of that kind.
    """
    body = "\n".join(sections)
    static = files(__package__) / "static"
    kind = {None: "", True: " good", False: " bad"}[good]
    head = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{markup(title)}</title>",
        f"<style>\n{(static / 'report.css').read_text('utf-8')}</style>",
        "</head>",
        "<body>",
        "<header>",
        f'<p class="kicker">{markup(title)}</p>',
        f"<h1>{markup(question)}</h1>",
        f'<p class="answer{kind}">{answer}</p>',
        "</header>",
        "<main>",
    ]
    scripts = []
    if 'class="chart"' in body:
        from .vega import runtime

        head.append(f'<p class="small hint">{_HINT}</p>')
        scripts = [f"<script>{runtime()}</script>"]
        scripts.append(f"<script>\n{(static / 'report.js').read_text('utf-8')}</script>")
    return "\n".join([*head, body, "</main>", *scripts, "</body>", "</html>", ""])
