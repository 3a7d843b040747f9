"""What a network may do to packets: the assumptions that protocols make, by name.

A protocol states in the registry what it needs of the network. The profiles that
it must bear follow from that: `bearable` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import protocols

__all__ = ["PROFILES", "Profile", "bearable"]


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
    """Some links do not deliver anything for long, while the others do."""

    @property
    def reliable(self) -> bool:
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


def bearable(protocol: str) -> list[Profile]:
    """The networks on which a protocol must keep all that it promises."""
    about = protocols.describe(protocol)
    names = ["fifo", "fifo-delay"]
    if about.needs_fifo:
        names += ["fifo-loss"] * about.tolerates_loss
    else:
        names += ["reorder", "delay"]
        names += ["loss"] * about.tolerates_loss
        names += ["duplication"] * about.tolerates_duplication
        names += ["lossy"] * (about.tolerates_loss and about.tolerates_duplication)
    return [PROFILES[name] for name in names]
