"""Every mistake that was put back in is found, and nothing where there is none."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from causewire import protocols
from causewire.check import check
from causewire.core.errors import LocalProtocolError
from causewire.trace import trace_of
from causewire.verify import (
    MUTANTS,
    PROPERTIES,
    NetworkModel,
    Result,
    SearchOptions,
    Setup,
    Unit,
    check_unit,
    find,
    parse,
)
from causewire.verify.mutants import Mutant

SHORTEST = {
    "csps-permits-ignored": ("causal order", 5),
    "csps-ids-from-zero": ("causal order", 3),
    "csps-unbound-name": ("error: NameError", 3),
    "csps-early-permits-dropped": ("undelivered", 8),
    "csps-upcall-first": ("causal order", 4),
    "csps-one-pid": ("undelivered", 7),
    "csps-receivers-forgotten": ("undelivered", 6),
    "csps-strict-acks": ("error: KeyError", 6),
    "csps-multicast-unflagged": ("causal order", 4),
    "csps-permit-before-acks": ("causal order", 5),
    "csps-oldest-only": ("causal order", 8),
    "sps-permits-ignored": ("causal order", 5),
    "sps-ids-from-zero": ("causal order", 3),
    "sps-u2-not-maintained": ("undelivered", 6),
    "sps-m2-below-window": ("error: IndexError", 10),
    "sps-u2-not-advanced": ("undelivered", 10),
    "sps-last-only": ("causal order", 4),
    "sps-flag-without-receiver": ("causal order", 5),
    "sps-unsent-not-counted": ("causal order", 9),
    "sps-early-permits-dropped": ("undelivered", 8),
    "sps-upcall-first": ("causal order", 4),
    "sps-self-through-network": ("causal order", 5),
    "sps-own-copy-only": ("causal order", 6),
    "cykas-clears-new-bits": ("causal order", 17),
    "cykas-yct-acknowledged": ("error: RemoteProtocolError", 8),
    "cykas-yct-unguarded": ("error: RemoteProtocolError", 5),
    "mf-footnote-4": ("causal order", 3),
    "rst-dests-missing": ("causal order", 4),
    "rst-upcall-first": ("causal order", 4),
    "ks-upcall-first": ("causal order", 4),
    "ks-own-channel-skipped": ("causal order", 3),
    "bss-twice": ("duplicate", 3),
    "bss-upcall-first": ("causal order", 3),
    "newtop-without-nulls": ("undelivered", 3),
    "pak-upcall-first": ("causal order", 3),
    "pak-small-modulus": ("causal order", 4),
    "pak-credit-small-modulus": ("causal order", 6),
    "pak-credit-anonymous-acks": ("error: RemoteProtocolError", 10),
    "pak-nak-counts-modulo-k": ("error: RemoteProtocolError", 21),
    "csps-runs-unflagged": ("causal order", 7),
    "sps-runs-unflagged": ("causal order", 7),
    "csps-run-first-permit": ("causal order", 14),
    "csps-departure-permitted": ("causal order", 11),
    "csps-departure-stuck": ("undelivered", 10),
    "sps-departure-permitted": ("causal order", 13),
    "sps-departure-released": ("causal order", 8),
    "sps-departure-stuck": ("undelivered", 10),
    "csps-unfenced": ("causal order", 7),
    "sps-unfenced": ("causal order", 7),
    "csps-still-waiting": ("left over", 4),
}
"""What is found in each, and in how many steps at least (in the program that it names)."""

KNOWN_BAD = {
    # protocol, program, property: what is found, and in how many steps
    ("unordered", "0>1,1; 1>", "causal order"): 3,
    ("fifo", "0>2,1; 1>2; 2>", "causal order"): 5,
    ("cykas-secret-sends", "0>1; 1>2,0; 2>1,0", "causal order"): 8,
    ("cykas-as-printed", "0>1,1; 1>", "undelivered"): 4,
    ("cykas-as-printed", "0>2,1,2,1,2; 1>; 2>1", "causal order"): 17,
}


@cache
def checked(protocol: str, of: str) -> Result:
    """What comes of a protocol in the program and on the network of a mutant."""
    mutant = MUTANTS[of]
    program = parse(mutant.program)
    setup = replace(mutant.setup, protocol=find(protocol))
    return check_unit(Unit(setup, program, SearchOptions(engine="python")))


def test_every_mutant_has_its_shortest_run() -> None:
    assert MUTANTS.keys() == SHORTEST.keys()


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mistake_is_found(name: str) -> None:
    found = checked(name, name).violation
    assert found is not None
    kind, steps = SHORTEST[name]
    assert found.kind.startswith(kind)
    assert len(found.steps) == steps


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_without_the_mistake_nothing_is_found(mutant: Mutant) -> None:
    result = checked(mutant.of, mutant.name)
    assert result.complete
    assert result.violation is None


@pytest.mark.parametrize("name", MUTANTS)
def test_the_check_of_traces_agrees(name: str) -> None:
    """Judged from the rows alone, the run violates causal order if that is what was found."""
    mutant = MUTANTS[name]
    found = checked(name, name).violation
    assert found is not None
    report = check(trace_of(found.counterexample(mutant.setup).events(), name))
    assert report.ordered == (found.kind != "causal order")
    assert bool(report.duplicates) == (found.kind == "duplicate")
    assert report.undelivered or found.kind != "undelivered"
    assert not report.bad


@pytest.mark.parametrize(("protocol", "program", "kind"), KNOWN_BAD)
def test_known_bads_are_found(protocol: str, program: str, kind: str) -> None:
    parsed = parse(program)
    setup = Setup(protocol, len(parsed))
    how = SearchOptions(engine="python", properties=(kind,))
    found = check_unit(Unit(setup, parsed, how)).violation
    assert found is not None
    assert found.kind == kind
    assert len(found.steps) == KNOWN_BAD[protocol, program, kind]


@pytest.mark.parametrize("protocol", ["cykas", "csps", "sps"])
def test_where_cykas_as_printed_breaks_causal_order_the_others_do_not(protocol: str) -> None:
    """Five messages of one process: past the bound of the published check (ERRATA 5.2)."""
    parsed = parse("0>2,1,2,1,2; 1>; 2>1")
    result = check_unit(Unit(Setup(protocol, 3), parsed))
    assert result.complete
    assert result.violation is None


# -- the table ------------------------------------------------------------------------


def test_mutants_are_found_by_name_and_are_not_registered() -> None:
    for name, mutant in MUTANTS.items():
        assert find(name) == mutant.protocol
        assert find(name).name == name
        with pytest.raises(LocalProtocolError, match=name):
            protocols.describe(name)
    assert find("csps") is protocols.describe("csps")


def test_a_mutant_is_its_protocol_but_for_the_mistake() -> None:
    """Everything that a driver looks at is that of the protocol; only the endpoint differs."""
    for mutant in MUTANTS.values():
        right = protocols.describe(mutant.of)
        same = replace(mutant.protocol, name=right.name, summary=right.summary)
        assert same != right
        assert replace(same, endpoint=right.endpoint) == right.with_options(**mutant.options)


NEVER_ANSWERED = "0>1; 1>@2 0"

WHERE_FOUND = {
    # property: a protocol and a program in which it alone is judged, and found violated
    "causal order": ("unordered", "0>1,1; 1>"),
    "FIFO order": ("unordered", "0>1,1; 1>"),
    "duplicate": ("bss-twice", "0>1; 1>"),
    "undelivered": ("cykas-as-printed", "0>1,1; 1>"),
    "unsent": ("csps", NEVER_ANSWERED),
    "left over": ("cykas-as-printed", "0>1,1; 1>"),
}


@pytest.mark.parametrize("kind", PROPERTIES)
def test_every_property_can_be_violated(kind: str) -> None:
    name, program = WHERE_FOUND[kind]
    parsed = parse(program)
    network = NetworkModel(duplicates=1) if kind == "duplicate" else NetworkModel()
    setup = Setup(find(name), len(parsed), network)
    options = SearchOptions(engine="python", properties=(kind,))
    found = check_unit(Unit(setup, parsed, options)).violation
    assert found is not None
    assert found.kind == kind
    repaired = MUTANTS[name].of if name in MUTANTS else "csps"
    setup = Setup(repaired, len(parsed), network)
    right = parse("0>1; 1>@1 0") if kind == "unsent" else parsed
    assert check_unit(Unit(setup, right, options)).violation is None
