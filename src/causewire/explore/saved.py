"""A page with everything in it: one file that needs no server, for a report or a web site.

The page is the same as the one that the server gives out. Its modules become one
script, and instead of asking a server it looks answers up that were collected
here, by asking the same `Api`. That is for small runs: the answer about every
event is part of the file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from importlib.resources import files
from typing import Any

import numpy as np

from ..core.errors import CausewireError
from .api import Api
from .dataset import Dataset

__all__ = ["MOST_CELLS", "SaveError", "bundled", "saved"]

MOST_CELLS = 100_000
"""Rows times processes of a run that is saved."""

_IMPORT = re.compile(r'^import \{ ([^}]*) \} from "\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)
_INSTEAD = {"api.js": "recorded.js"}


class SaveError(CausewireError):
    """A run that is too large for a page of its own."""


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def bundled(start: str = "app.js") -> str:
    """Return the modules of the page as one script, each in a function of its own."""
    done: dict[str, str] = {}

    def add(name: str) -> None:
        name = _INSTEAD.get(name, name)
        if name in done:
            return
        text = _static(name)
        done[name] = ""  # modules do not import one another in circles
        for _, needed in _IMPORT.findall(text):
            add(needed)
        exported = ", ".join(_EXPORT.findall(text))

        def imported(match: re.Match[str]) -> str:
            return f'const {{ {match[1]} }} = modules["{_INSTEAD.get(match[2], match[2])}"];'

        body = re.sub(r"^export ", "", _IMPORT.sub(imported, text), flags=re.MULTILINE)
        del done[name]  # after what it needs
        done[name] = f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n'

    add(start)
    return '"use strict";\nconst modules = {};\n' + "".join(done.values())


def _plain(packed: bytes) -> dict[str, Any]:
    """Return packed arrays as lists that JSON can hold."""
    (length,) = struct.unpack_from("<I", packed)
    header = json.loads(packed[4 : 4 + length])
    arrays = {}
    for name, kind, offset, count in header["arrays"]:
        values = np.frombuffer(packed, f"<{kind}", count, 4 + length + offset)
        if kind == "f4":
            values = np.round(values, 3)
        listed = [
            None if value != value else int(value) if value == int(value) else value
            for value in values.tolist()
        ]
        arrays[name] = [kind, listed]
    return {"facts": header["facts"], "arrays": arrays}


def _collected(api: Api) -> dict[str, Any]:
    """Return the answers to all that a page can ask."""
    answers: dict[str, Any] = {"status": json.loads(api.answer("GET", "status", {}).body)}

    def keep(name: str, d: int, run: int, *values: Any, **query: Any) -> Any:
        asked = {"d": d, "run": run, **{k: v for k, v in query.items() if v is not None}}
        answer = api.answer("GET", name, {k: str(v) for k, v in asked.items()})
        if answer.status != 200:
            raise SaveError(json.loads(answer.body)["error"])
        packed = answer.type != "application/json"
        value = _plain(answer.body) if packed else json.loads(answer.body)
        answers["|".join(map(str, [name, d, run, *values]))] = value
        return value

    for d, dataset in enumerate(api.datasets):
        for run in range(len(answers["status"]["datasets"][d]["runs"])):
            _check_size(dataset, run)
            for name in ("run", "overview", "violations", "latency", "waiting"):
                keep(name, d, run)
            if len(api.datasets) > 1:
                keep("align", d, run, other=1 - d)
            window = keep("window", d, run, control="1")
            if not window["facts"]["exact"]:
                raise SaveError("the run is too crowded to be saved as a page")
            arrays = window["arrays"]
            for copy in arrays["copy"][1]:
                keep("select", d, run, "", copy, copy=copy)
                keep("tell", d, run, "", copy, copy=copy)
                if len(api.datasets) > 1:
                    keep("same", d, run, copy, copy=copy, other=1 - d)
            for row, copy in zip(arrays["event_row"][1], arrays["event_copy"][1], strict=True):
                about = copy if copy >= 0 else None
                keep("select", d, run, row, copy, row=row, copy=about)
                keep("tell", d, run, row, copy, row=row, copy=about)
                keep("step", d, run, row, row=row)
    return answers


def _check_size(dataset: Dataset, run: int) -> None:
    data = dataset.run(run).data
    cells = len(data) * len(data.processes)
    if cells > MOST_CELLS:
        raise SaveError(
            f"a saved page takes {MOST_CELLS:,} rows times processes, and this run has {cells:,}: "
            "export the part that matters as a trace first"
        )


def saved(api: Api) -> str:
    """Return the page as one HTML document.

    Args:
        api: The data sets to show: a trace that has been loaded, and perhaps one
            replay of it, which is then shown below it.

    Raises:
        SaveError: The run is too large.
    """
    data = json.dumps(_collected(api), separators=(",", ":"), ensure_ascii=False)
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    script = bundled()
    style = _static("style.css")
    icon = base64.b64encode(_static("icon.svg").encode()).decode()
    page = _static("index.html")
    page = page.replace('href="icon.svg"', f'href="data:image/svg+xml;base64,{icon}"')
    page = page.replace('src="icon.svg"', f'src="data:image/svg+xml;base64,{icon}"')
    page = page.replace('<link rel="stylesheet" href="style.css">', f"<style>\n{style}</style>")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(chr(10) + style)}'; "
        "img-src data: blob:"
    )
    page = page.replace(
        "<title>", f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<title>', 1
    )
    page = page.replace('<script type="module" src="app.js"></script>\n', "")
    return page.replace(
        "</body>",
        f'<script type="application/json" id="recorded">{data}</script>\n'
        f"<script>{script}</script>\n</body>",
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
