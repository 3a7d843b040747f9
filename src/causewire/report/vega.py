"""The plotting library: its runtime for the page, and figures as files.

`vl_convert` is imported when a figure is made, and not before.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from .charts import Spec

__all__ = ["runtime", "script_json", "write_pictures"]

_VERSION = "6.4"
"""Of Vega-Lite."""


@cache
def runtime() -> str:
    """Return the JavaScript that draws specifications on a page, which defines `vegaEmbed`."""
    import vl_convert

    text: str = vl_convert.javascript_bundle(vl_version=_VERSION)  # type: ignore[call-arg]
    return text.replace("</script", "<\\/script")


def write_pictures(spec: Spec, folder: Path, name: str) -> None:
    """Write a figure as NAME.svg and NAME.png."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec, vl_version=_VERSION)
    (folder / f"{name}.svg").write_text(_numbered(svg), encoding="utf-8")
    (folder / f"{name}.png").write_bytes(
        vl_convert.vegalite_to_png(spec, vl_version=_VERSION, scale=2)
    )


def _numbered(svg: str) -> str:
    """Return a picture with names that do not depend on how many were drawn before it."""
    names = dict.fromkeys(re.findall(r"\bclip\d+\b", svg))
    numbers = {name: f"clip{number}" for number, name in enumerate(names, 1)}
    return re.sub(r"\bclip\d+\b", lambda found: numbers[found[0]], svg)


def script_json(value: object) -> str:
    """Return a value as JSON that can stand in a script element."""
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c")
