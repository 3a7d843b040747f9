"""Turn citations of errata into links, in pages and in docstrings, when the site is built."""

from __future__ import annotations

import re
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
