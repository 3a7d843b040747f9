"""Three transports that know each other, and links that a test can cut."""

from __future__ import annotations

from random import Random
from typing import Any

from causewire.transport import (
    Transport,
)

from .pair import A, B

C = ("127.0.0.1", 3)
PLACES = {"ann": A, "bob": B, "carol": C}


def transport(name: str, incarnation: int, **settings: Any) -> Transport[Any]:
    """A transport with random bytes of its own."""
    settings.setdefault("entropy", Random(f"{name} {incarnation}").randbytes)
    return Transport(name, incarnation=incarnation, **settings)


class Three:
    """`ann`, `bob` and `carol`, who know each other, and links that a test can cut."""

    def __init__(self, **settings: Any) -> None:
        self.now = 100.0
        self.cut: set[tuple[str, str]] = set()
        self.settings = settings
        self.places = dict(PLACES)
        self.carried = 0
        """How many bytes of datagrams have been sent."""
        self.all = {
            name: transport(name, incarnation=(k + 1) << 20, **settings)
            for k, name in enumerate(PLACES)
        }
        for name in PLACES:
            self.introduce(name)
        self.run(1.0)

    def introduce(self, name: str) -> None:
        for other, place in self.places.items():
            if other != name:
                self.all[name].add_peer(other, place, self.now)

    def run(self, seconds: float) -> None:
        """Let datagrams travel and timers fire for some time."""
        end = self.now + seconds
        while self.now < end:
            self.exchange()
            times = [t.next_timer() for t in self.all.values()]
            due = min([when for when in times if when is not None], default=end)
            self.now = min(end, max(due, self.now + 0.001))
            for one in self.all.values():
                when = one.next_timer()
                if when is not None and when <= self.now:
                    one.timer_fired(self.now)
        self.exchange()

    def exchange(self) -> None:
        names = {place: name for name, place in self.places.items()}
        for _ in range(100):
            some = [
                (name, names[place], data)
                for name, one in self.all.items()
                for data, place in one.datagrams_to_send(self.now)
            ]
            if not some:
                return
            for source, target, data in some:
                self.carried += len(data)
                if (source, target) not in self.cut and target in self.all:
                    self.all[target].datagram_received(data, self.places[source], self.now)

    def isolate(self, name: str) -> None:
        for other in PLACES:
            self.cut |= {(name, other), (other, name)}

    def __getitem__(self, name: str) -> Transport[Any]:
        return self.all[name]
