"""Every mistake that was put back in is found, and nothing where there is none."""

from __future__ import annotations

from functools import cache

import pytest

from causewire import protocols
from causewire.check import check
from causewire.trace import trace_of
from causewire.verify import (
    MUTANTS,
    PROPERTIES,
    How,
    Network,
    Result,
    Setup,
    Unit,
    check_unit,
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
    "sps-permits-ignored": ("causal order", 5),
    "sps-ids-from-zero": ("causal order", 3),
    "sps-u2-not-maintained": ("undelivered", 7),
    "sps-m2-below-window": ("error: IndexError", 10),
    "sps-u2-not-advanced": ("left over", 13),
    "sps-last-only": ("causal order", 4),
    "sps-flag-without-receiver": ("causal order", 5),
    "sps-unsent-not-counted": ("causal order", 9),
    "sps-early-permits-dropped": ("undelivered", 8),
    "sps-upcall-first": ("causal order", 4),
    "sps-self-through-network": ("causal order", 5),
    "sps-own-copy-only": ("causal order", 9),
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
}
"""What is found in each, and in how many steps at least (in the workload that it names)."""

KNOWN_BAD = {
    # protocol, workload, property: what is found, and in how many steps
    ("unordered", "0>1,1; 1>", "causal order"): 3,
    ("fifo", "0>2,1; 1>2; 2>", "causal order"): 5,
    ("cykas-secret-sends", "0>1; 1>2,0; 2>1,0", "causal order"): 8,
    ("cykas-as-printed", "0>1,1; 1>", "undelivered"): 4,
    ("cykas-as-printed", "0>2,1,2,1,2; 1>; 2>1", "causal order"): 17,
}


@cache
def checked(protocol: str, of: str) -> Result:
    """What comes of a protocol in the workload and on the network of a mutant."""
    mutant = MUTANTS[of]
    workload = parse(mutant.workload)
    setup = Setup(protocol, len(workload), Network(**mutant.network))
    return check_unit(Unit(setup, workload, How(engine="python")))


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
    setup = Setup(name, len(found.workload), Network(**mutant.network))
    report = check(trace_of(found.counterexample(setup).events(), name))
    assert report.ordered == (found.kind != "causal order")
    assert bool(report.duplicates) == (found.kind == "duplicate")
    assert report.undelivered or found.kind != "undelivered"
    assert not report.bad


@pytest.mark.parametrize(("protocol", "workload", "kind"), KNOWN_BAD)
def test_known_bads_are_found(protocol: str, workload: str, kind: str) -> None:
    programs = parse(workload)
    setup = Setup(protocol, len(programs))
    how = How(engine="python", properties=(kind,))
    found = check_unit(Unit(setup, programs, how)).violation
    assert found is not None
    assert found.kind == kind
    assert len(found.steps) == KNOWN_BAD[protocol, workload, kind]


@pytest.mark.parametrize("protocol", ["cykas", "csps", "sps"])
def test_where_cykas_as_printed_breaks_causal_order_the_others_do_not(protocol: str) -> None:
    """Five messages of one process: past the bound of the published check (ERRATA 5.2)."""
    programs = parse("0>2,1,2,1,2; 1>; 2>1")
    result = check_unit(Unit(Setup(protocol, 3), programs))
    assert result.complete
    assert result.violation is None


def test_mutants_are_what_they_say() -> None:
    for name, mutant in MUTANTS.items():
        assert name.startswith(mutant.of)
        assert name not in protocols.names()
        assert protocols.describe(mutant.of).causal
        assert mutant.mistake
    assert {"undelivered", "left over", "duplicate", "causal order"} <= set(PROPERTIES)
