"""What is added to pages when the site is built.

Citations of errata become links, in pages and in docstrings; and the page about the command line
gets the help text of every command, so that it is complete.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import redirect_stdout, suppress
from typing import Any

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_CITATION = re.compile(rf"ERRATA\s+{_NUMBER}(?:(?:,|,? and| to)\s+{_NUMBER}(?![0-9]))*")
_LINKED_OR_CODE = re.compile(r"<(a|pre|code)\b.*?</\1>|<[^>]+>", re.DOTALL)


def _linked(text: str, to: str) -> str:
    def link(match: re.Match[str]) -> str:
        return f'<a href="{to}#errata-{match[0]}">{match[0]}</a>'

    return _CITATION.sub(lambda found: re.sub(_NUMBER, link, found[0]), text)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Return the HTML of a page with links to docs/errata.md."""
    if page.file.src_uri == "errata.md":
        return html
    to = "../" * page.file.src_uri.count("/") + "errata.html"
    parts, end = [], 0
    for tag in _LINKED_OR_CODE.finditer(html):
        parts += [_linked(html[end : tag.start()], to), tag[0]]
        end = tag.end()
    return "".join([*parts, _linked(html[end:], to)])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page; that of the command line with all help texts."""
    return markdown + all_arguments() if page.file.src_uri == "cli.md" else markdown


def all_arguments() -> str:
    """Return a section with the help text of every command."""
    from causewire.cli import COMMANDS, main

    os.environ["COLUMNS"] = "110"
    parts = ["\n\n## All arguments\n"]
    for command in COMMANDS:
        text = io.StringIO()
        with redirect_stdout(text), suppress(SystemExit):
            main([command, "--help"])
        parts.append(f"### `causewire {command}`\n\n```text\n{text.getvalue().rstrip()}\n```\n")
    return "\n".join(parts)
