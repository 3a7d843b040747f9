"""`causewire node`, in a shell pipe."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from causewire.cli import main
from causewire.node import Superseded, UnknownPeer, command

from .cluster import free_ports


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "causewire.node", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "default"},
    )


def test_lines_in_messages_out(tmp_path: Path) -> None:
    here, there = free_ports(2)
    key = tmp_path / "key"
    key.write_text("a key for the two of them\n")
    trace = tmp_path / "bob.jsonl"
    common = ("--key-file", str(key))
    bob = start("--name", "bob", "--listen", f"127.0.0.1:{there}", "--count", "3",
                "--trace", str(trace), *common)  # fmt: skip
    alice = start("--name", "alice", "--listen", f"127.0.0.1:{here}", "--drain", "20",
                  "--peer", f"bob=127.0.0.1:{there}", *common)  # fmt: skip
    out, err = alice.communicate(
        "bob: one\n\nbob,bob: two: or three\nzoe: x\nno colon\n?\nbob: ü\n"
    )
    assert alice.returncode == 2  # two bad lines; the others were sent
    assert out == ""
    assert "no address is known for zoe" in err
    assert "NAME[,NAME...]: TEXT" in err
    out, err = bob.communicate()
    assert bob.returncode == 0
    assert out == "alice: one\nalice: two: or three\nalice: ü\n"
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    assert sum(row["kind"] == "deliver" for row in rows) == 3


def test_undelivered_is_a_failure() -> None:
    (nobody,) = free_ports(1)
    alice = start("--name", "alice", "--peer", f"bob=127.0.0.1:{nobody}", "--drain", "0.2")
    _, err = alice.communicate("bob: is anybody there?\n")
    assert alice.returncode == 1
    assert "not delivered: {'bob': 1}" in err


@pytest.mark.parametrize(
    "words",
    [
        ["--peer", "bob"],
        ["--listen", "0.0.0.0:0"],
        ["--listen", "nowhere"],
        ["--key-file", "/nonexistent"],
        ["--count", "0"],
        ["--name", "a\tb"],
        ["--give-up-after", "10"],
    ],
)
def test_bad_usage_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "--name", "alice", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("causewire node: ")


def test_a_message_that_fails_and_one_to_a_peer_that_is_gone() -> None:
    """That is no bad line: exit status 1. And what happens is told once."""
    (nobody,) = free_ports(1)
    alice = start("--name", "alice", "--peer", f"bob=127.0.0.1:{nobody}", "--events",
                  "--give-up-after", "300ms")  # fmt: skip
    assert alice.stdin is not None
    assert alice.stderr is not None
    alice.stdin.write("bob: is anybody there?\n")
    alice.stdin.flush()
    seen = ""
    while "is gone" not in seen and (line := alice.stderr.readline()):
        seen += line
    _, err = alice.communicate("bob: and now?\n")
    assert alice.returncode == 1
    assert "alice: bob is gone; 1 message to it failed\n" in seen
    assert "bob: left, or given up" in err
    assert "Peer" not in seen + err


def test_a_message_that_fails_is_not_delivered() -> None:
    (nobody,) = free_ports(1)
    alice = start("--name", "alice", "--peer", f"bob=127.0.0.1:{nobody}",
                  "--give-up-after", "300ms")  # fmt: skip
    alice.communicate("bob: is anybody there?\n")
    assert alice.returncode == 1


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--listen", "0.0.0.0:0"], "give --key-file, or --insecure if anybody may read"),
        (["--give-up-after", "10"], "10 has no unit: write 10s or 10min"),
        (["--give-up-after", "-1s"], "'-1s' is not a duration such as 500ms, 10s or 2min"),
    ],
)
def test_errors_name_the_options_of_the_command(
    words: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["node", "--name", "alice", *words]) == 2
    assert what in capsys.readouterr().err


def test_a_port_in_use_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["node", "--name", "alice", "--listen", place]) == 2
    assert capsys.readouterr().err == f"causewire node: {place}: Address already in use\n"


def test_what_the_node_says_is_said_in_options() -> None:
    assert "give --peer NAME=HOST:PORT" in command._in_options(UnknownPeer(["zoe"]))
    said = command._in_options(Superseded("alice", 7))
    assert "--rejoin" in said
    assert "rejoin()" not in said


def test_a_key_file_is_the_key_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file works for a program that reads it and passes `key=` to a node."""
    key = b" \t sixteen random bytes \n"
    (tmp_path / "key").write_bytes(key)
    given: list[bytes | None] = []

    def node(name: str, **settings: Any) -> None:
        given.append(settings["key"])
        raise ValueError("far enough")

    monkeypatch.setattr(command, "Node", node)
    assert main(["node", "--name", "alice", "--key-file", str(tmp_path / "key")]) == 2
    assert given == [key]


def test_a_message_cannot_control_the_terminal() -> None:
    here, there = free_ports(2)
    bob = start("--name", "bob", "--listen", f"127.0.0.1:{there}", "--count", "1")
    alice = start("--name", "alice", "--listen", f"127.0.0.1:{here}", "--drain", "20",
                  "--peer", f"bob=127.0.0.1:{there}")  # fmt: skip
    alice.communicate("bob: \x1b[2Jgone\u202e\n")
    out, _ = bob.communicate()
    assert out == "alice: \\x1b[2Jgone\\u202e\n"
