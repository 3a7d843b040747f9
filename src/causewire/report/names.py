"""Names of processes and runs as people can read them safely.

A trace may come from anywhere, so a name can hold markup, control characters,
characters that reverse the direction of text, or a megabyte of anything. Reports
and the explorer show names only through `shown`, and sentences through `visible`.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["LONGEST", "natural", "shown", "visible"]

LONGEST = 48
"""Characters of a name that are shown; the rest is cut off."""

_SENTENCE = 20_000
"""Characters of a sentence that are shown. The names in it are to be shortened one by one,
with `shown`: this is for what comes from elsewhere."""

_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"})
"""Unicode categories that would not show, or would change how other text shows."""


def shown(name: str) -> str:
    """Return a name as visible text of at most `LONGEST` characters.

    Characters that cannot be seen are written as escapes. A long name keeps its
    beginning and its end, because generated names often differ only there.
    """
    return _cut(name, LONGEST) or "(no name)"


def visible(sentence: str) -> str:
    """Return a sentence with names in it as visible text, cut only if it is immense."""
    return _cut(sentence, _SENTENCE)


def _cut(text: str, most: int) -> str:
    half = most // 2
    if len(text) > most:
        return _escaped(text[:half])[:half] + "…" + _escaped(text[1 - half :])[1 - half :]
    text = _escaped(text)
    return text if len(text) <= most else text[:half] + "…" + text[1 - half :]


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in _INVISIBLE else c for c in text)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts p2 before p10."""
    parts = re.split(r"([0-9]{1,18})", name[:200])
    return tuple((0, int(p), "") if p.isdecimal() and p.isascii() else (1, 0, p) for p in parts)
