"""What a process knows of a group, whether it is a member or not."""

from __future__ import annotations

import asyncio

from .entries import Standing, Welcome
from .founding import Founding
from .group import Group
from .parts import Parts

__all__ = ["Place"]


class Place:
    """What is known of a group by its name, whether this process is in it or not."""

    def __init__(self) -> None:
        self.group: Group | None = None
        self.term = 0
        """How many times this incarnation has begun to join."""
        self.left = 0
        """The last of these that ended with a leave."""
        self.answered = asyncio.Event()
        """A seed has sent its state, or that it is not a member."""
        self.tried: dict[str, str] = {}
        """What has become of the last question to each seed."""
        self.welcome: Welcome | None = None
        """The state of the group, when it has arrived."""
        self.reserved = False
        """This process is about to begin the group, without asking anybody."""
        self.founding: Founding | None = None
        """The questions whether nobody is a member, while this process asks them."""
        self.polled = asyncio.Event()
        """All have answered to them."""
        self.seeds: set[str] = set()
        """The names of all that may be members."""
        self.others: set[bytes] = set()
        """The identities of other groups of this name that were noticed."""
        self.greeted: set[str] = set()
        """Who has got a `Hello`, since it was last reached."""
        self.parts = Parts()
        """What has arrived in parts, and is not complete."""
        self.refused: dict[str, str] = {}
        """Why members cannot let this process in."""
        self._entered = 0
        self._last: Group | None = None

    @property
    def present(self) -> bool:
        """Whether this process is a member."""
        return self.group is not None and self.group.joined and self.group.over is None

    @property
    def answers(self) -> str:
        """What has become of the questions to seeds, in words."""
        return "; ".join(
            [
                f"{seed} {self.parts.arrived(seed) or what}"
                for seed, what in sorted(self.tried.items())
            ]
        )

    def enter(self, group: Group) -> None:
        """Note that this process has become a member."""
        self.reserved = False
        self._entered += 1
        self._last = group

    def standing(self, incarnation: int) -> Standing:
        """Return what this process, which is not a member, has of the group."""
        last = self._last
        if last is None:
            return Standing(incarnation, 0, 0, 0, False)
        left = last.over == "left"
        return Standing(incarnation, self._entered, last.generation, last.delivered, left)
