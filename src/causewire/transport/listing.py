"""The carrier of `adaptive`: messages in runs as in `csps`, and lists in front of payloads.

A message with a list has the flag `per` on the wire, and its list, after the length of the list,
is in front of its payload. So runs, parts of long messages, windows and retransmission are
those of every native protocol, and a message without a list costs not a byte more than under
`fifo`. Lists use tables that both ends build as they go (`lists`); the chain of messages is
ordered and complete, which is all they need. Control packets go through the stream of the
session (`stream`), with tables of their own.

**Incarnations.** What travels names a process by its name and its incarnation (`identities`), so
all processes mean the same, whatever they call it themselves. From this follows what happens
when a process is gone:

    F1  Its endpoint string is forgotten: its messages that wait are dropped, and so are all
        entries from it and to it.
    F2  The obituary precedes everything else in the datagrams to everybody (`session`).
    F3  An entry that arrives later and names a dead incarnation is dropped, as an origin or as
        a destination. Its sender did not know the obituary; by F1 here, nothing that it
        stands for can be delivered to or from that incarnation through this process.

A message that depends on one to a process not met yet lists it with incarnation 0
(`core.adaptive_aliases`). Obituaries do not concern such an entry. Its origin reports it when the
messages are delivered, or void because it gave the process up; the destination gets the latter
report as well. If all who could pass that report on have died, the destination waits for a
process that it has no session with, and gives it up like any other that does not answer
(`absent`).

**A process that crashes and comes back with its memory** (`listed_journal`) has the endpoint, the
tables of messages, and the names that it had at the end of some turn; nobody has seen what it
did later. This is what goes again when a session is resumed, and why that is enough:

    messages    All that are not acked, from both ends, with the bytes that they had. Tables of
                messages need not begin anew: what reached the protocol is a first part of the
                chain, whole messages in their order, and the reader's tables are what that part
                says. What comes again of it is recognised by its numbers, before it is
                read. So a list is read once, and no list has to be made again.
    acks        They are watermarks, and are repeated. A message that waits here is not acked,
                and comes again; it is known by its number.
    PART, NEWS  Control packets begin a new stream with new tables at both ends. What was on its
                way is lost, and the endpoint repeats what is not confirmed: for each peer at
                most one PART and one NEWS, since both go one at a time. A PART that comes
                again is known by its number; only the entries of processes that are gone may be
                missing in it. NEWS may be applied again, as a delivery is a stable fact. Reports
                of void messages are NEWS.
    GOT, SEEN   They need no memory: who waits for one repeats the packet that it confirms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..core.adaptive import UNMET, Adaptive, Checked, Dest, Entries, Entry, Got, News, Part, Seen
from ..core.endpoint import Blocked, Packet, RemoteProtocolError
from ..core.run import MessageRun
from ..core.saved import unacknowledged
from ..protocols import Protocol
from .carrier import Native
from .identities import Identities
from .identity import Identity
from .lists import ListReader, ListWriter, Process, Resolve
from .missing import Missing, described
from .varint import MalformedError, get, put
from .withdrawn import NOTHING, Withdrawn

__all__ = ["Listing"]

_new = tuple.__new__

_PART, _GOT, _NEWS, _SEEN = range(4)

_MANY = 256
"""Names of processes that are gone are looked through when there are as many more."""


class _Channel:
    """The tables of one session, and what is known of its messages."""

    __slots__ = ("epoch", "listed", "messages_in", "messages_out", "packets_in", "packets_out")

    def __init__(
        self, process: Callable[[str], Process], resolve: Resolve, resolve_news: Resolve
    ) -> None:
        self.messages_out = ListWriter(process)
        self.messages_in = ListReader(resolve)
        self.packets_out = ListWriter(process)
        self.packets_in = ListReader(resolve_news)
        self.epoch = 0
        """How many processes were known to be gone when pairs were resolved."""
        self.listed: deque[tuple[int, bytes]] = deque()
        """Messages with a list that are not acked, and the list as bytes, with its length."""

    def begin_packets(self, process: Callable[[str], Process], resolve_news: Resolve) -> None:
        """Begin new tables for control packets, as the other end does."""
        self.packets_out = ListWriter(process)
        self.packets_in = ListReader(resolve_news)


class Listing(Native):
    """`adaptive`, as the transport carries it."""

    lists = True
    endpoint: Adaptive

    def __init__(self, protocol: Protocol, me: Identity, most: int) -> None:
        super().__init__(protocol, me.name)
        assert isinstance(self.endpoint, Adaptive)
        self.permits = True  # that is, messages have a flag
        self._identities = Identities(me)
        self._channels: dict[str, _Channel] = {}
        self._early: dict[str, list[MessageRun]] = {}
        """Messages to processes that were not met yet, by alias."""
        self._ready: list[tuple[str, MessageRun]] = []
        """The same, to processes that have been met since."""
        self._parts: dict[str, list[Packet]] = {}
        """Control packets to processes that were not met yet, by alias."""
        self._met: dict[str, int] = {}
        """The incarnations that there are sessions with, by name."""
        self._older: set[str] = set()
        """Names of which an incarnation was named that is earlier than the one met."""
        self._most = most
        self._sweep_at = _MANY
        self._epoch = 0

    # -- who is who ---------------------------------------------------------------

    def meet(self, name: str, lives: int) -> str:
        alias = self._identities.alias(name)
        self.endpoint.expect(alias)
        self._early[alias] = []
        return alias

    def establish(self, alias: str, name: str, incarnation: int) -> str:
        if alias in self._channels:
            return alias  # it was met before a crash
        string = self._identities.string((name, incarnation))
        self.endpoint.identify(alias, string)
        self._met[name] = incarnation
        process = self._identities.process
        self._channels[string] = _Channel(process, self._resolve, self._resolve_news)
        self._ready += [(string, run) for run in self._early.pop(alias)]
        if alias in self._parts:
            self._parts[string] = self._parts.pop(alias)
        return string

    def knows_older(self, name: str, incarnation: int) -> bool:
        identities = self._identities
        return any(
            not identities.gone(identities.process(string))
            for string in identities.below(name, incarnation)
        )

    def take_older(self) -> Collection[str]:
        older, self._older = self._older, set()
        return older

    def forget(self, name: str) -> None:
        if name in self._early:
            del self._early[name]
            self._parts.pop(name, None)
            self.endpoint.abandon(name)
        else:
            self._met.pop(self._identities.process(name)[0], None)
            self._channels.pop(name, None)
            self._ready = [ready for ready in self._ready if ready[0] != name]
            self._parts.pop(name, None)
            self.endpoint.forget(name)

    def bury(self, name: str, floor: int) -> None:
        identities = self._identities
        if floor <= identities.floors.get(name, 0):
            return
        identities.floors[name] = floor
        self._epoch += 1
        for string in identities.below(name, floor):
            self.endpoint.forget(string)
        if len(self.endpoint.forgotten) > self._sweep_at:
            for string in self.endpoint.drop_unmentioned():
                if string != identities.process(string)[0]:  # `unbury` drops plain names
                    identities.drop(string)
            self._sweep_at = len(self.endpoint.forgotten) + _MANY

    def unbury(self, name: str) -> bool:
        identities = self._identities
        strings = identities.below(name, identities.floors.get(name, 0))
        if not self.endpoint.mentioned().isdisjoint(strings):
            return False
        for string in strings:
            self.endpoint.readmit(string)
            identities.drop(string)
        identities.floors.pop(name, None)
        self._epoch += 1  # tables for reading may have the strings in groups
        if len(identities.retired) > _MANY:
            for channel in self._channels.values():
                channel.messages_out.begin_anew()
                channel.packets_out.begin_anew()
            identities.retired.clear()
        return True

    def discard(self, name: str) -> bool:
        return True

    # -- messages -------------------------------------------------------------------

    def take_runs(self) -> list[tuple[str, MessageRun]]:
        taken = self.endpoint.take_runs()
        if self._ready:
            taken, self._ready = self._ready + taken, []
        elif not taken:
            return taken
        runs = []
        for name, run in taken:
            if name in self._early:
                self._early[name].append(run)
            else:
                runs.append((name, self._with_lists(name, run) if run.per else run))
        return runs

    def _with_lists(self, name: str, run: MessageRun) -> MessageRun:
        """Return a run with bytes instead of lists."""
        channel = self._channels[name]
        payloads = []
        for mid, (payload, group, entries) in zip(run.mids, run.payloads, strict=True):
            written = channel.messages_out.write(group, entries)
            head = put(len(written)) + written
            channel.listed.append((mid, head))
            payloads.append(_behind(head, payload))
        return run._replace(payloads=payloads)

    def withdraw(self, name: str, mid: int) -> Any:
        runs = self._early.get(name, []) + [run for to, run in self._ready if to == name]
        for run in runs:
            payloads: Any = run.payloads
            if mid in run.mids:
                k = run.mids.index(mid)
                payloads[k] = payloads[k]._replace(payload=NOTHING) if run.per else NOTHING
        return super().withdraw(name, mid)

    def receive(self, source: str, run: MessageRun) -> None:
        """Accept messages that come next in the chain of `source`.

        Raises:
            RemoteProtocolError: No correct peer could have sent these messages.
        """
        self.check_room(source)
        if run.per:
            payloads = [self._listed(source, payload) for payload in run.payloads]
            run = run._replace(payloads=payloads)
        self.endpoint.receive_run(source, run)

    def check_room(self, source: str) -> None:
        """Check that not too many messages of a peer wait.

        Raises:
            RemoteProtocolError: They do.
        """
        if self.endpoint.holds_more_than(self._most, source):
            raise RemoteProtocolError(f"{source!r} sent too many messages out of order")

    def _listed(self, source: str, data: bytes) -> Checked:
        """Return a message with its list."""
        try:
            size, start = get(data, 0)
            group, entries, end = self._channel(source).messages_in.read(data, start)
            if end != start + size:
                raise MalformedError("a list of another length")
        except MalformedError as error:
            raise RemoteProtocolError(str(error)) from None
        dests = tuple(sorted(map(self._string, group)))
        payload = NOTHING if data.__class__ is Withdrawn else data[end:]
        return Checked(payload, dests, tuple(entries))

    def _channel(self, source: str) -> _Channel:
        """Return the tables of a session, which know who is gone."""
        channel = self._channels[source]
        if channel.epoch != self._epoch:
            channel.epoch = self._epoch
            channel.messages_in.resolve_again()
            channel.packets_in.resolve_again()
        return channel

    def _string(self, process: Process) -> str:
        """Return what the endpoint calls a process, and note if it must be gone by now."""
        name, incarnation = process
        if 0 < incarnation < self._met.get(name, 0) and not self._identities.gone(process):
            self._older.add(name)
        return self._identities.string(process)

    def _resolve(self, origin: Process, dest: Any) -> tuple[str, Dest] | None:
        """Return a pair in the endpoint's names, or None if it names the dead."""
        gone, string = self._identities.gone, self._string
        if gone(origin):
            return None
        if not isinstance(dest[0], str):
            return string(origin), tuple(sorted(map(string, dest)))
        return None if gone(dest) else (string(origin), string(dest))

    def _resolve_news(self, origin: Process, dest: Any) -> tuple[str, Dest] | None:
        """Do the same, and keep messages to this process before it was met apart."""
        me = self.endpoint.me
        pair = self._resolve(origin, dest)
        if pair is not None and dest == (origin[0], 0):
            return pair[0], UNMET
        return (pair[0], me + "\0") if pair is not None and dest == (me, 0) else pair

    def acked(self, source: str, mid: int) -> int:
        super().acked(source, mid)
        listed = self._channels[source].listed
        size = 0
        while listed and listed[0][0] <= mid:
            size += len(listed.popleft()[1])
        return size

    def list_bytes(self, payload: bytes, per: bool) -> int:
        if not per:
            return 0
        try:
            size, start = get(payload, 0)
        except MalformedError:
            return 0
        return min(start + size, len(payload))

    def tell_waits(self) -> None:
        self.endpoint.tell_waits()

    def take_waits(self) -> list[Blocked]:
        return self.endpoint.take_waits()

    # -- control packets --------------------------------------------------------------

    def take_control(self) -> list[tuple[str, bytes]]:
        taken = self.endpoint.take_control()
        if self._parts:
            waiting, self._parts = self._parts, {}
            taken = [(name, packet) for name in waiting for packet in waiting[name]] + taken
        records = []
        for name, packet in taken:
            if name in self._early:
                self._parts.setdefault(name, []).append(packet)
            else:
                records.append((name, self._encode(self._channels[name], packet)))
        return records

    @staticmethod
    def _encode(channel: _Channel, packet: Packet) -> bytes:
        if isinstance(packet, Part):
            head = put(_PART) + put(packet[1]) + put(packet[2])
            return head + channel.packets_out.write((), packet[3])
        if isinstance(packet, Got):
            return put(_GOT) + put(packet[1]) + put(packet[2])
        if isinstance(packet, News):
            return put(_NEWS) + put(packet[1]) + channel.packets_out.write((), packet[2])
        assert isinstance(packet, Seen)
        return put(_SEEN) + put(packet[1])

    def control(self, source: str, record: bytes) -> None:
        try:
            packet = self._decode(source, record)
        except MalformedError as error:
            raise RemoteProtocolError(str(error)) from None
        self.endpoint.receive(source, packet)

    def _decode(self, source: str, data: bytes) -> Packet:
        kind, at = get(data, 0)
        if kind not in (_PART, _GOT, _NEWS, _SEEN):
            raise MalformedError("no such control packet")
        number, at = get(data, at)
        if not number:
            raise MalformedError("a number below 1")
        if kind == _SEEN:
            return Seen(number)
        if kind == _GOT:
            return Got(number, get(data, at)[0])
        part = 0
        if kind == _PART:
            part, at = get(data, at)
        _, entries, end = self._channel(source).packets_in.read(data, at)
        if end != len(data):
            raise MalformedError("bytes after a control packet")
        if kind == _PART:
            me = self.endpoint.me
            known = tuple([(o, me if d == me + "\0" else d, mid) for o, d, mid in entries])
            return _new(Part, ("part", number, part, known))
        return _new(News, ("news", number, self._without_void(entries)))

    def _without_void(self, entries: Sequence[Entry]) -> Entries:
        """Act on news about messages to this process before it was met; return the others."""
        me = self.endpoint.me
        unmet = me + "\0"
        others = tuple([entry for entry in entries if entry[1] != unmet])
        if len(others) < len(entries):
            for origin, dest, mid in entries:
                if dest == unmet and origin != me:
                    self.endpoint.void(origin, mid)
        return others

    def who(self, string: str) -> Process:
        """Return the process for which a string of the endpoint stands."""
        return self._identities.process(string)

    # -- a process that comes back with its memory --------------------------------------

    def resumed(self, name: str) -> None:
        self._channels[name].begin_packets(self._identities.process, self._resolve_news)
        self.endpoint.repeat_control([name])

    def restarted(self, me: Identity, most: int) -> None:
        """Go on after a crash, with connections that are all new.

        Args:
            me: This process.
            most: Most messages of a peer that may wait.
        """
        self._identities.of(me)
        self._most = most
        for channel in self._channels.values():
            channel.begin_packets(self._identities.process, self._resolve_news)
        self._parts.clear()
        self._older.clear()
        self.endpoint.repeat_control([*self._channels, *self._early])

    @property
    def has_messages(self) -> bool:
        """Whether `take_runs` would do anything."""
        return bool(self._ready) or self.endpoint.has_messages

    @property
    def has_control(self) -> bool:
        """Whether `take_control` would do anything."""
        return self.endpoint.has_control

    def in_flight(self, name: str) -> list[MessageRun]:
        if name in self._early:
            return []
        lists = dict(self._channels[name].listed)
        runs = []
        for run in unacknowledged(self.endpoint, name):
            payloads: Any = run.payloads
            if run.per:
                payloads = [
                    _behind(lists[mid], listed.payload)
                    for mid, listed in zip(run.mids, payloads, strict=True)
                ]
            runs.append(run._replace(payloads=payloads, size=sum(map(len, payloads))))
        return runs

    def saved(self) -> list[Any]:
        """Return what is to be kept apart from the endpoint, as lists, strings and numbers."""
        assert not self._ready
        channels = [
            [
                string,
                channel.messages_out.saved(),
                channel.messages_in.saved(),
                channel.packets_in.saved(),
                [[mid, head.hex()] for mid, head in channel.listed],
            ]
            for string, channel in self._channels.items()
        ]
        return [self._identities.saved(), channels, [*self._early], self._met, self._sweep_at]

    def restore(self, saved: list[Any]) -> None:
        """Continue with what was saved; the endpoint has its state already."""
        identities, channels, early, met, self._sweep_at = saved
        self._identities.restore(identities)
        self._met = dict(met)
        for string, *tables, listed in channels:
            channel = _Channel(self._identities.process, self._resolve, self._resolve_news)
            channel.messages_out.restore(tables[0])
            channel.messages_in.restore(tables[1])
            channel.packets_in.restore(tables[2])
            channel.listed.extend([(mid, bytes.fromhex(head)) for mid, head in listed])
            self._channels[string] = channel
        self._early = {alias: unacknowledged(self.endpoint, alias) for alias in early}

    @property
    def missing(self) -> list[Missing]:
        return [described(*wait, numbers=True) for wait in self.endpoint.first_missing()]

    @property
    def absent(self) -> dict[str, int]:
        unknown = [origin for origin in self.endpoint.awaited if origin not in self._channels]
        found = dict(sorted(map(self._identities.process, unknown)))  # the latest of each name
        found.pop(self.endpoint.me, None)
        return {name: incarnation for name, incarnation in found.items() if incarnation}

    @property
    def waits(self) -> bool:
        return self.endpoint.holds_any

    @property
    def idle(self) -> bool:
        return not self.endpoint.held_back


def _behind(head: bytes, payload: bytes) -> bytes:
    """Return a payload with a list in front of it."""
    return Withdrawn(head) if payload.__class__ is Withdrawn else head + payload
