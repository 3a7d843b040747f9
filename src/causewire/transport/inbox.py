"""Delivered messages of a process with a store, until its application has handled them.

    transport -> Inbox -> (stored) -> ready -> application -> (handled) -> gone

There are three ways to find out what is handled:

    by asking       who asks for the next message has handled those before it
    by saying       the application says it of each message (`Delivery.done`), in any order;
                    what it has not said it of is delivered again after a crash
    by a reader     something between the node and the application, such as the kit, has
                    claimed the inbox: it takes everything, and says the same (`finish`)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ..core.endpoint import Delivery
from .handling import ReportedDelivery
from .names import PeerName, message_id

if TYPE_CHECKING:
    from .journal import Journal

__all__ = ["Inbox"]


class Inbox(deque[Any]):
    """Delivered messages, and events among them, that are not in the store yet.

    The transport appends to it. The driver moves what has been stored to `ready`, where the
    application takes it. Its length, by which the transport tells how much room is left, is
    the number of messages that have not been handled.

    Args:
        unhandled: What an earlier run of the process had delivered and not handled; None
            stands for a message that was handled although an earlier one was not.
        handled: How many messages before these were handled.
        explicit: Whether the application says what it has handled.
    """

    def __init__(
        self, unhandled: Iterable[Any] = (), handled: int = 0, explicit: bool = False
    ) -> None:
        super().__init__()
        self.journal: Journal | None = None
        self.unhandled: deque[Any] = deque(unhandled)
        """Everything that is not handled, oldest first, wherever it is; None as above. If the
        application does not say what it has handled, `handled` brings it up to date."""
        self._handled = handled
        self.explicit = explicit
        self._says = explicit
        """Whether the application says so if no reader has claimed the inbox."""
        self._claimed = self._released = False
        self._earlier = handled + len(self.unhandled)
        """What comes before this place was delivered to an earlier run of the process."""
        self.guard: AbstractContextManager[Any] = nullcontext()
        """Protects what follows; a driver puts a lock here if threads take messages."""
        self.ready: deque[Any] = _Ready(self) if explicit else deque()
        """What the application may take."""
        self._offered = 0
        """How many of `unhandled` are in `ready` or were taken from there, if the application
        does not say what it has handled. So nothing has to be done when it takes a message."""
        self._positions: dict[Any, int] = {}
        """Where the messages are, counted from the first start, if the application says so."""
        self.restart()

    def restart(self) -> None:
        """Let the application take everything that is not handled."""
        self.ready.clear()
        self.ready.extend([item for item in self.unhandled if item is not None])
        self._offered = len(self.ready)
        self._positions.clear()
        self._count(self._handled, self.unhandled)

    def _count(self, first: int, items: Iterable[Any]) -> None:
        if self.explicit:
            for position, item in enumerate(items, first):
                if item is None:
                    continue
                self._positions[_key(item)] = position

    @property
    def handled(self) -> int:
        """How many have been handled since the first start, without a gap."""
        with self.guard:
            self._sweep(1)
        return self._handled

    def __len__(self) -> int:
        if self._claimed:
            return len(self.ready) + super().__len__()
        with self.guard:
            self._sweep(1)
        return len(self.unhandled)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iadd__(self, deliveries: Iterable[Any]) -> Inbox:
        with self.guard:
            self._count(self._handled + len(self.unhandled), deliveries)
            self.unhandled += deliveries
        self.extend(deliveries)
        return self

    def append(self, event: Any) -> None:
        """Put in an event, which is not among what the protocol delivers."""
        if self.journal is not None:
            self.journal.event(event)
        with self.guard:
            self._count(self._handled + len(self.unhandled), [event])
            self.unhandled.append(event)
        super().append(event)

    @property
    def unstored(self) -> int:
        """How many are not in the store."""
        return super().__len__()

    def stored(self, count: int) -> None:
        """Let the application take the oldest `count`, as they are in the store now."""
        popleft = super().popleft
        with self.guard:
            self._offered += count
            self.ready.extend([popleft() for _ in range(count)])

    # -- what is handled --------------------------------------------------------

    def done(self) -> None:
        """Note that all that was taken is handled, unless the application says so itself."""
        with self.guard:
            if self._released:
                self._unclaim()
            self._sweep(0)

    # -- a reader that has claimed it ---------------------------------------------

    def claim(self) -> None:
        """Have a reader take everything, and say of each item when it is handled (`finish`).

        Only what it has not taken counts against the room that the transport has.
        """
        with self.guard:
            self._sweep(0)
            if not self.explicit:
                self.explicit = True
                self._count(self._handled, self.unhandled)
            self._claimed, self._released = True, False

    def release(self) -> None:
        """Have the claim end when somebody else asks for the next message.

        Until then, what the reader has not finished stays in the store.
        """
        self._released = self._claimed

    def _unclaim(self) -> None:
        self._claimed = self._released = False
        self.explicit = self._says
        if not self.explicit:
            self._positions.clear()
            self._offered = sum([item is not None for item in self.unhandled]) - self.unstored

    def finish(self, item: Any) -> None:
        """Note that the reader has handled an item."""
        with self.guard:
            self._done_at(self._positions.pop(_key(item), -1))

    def is_left_over(self, item: Any) -> bool:
        """Return whether an item that is not handled was delivered to an earlier run."""
        return self._positions.get(_key(item), self._earlier) < self._earlier

    def _sweep(self, in_hand: int) -> None:
        """Drop what was taken but for the last ones, which the application may have in hand."""
        if self.explicit:
            return
        unhandled = self.unhandled
        left = len(self.ready) + in_hand
        while self._offered > left:
            self._offered -= unhandled.popleft() is not None
            self._handled += 1
        self._skip()

    def _skip(self) -> None:
        """Drop what was handled before those before it."""
        while self.unhandled and self.unhandled[0] is None:
            self.unhandled.popleft()
            self._handled += 1

    def done_with(self, source: str, incarnation: int, mid: int) -> None:
        """Note that the application says that it has handled a message."""
        if self.explicit:
            with self.guard:
                self._done_at(self._positions.pop((source, incarnation, mid), -1))

    def taken(self, item: Any) -> None:
        """Note that the application has taken one, if it is one that it does not report on."""
        if self._claimed or isinstance(item, ReportedDelivery):
            return
        # It is an event, or a message to itself.
        self._done_at(self._positions.pop(_key(item), -1))

    def _done_at(self, position: int) -> None:
        if position > self._handled:
            self.unhandled[position - self._handled] = None
            if self.journal is not None:
                self.journal.handled_early(position)
        elif position == self._handled:
            self.unhandled.popleft()
            self._handled += 1
            self._skip()


def _key(item: Any) -> Any:
    """Return what identifies a message, or an event, as long as it is not handled.

    Messages to oneself are numbered anew by each incarnation.
    """
    by_number = isinstance(item, Delivery) and isinstance(item.source, PeerName)
    return message_id(item) if by_number else id(item)


class _Ready(deque[Any]):
    """Messages that are in the store, for an application that says what it has handled.

    The inbox learns when one is taken.
    """

    def __init__(self, inbox: Inbox) -> None:
        super().__init__()
        self._inbox = inbox

    def popleft(self) -> Any:
        with self._inbox.guard:
            item = super().popleft()
            self._inbox.taken(item)
        return item
