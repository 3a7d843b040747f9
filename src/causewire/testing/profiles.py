"""What a network may do to packets, by name."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PROFILES", "Profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a network behaves. Whatever it does not lose arrives in the end."""

    name: str
    fifo: bool = False
    """What one process sends another arrives in the order in which it was sent."""
    loss: float = 0.0
    """Share of packets that are lost."""
    replay: float = 0.0
    """Chance, at each step, that a packet of the past arrives once more."""
    hold: bool = False
    """Some links are slower than others: nothing arrives there while anything can
    arrive elsewhere, until, some time or other, they change places."""

    @property
    def reliable(self) -> bool:
        """Whether every packet arrives exactly once."""
        return not self.loss and not self.replay


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(name="fifo", fifo=True),
        Profile(name="fifo-delay", fifo=True, hold=True),
        Profile(name="fifo-loss", fifo=True, loss=0.2),
        Profile(name="reorder"),
        Profile(name="delay", hold=True),
        Profile(name="loss", loss=0.2),
        Profile(name="duplication", replay=0.2),
        Profile(name="lossy", loss=0.15, replay=0.15, hold=True),
    )
}
