"""What the command says about two starts of a process with a trace file each."""

from __future__ import annotations

from pathlib import Path

from .command_line import CommandLine, row, written


def test_both_files_and_the_remedy_are_named(causewire: CommandLine, tmp_path: Path) -> None:
    written(tmp_path / "one.jsonl", [row("client", 1, "send", "client", 1, "a")])
    written(tmp_path / "two.jsonl", [row("client", 1, "send", "client", 1, "b")])
    done = causewire("check", str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl"))
    assert (done.status, done.out) == (2, "")
    assert str(tmp_path / "one.jsonl") in done.err
    assert str(tmp_path / "two.jsonl") in done.err
    assert "use one trace file for all starts of a process" in done.err
