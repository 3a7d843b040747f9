"""A node for programs without asyncio: the same calls, and they wait.

    with causewire.blocking.Node("alice", peers={"bob": "127.0.0.1:9002"}) as alice:
        receipt = alice.send("bob", b"hello")
        receipt.delivered(timeout=5)
        for message in alice:
            print(message.source, message.payload)

The node drives its transport from a thread of its own, with a selector. A call from another
thread takes a lock and uses the transport directly; it wakes the thread only if that sleeps.
All methods may be called from any thread.
"""

from .driver import Receipt
from .node import Node

__all__ = ["Node", "Receipt"]
