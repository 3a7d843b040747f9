"""The HTML page of a report: one file without scripts that loads nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path

from .plan import ReportError

__all__ = ["page", "paragraph", "picture", "section", "whole"]

_STYLE = """\
body { font: 16px/1.5 Georgia, 'Times New Roman', serif; color: #222; max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
h1, h2, th, td, .small { font-family: Helvetica, Arial, sans-serif; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
figure { margin: 0; } figure img { max-width: 100%; height: auto; }
figcaption, .small { font-size: 0.85rem; color: #444; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top; }
th { vertical-align: bottom; }
th { border-bottom: 1px solid #222; } td { border-bottom: 1px solid #ddd; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
.bad { color: #a00; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; }
               figure, table { break-inside: avoid; } }
"""


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


def paragraph(text: str, kind: str = "") -> str:
    """Return text as HTML, with a paragraph for each part between empty lines."""
    attribute = f' class="{kind}"' if kind else ""
    parts = [part.strip() for part in text.strip().split("\n\n")]
    return "\n".join(f"<p{attribute}>{escape(part)}</p>" for part in parts if part)


def picture(name: str, alternative: str, caption: str) -> str:
    """Return a figure as HTML, with links to its other formats and to its numbers."""
    links = ", ".join(
        f'<a href="{name}.{kind}">{kind.upper()}</a>' for kind in ("svg", "png", "csv")
    )
    return (
        f'<figure>\n<img src="{name}.svg" alt="{escape(alternative)}">\n'
        f"<figcaption>{escape(caption)} ({links})</figcaption>\n</figure>"
    )


def section(title: str, *parts: str) -> str:
    """Return a section with a heading as HTML."""
    return "\n".join([f"<h2>{escape(title)}</h2>", *(part for part in parts if part)])


def page(title: str, sections: Sequence[str]) -> str:
    """Return the whole page as HTML."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_STYLE}</style>",
            "</head>",
            "<body>",
            f"<h1>{escape(title)}</h1>",
            *sections,
            "</body>",
            "</html>",
            "",
        ]
    )
