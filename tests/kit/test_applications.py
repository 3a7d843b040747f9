"""Four applications on the kit come through failures; `campaigns.applications.matrix` has all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from campaigns.applications import matrix

CELLS = [
    ("replicated_set", "partitioned"),
    ("chat", "restarted"),
    ("jobs", "killed"),
    ("service", "frozen"),
]


@pytest.mark.slow
def test_applications_end_as_they_should_whatever_happened_to_one_process() -> None:
    async def main() -> list[tuple[str, float]]:
        cells = [
            matrix.play(application, fault, give_up=1.5, length=3.0, size=4)
            for application, fault in CELLS
        ]
        return await asyncio.gather(*cells)

    assert [wrong for wrong, _ in asyncio.run(main())] == [""] * len(CELLS)


def answer(state: Any, acted: int = 0, errors: dict[str, int] | None = None) -> dict[str, Any]:
    return {"state": state, "acted": acted, "errors": errors or {}, "given_up": 0}


@pytest.mark.parametrize(
    ("application", "right", "wrong"),
    [
        ("replicated_set", [["a-1", "b-0"], ["a-1", "b-0"]], [["a-1", "b-0"], ["a-1"]]),
        ("replicated_set", [["a-1", "b-0"], ["a-1", "b-0"]], [["a-1"], ["a-1"]]),
        (
            "chat",
            [["a says 0", "a says 1", "b says 0"], ["b says 0", "a says 0", "a says 1"]],
            [["a says 1", "a says 0", "b says 0"], ["b says 0", "a says 0", "a says 1"]],
        ),
        (
            "chat",
            [["a says 0", "a says 1", "b says 0", "b answers to a says 0"]] * 2,
            [["b answers to a says 0", "a says 0", "a says 1", "b says 0"]] * 2,
        ),
        (
            "chat",
            [["a says 0", "a says 1", "b says 0"]] * 2,
            [["a says 0", "a says 1", "b says 0", "b says 0"]] * 2,
        ),
        ("chat", [["a says 0", "a says 1", "b says 0"]] * 2, [["a says 0", "b says 0"]] * 2),
        ("jobs", [[0, 1], []], [[0], []]),
        ("service", [[], [1, 2]], [[], [1, 3]]),
        ("service", [[], [1, 2]], [[], []]),
    ],
)
def test_the_judges_know_right_from_wrong(
    application: str, right: list[Any], wrong: list[Any]
) -> None:
    judge = matrix.APPLICATIONS[application][2]
    acted = {"a": 2, "b": 1}
    for states, expected in ((right, True), (wrong, False)):
        answers = {
            name: answer(state, acted[name]) for name, state in zip("ab", states, strict=True)
        }
        assert (judge(answers, ["a", "b"]) == "") is expected


def test_the_kit_saves_more_than_half_of_the_lines() -> None:
    for name, shared in matrix.SHARED.items():
        bare, kit = (matrix.lines_of(matrix.HERE / on / f"{name}.py") for on in ("bare", "kit"))
        assert 2 * kit < bare + matrix.lines_of(matrix.HERE / "bare" / f"{shared}.py")
