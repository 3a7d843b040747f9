"""A peer that can seal datagrams and says anything: what the fuzzers drive.

`Target` is a transport in the middle of its work, with a session whose other side is
played by the fuzzer. Whatever arrives, the transport must not raise, hold memory beyond
its limits, or deliver a message twice.
"""

from __future__ import annotations

from causewire.transport import TransportConfig
from causewire.transport.heads import HEAD, SESSION
from causewire.transport.inbound import OVERHEAD

from .pair import A, Pair

CONFIG = TransportConfig(
    peer_messages=20, peer_bytes=4000, queue_messages=8, message=2000, local_datagram=600, peers=20
)


class Target:
    """bob, whom `hit` gives a datagram with these contents, sealed as ann would."""

    def __init__(
        self, protocol: str = "csps", key: bytes | None = None, config: TransportConfig = CONFIG
    ) -> None:
        self.pair = Pair(config=config, protocol=protocol, key=key).meet()
        self.bob = self.pair.bob
        self.number = self.pair.session.recovery.next_number
        for k in range(3):
            self.bob.send("ann", bytes(k))
        self.pair.send(b"first")
        for data in self.pair.out(self.pair.ann):
            self.raw(data)
            self.number += 1
        self.delivered: set[tuple[str, int]] = set()
        """The messages that bob's application has taken."""
        self.take(len(self.bob.messages))
        assert self.delivered

    def raw(self, data: bytes) -> None:
        """Any datagram at all."""
        self.bob.datagram_received(data, A, self.pair.now)
        self.bob.datagrams_to_send(self.pair.now)

    def hit(self, contents: bytes) -> None:
        """A datagram that verifies."""
        seal = self.pair.session._sealing
        head = HEAD.pack(SESSION, seal.tag, self.number)
        self.raw(seal.close(self.number, head, contents))
        self.number += 1

    def tick(self) -> None:
        """Time passes, and the application takes something."""
        self.pair.now += 0.3
        self.bob.timer_fired(self.pair.now)
        self.take(3)
        self.bob.datagrams_to_send(self.pair.now)

    def take(self, most: int) -> None:
        """The application takes messages, none of which it has had before."""
        for _ in range(min(most, len(self.bob.messages))):
            source, mid, _ = self.bob.messages.popleft()
            assert (source, mid) not in self.delivered, f"message {mid} is delivered twice"
            self.delivered.add((source, mid))

    def check(self) -> None:
        """Whatever happened: nothing is delivered twice, and there are limits."""
        waiting = [(message.source, message.mid) for message in self.bob.messages]
        assert len(set(waiting)) == len(waiting)
        assert not self.delivered.intersection(waiting)
        assert len(self.bob._peers.known) <= CONFIG.peers
        assert len(self.bob.messages) <= CONFIG.queue_messages + 2
        most = 2 * (CONFIG.peer_bytes + OVERHEAD * CONFIG.peer_messages) + CONFIG.message
        assert 0 <= self.bob._arrivals.waiting_bytes <= 2 * most
        for session in self.bob._live.values():
            assert session.inbound.messages <= 2 * CONFIG.peer_messages + 130
            assert session.inbound.bytes >= 0
            assert session.inbound.messages >= 0
        assert self.bob._ledger.messages >= 0
        self.bob.blocked(self.pair.now)
        self.bob.next_timer()
