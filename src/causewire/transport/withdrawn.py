"""`Withdrawn`: what is left of a message that its sender has cancelled.

A protocol has numbered a message as soon as it was sent, and other messages may refer to that
number: as a predecessor, in a list, by a permit that depends on its ack. So a cancelled message
is not removed. It loses its payload, goes its way like any other, and is acknowledged; but the
receiving node does not hand it to the application. No protocol looks at payloads, therefore this
is safe for each of them, at any time until the first datagram with the message is made:

- the order of all other messages is what it would have been without the cancellation;
- nobody waits for a message that does not come.
"""

from __future__ import annotations

__all__ = ["NOTHING", "Withdrawn"]


class Withdrawn(bytes):
    """The payload of a cancelled message: empty, or the list that `adaptive` puts in front."""

    __slots__ = ()


NOTHING = Withdrawn()
