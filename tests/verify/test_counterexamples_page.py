"""docs/counterexamples.md has what the search finds today.

python tests/verify/test_counterexamples_page.py     writes it anew
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from causewire.verify import (
    MUTANTS,
    PROPERTIES,
    Counterexample,
    SearchOptions,
    Setup,
    Unit,
    check_unit,
    parse,
)
from causewire.verify.lasso import find_starvation

PAGE = Path(__file__).parents[2] / "docs" / "counterexamples.md"

KNOWN_BAD = (
    (
        "unordered",
        "delivers on arrival",
        "0>1,1; 1>",
        PROPERTIES,
    ),
    (
        "fifo",
        "keeps the order of each sender, and no more",
        "0>2,1; 1>2; 2>",
        PROPERTIES,
    ),
    (
        "cykas-secret-sends",
        "in secret mode, sends to the sender of the last secret (ERRATA 5.6)",
        "0>1; 1>2,0; 2>1,0",
        PROPERTIES,
    ),
    (
        "cykas-as-printed",
        "Algorithm 4 to the letter: an ack makes nobody look at the buffer (ERRATA 5.1)",
        "0>1,1; 1>",
        PROPERTIES,
    ),
    (
        "cykas-as-printed",
        "the same, judged by causal order alone: one process that sends five messages (ERRATA 5.2)",
        "0>2,1,2,1,2; 1>; 2>1",
        ("causal order",),
    ),
)

HEAD = """\
# Counterexamples

What `causewire verify` finds in protocols that are wrong: the known-bads of the registry, and
*mutants*, protocols with one mistake of the papers put back in (`causewire.verify.MUTANTS`). Each
is a shortest run of the program in its first line. This command prints it again, and writes it as a
trace, as a picture or as a test:

    causewire verify --protocol NAME [--trace run.jsonl] [--draw run.svg] [--regression test_run.py]

In the same programs nothing is found in the protocols without the mistake
(`tests/verify/test_mutants.py`). This page is compared with what is found by
`tests/verify/test_counterexamples_page.py`. Numbers of errata are those that the modules of the
core cite; [verification.md](verification.md) tells what all this means.

Some are found with the driver `runs` alone, which makes the calls that a node makes.
Packets are shown with their fields. `pid` is the message before in the same channel, `per` the flag
that a permit will follow; a `yct` is the permit of Cykas.
"""


def found_in(
    setup: Setup, program: str, properties: tuple[str, ...] = PROPERTIES
) -> Counterexample:
    how = SearchOptions(engine="python", properties=properties)
    violation = check_unit(Unit(setup, parse(program), how)).violation
    assert violation is not None, setup.name
    return violation.counterexample(setup)


def cited(text: str) -> str:
    """The text with each citation of an erratum as a link."""
    return re.sub(r"ERRATA ([0-9.]*[0-9])", r"[ERRATA \1](errata.md#errata-\1)", text)


def section(title: str, what: str, found: Counterexample) -> str:
    kind = found.kind.partition(":")[0]
    what = cited(what)
    steps = f"{what[0].upper()}{what[1:]}. Found: {kind}, after {len(found)} steps."
    return f"### {title}\n\n{steps}\n\n```text\n{found.words()}\n```\n"


def sections() -> Iterator[str]:
    yield HEAD
    yield "## Known-bads\n"
    for name, what, program, properties in KNOWN_BAD:
        setup = Setup(name, len(parse(program)))
        yield section(f"`{name}`", what, found_in(setup, program, properties))
    yield "## Mutants\n"
    for mutant in MUTANTS.values():
        found = found_in(mutant.setup, mutant.program)
        what = mutant.mistake + (f" (ERRATA {mutant.erratum})" if mutant.erratum else "")
        yield section(f"`{mutant.name}`", what, found)
    yield "## Starvation\n"
    lasso = find_starvation("cykas").lasso
    assert lasso is not None
    story = "\n".join(lasso.words())
    yield (
        "`causewire verify --protocol cykas --starvation`: two processes keep sending, and what "
        f"p0\nhas to send is never sent ({cited('ERRATA 5.7')}; Almeida, section 4.3).\n\n"
        f"```text\n{story}\n```\n"
    )


def summary(text: str) -> list[str]:
    """Everything but the runs, of which there may be several that are equally short."""
    lines = text.splitlines()
    steps = [line[:5] for line in lines if re.match(r" *[0-9]+\. ", line)]
    return [line for line in lines if not line.startswith("   ")] + steps


def test_the_page_has_what_is_found() -> None:
    assert summary(PAGE.read_text(encoding="utf-8")) == summary("\n".join(sections()))


if __name__ == "__main__":
    PAGE.write_text("\n".join(sections()), encoding="utf-8")
