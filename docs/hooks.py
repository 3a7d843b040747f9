"""What is added to pages when the site is built.

Citations of errata become links, in pages and in docstrings; and the page about the command line
gets the help text of every command, so that it is complete. The runs of docs/play.md are recorded
and saved as pages of the explorer.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from causewire.cli import COMMANDS, main

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


def on_post_build(config: Any, **_: Any) -> None:
    """Write the recorded runs of docs/play.md."""
    folder = Path(config["site_dir"]) / "play"
    folder.mkdir(exist_ok=True)
    for name, text in recorded_runs():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")


def recorded_runs() -> Iterator[tuple[str, str]]:
    """Yield the name of each recorded run, and a page of the explorer that shows it."""
    from causewire.explore import Api, Dataset, EndpointStates
    from causewire.explore.saved import saved
    from causewire.sim import Config, simulate
    from causewire.trace import open_trace, open_writer

    def page(path: Path, title: str, replay: str = "") -> str:
        dataset = Dataset(lambda: open_trace(path), title, endpoints=EndpointStates.read(path))
        dataset.load()
        api = Api(dataset)
        if replay:
            api.replay(dataset, 0, replay)
        return saved(api)

    def run(path: Path, **settings: Any) -> Path:
        with open_writer(path) as writer:
            simulate(Config.from_dict({"processes": 4, "workload": "relay", **settings}), writer)
        return path

    frozen = [
        {"kind": "freeze", "at": "20ms", "processes": ["p2"]},
        {"kind": "thaw", "at": "60ms"},
    ]
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = run(folder / "fifo.jsonl", protocol="fifo", messages=60, seed=8)
        yield "violation", page(path, "a run under fifo", "csps")
        path = run(folder / "csps.jsonl", protocol="csps", messages=60, seed=4, faults=frozen)
        yield "frozen", page(path, "p2 is frozen")
        path = folder / "found.jsonl"
        with redirect_stdout(io.StringIO()):
            main(["verify", "--protocol", "sps-unsent-not-counted", "--trace", str(path)])
        yield "counterexample", page(path, "a counterexample")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page; that of the command line with all help texts."""
    return markdown + all_arguments() if page.file.src_uri == "cli.md" else markdown


def all_arguments() -> str:
    """Return a section with the help text of every command."""
    parts = ["\n\n## All arguments\n"]
    for command in COMMANDS:
        text = io.StringIO()
        with patch.dict(os.environ, COLUMNS="110"), redirect_stdout(text), suppress(SystemExit):
            main([command, "--help"])
        parts.append(f"### `causewire {command}`\n\n```text\n{text.getvalue().rstrip()}\n```\n")
    return "\n".join(parts)
