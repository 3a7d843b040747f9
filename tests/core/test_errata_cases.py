"""Every case on which a literal reading of a paper fails, on the repaired protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from causewire import protocols
from causewire.testing import Case, load, narrate, replay, shrink

CASES = {path.stem: path for path in sorted((Path(__file__).parent / "cases").glob("*.json"))}


def needs_a_better_network(name: str) -> bool:
    return json.loads(CASES[name].read_text())["corrected_options"] is None


REPAIRABLE = [name for name in CASES if not needs_a_better_network(name)]
NETWORK = [name for name in CASES if needs_a_better_network(name)]


def comes_through(case: Case) -> bool:
    outcome = replay(case)
    if not outcome.ok:
        print(narrate(case))
    return outcome.ok


def test_all_cases_are_here() -> None:
    assert len(CASES) == 50
    assert len(NETWORK) == 2


@pytest.mark.parametrize("name", REPAIRABLE)
def test_case(name: str) -> None:
    case = load(CASES[name])
    assert comes_through(case)
    sent = {entry[3] for entry in case.schedule if entry[0] == "send"}
    sent |= {reaction.name for reaction in case.reactions}
    names = {m.name for m in replay(case).play.network.oracle.messages.values()}
    assert names == sent, "some message of the case was never sent"


@pytest.mark.parametrize("name", NETWORK)
def test_case_that_needs_fifo_channels(name: str) -> None:
    """No repair is possible, but FIFO channels: with them the case comes through."""
    case = load(CASES[name])
    assert protocols.describe(case.protocol).needs_fifo
    assert case.net == "reorder"
    assert comes_through(replace(case, net="fifo"))


@pytest.mark.parametrize(
    ("name", "protocol", "kind"),
    [
        ("cykas_secret_mode_send", "cykas-secret-sends", "causal"),
        ("cykas_alg4_no_try_send", "cykas-as-printed", "undelivered"),
        ("cykas_alg4_six_messages", "cykas-as-printed", "causal"),
        ("cykas_alg4_literal_causal", "cykas-as-printed", "causal"),
    ],
)
def test_known_bads_fail_their_case(name: str, protocol: str, kind: str) -> None:
    """The same schedules do catch the literal readings that the registry keeps."""
    case = replace(load(CASES[name]), protocol=protocol)
    assert kind in replay(case).kinds, narrate(case)


def test_the_unsafety_of_cykas_as_printed_in_six_messages() -> None:
    """Of the counterexample with seven messages, that random runs found, six are needed."""
    case = replace(load(CASES["cykas_alg4_literal_causal"]), protocol="cykas-as-printed")
    small = shrink(case, "causal")
    print(narrate(small))
    assert replay(case).messages == 7
    assert replay(small).messages <= 6


def test_a_case_survives_json() -> None:
    for path in CASES.values():
        case = load(path)
        again = Case.from_json(json.loads(json.dumps(case.to_json())))
        assert again == case
