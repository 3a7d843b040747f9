"""Durations have one parser and one meaning; a number without a unit is refused."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.cli.errors import CommandError
from causewire.cli.quantities import nanoseconds
from causewire.durations import DurationError, format_duration, parse_duration
from causewire.sim import Config, Constant, SimulationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0ns", 0), ("5ms", 5_000_000), (" 1.5 s ", 1_500_000_000), ("250us", 250_000)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, expected: int) -> None:
    assert parse_duration(text) == expected == nanoseconds(text, "--latency")


@pytest.mark.parametrize("number", ["5", 5, "0", 0, 1.5])
def test_a_bare_number_is_refused_with_what_to_write(number: object) -> None:
    with pytest.raises(DurationError, match=rf"^{number} .*: write {number}ms or {number}us$"):
        parse_duration(number)


@pytest.mark.parametrize("value", [-1, True, None, "ms", "-5ms", "5 parsecs", "0.1ns", "5 MS"])
def test_other_things_are_no_durations(value: object) -> None:
    with pytest.raises(DurationError, match="is not a"):
        parse_duration(value)


@pytest.mark.parametrize("ns", [0, 1, 999, 1000, 1_500_000, 2_000_000, 60 * 10**9])
def test_what_is_written_is_read_back(ns: int) -> None:
    assert parse_duration(format_duration(ns)) == ns


BARE: list[dict[str, Any]] = [
    {"network": {"latency": 5}},
    {"network": {"latency": {"kind": "constant", "value": 5}}},
    {"network": {"latency": {"kind": "regions", "names": ["a"], "matrix": [[5]]}}},
    {"processes": {"think": 5}},
    {"processes": {"jobs": {"length": {"kind": "exponential", "mean": 5}}}},
    {"faults": [{"kind": "heal", "at": 5}]},
    {"until": 5},
    {"retransmission": 5},
]


@pytest.mark.parametrize("settings", BARE, ids=str)
def test_settings_from_a_file_need_units(settings: dict[str, Any]) -> None:
    with pytest.raises(SimulationError, match=r": 5 is ambiguous: write 5ms or 5us$"):
        Config.from_dict({"protocol": "fifo", **settings})


def test_the_command_line_refuses_a_bare_number_in_the_same_words() -> None:
    with pytest.raises(CommandError, match=r"^--latency: 5 is ambiguous: write 5ms or 5us$"):
        nanoseconds("5", "--latency")


def test_settings_survive_a_round_trip_through_plain_values() -> None:
    config = Config(protocol="csps", retransmission=1_500_000, until=10**9)
    plain = config.to_dict()
    assert plain["retransmission"] == "1500us"
    assert Config.from_dict(plain) == config
    assert config.to_dict(in_nanoseconds=True)["retransmission"] == 1_500_000
    assert Constant(5_000_000) == Constant("5ms")  # type: ignore[arg-type]
