"""Addresses are proved before they are used.

An authentic datagram that comes from another address than before does not prove that its
sender is there: anybody on the way can copy it and send the copy from elsewhere. So the
new address gets a *challenge*, eight random bytes that only the peer can read and send
back, and is used once they have come back from there. Until then everything goes to the
address that was used before.

The first address of a session is proved by *tokens* in greetings (`heads`). The token of an address
is a keyed hash of it, so nothing has to be remembered of those who greet.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from hashlib import blake2b

from .events import Address
from .frames import put_challenge, put_response
from .heads import TOKEN_BYTES
from .peers import Peers
from .session import Session

__all__ = ["Paths"]

PAUSE = 0.2
"""Seconds between challenges of one session; a copied datagram costs one small answer."""


class Paths:
    """The addresses that are being checked.

    Args:
        peers: All peers.
        entropy: Returns random bytes.
    """

    def __init__(self, peers: Peers, entropy: Callable[[int], bytes]) -> None:
        self._peers = peers
        self._entropy = entropy
        self._secret = entropy(16)
        self._open: dict[Session, tuple[Address, bytes, float]] = {}
        """For each session the address under test, the challenge, and when it was sent."""
        self.out: list[tuple[bytes, Address]] = []
        """Challenges and responses to be sent."""

    def token(self, address: Address) -> bytes:
        """Return what a process repeats that gets what is sent to an address."""
        place = f"{address[0]} {address[1]}".encode()
        return blake2b(place, digest_size=TOKEN_BYTES, key=self._secret).digest()

    def proved(self, address: Address, repeats: bytes) -> bool:
        """Return whether a process at an address got what was sent there."""
        return hmac.compare_digest(repeats, self.token(address))

    def seen(self, session: Session, address: Address, now: float) -> None:
        """An authentic datagram came from another address than the one in use."""
        under_test = self._open.get(session)
        if under_test is not None and now < under_test[2] + PAUSE:
            return
        for over in [other for other in self._open if other.over]:
            del self._open[over]
        if under_test is not None and under_test[0] == address:
            token = under_test[1]  # an answer to the former challenge may be on its way
        else:
            token = self._entropy(TOKEN_BYTES)
        self._open[session] = (address, token, now)
        self.out.append((session.single(put_challenge(token)), address))

    def challenged(self, session: Session, token: bytes, address: Address) -> None:
        """Answer a challenge at the address from which it came."""
        self.out.append((session.single(put_response(token)), address))

    def answered(self, session: Session, token: bytes, address: Address) -> None:
        """Use an address from which its challenge has come back."""
        place, expected, _ = self._open.get(session, (None, b"", 0.0))
        if place == address and hmac.compare_digest(token, expected):
            del self._open[session]
            self._peers.moved(session, address)
