"""What a transport reports to whoever writes a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..core.endpoint import Blocked, Delivery
from ..core.run import MessageRun

if TYPE_CHECKING:
    from .session import Session

__all__ = ["Observer"]


class Observer(Protocol):
    """Is called for every event in the life of a message, and keeps the Lamport time."""

    clock: int

    def sent(self, mid: int, to: tuple[str, ...], size: int) -> None:
        """Causal send."""

    def released(self, session: Session, run: MessageRun) -> None:
        """The protocol put messages on the network."""

    def arrived(self, session: Session, run: MessageRun) -> None:
        """Messages arrived for the first time."""

    def waiting(self, waits: list[Blocked], labels: dict[str, str]) -> None:
        """Messages have begun to wait for others, here or at their receiver."""

    def delivered(self, deliveries: list[Delivery], labels: dict[str, str]) -> None:
        """Messages were put into the application's queue."""

    def turn(self) -> None:
        """The protocol had its turn: what arrived and was not delivered, or not released, waits."""
