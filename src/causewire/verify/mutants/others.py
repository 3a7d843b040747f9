"""The other protocols with the mistakes of their papers (ERRATA 5 to 8)."""

from __future__ import annotations

from typing import Any

from ...core import rst
from ...core.bss import Bss
from ...core.cykas import Ack, Cykas, CykasAsPrinted, Yct
from ...core.endpoint import Packet
from ...core.ks import Ks, Need
from ...core.mf import Mf
from ...core.newtop import Newtop
from ...core.pak import Pak, PakCredit, PakNak
from ...core.rst import Matrix, Rst
from .table import Mutant

__all__ = ["TABLE"]


# -- Cykas --------------------------------------------------------------------


class CykasClearsNewBits(CykasAsPrinted):
    """Algorithm 4 as printed, but that OB is tried once more after its loop."""

    __slots__ = ()

    def _after_ack(self, i: str) -> None:
        super()._after_ack(i)
        self._try_send_message()


class CykasYctAcknowledged(Cykas):
    """YCT is acknowledged, like every message; the ack is taken for one of a message."""

    __slots__ = ()

    def receive(self, source: str, packet: Packet) -> None:
        super().receive(source, packet)
        if isinstance(packet, Yct):
            self._packets.append((source, Ack()))


class CykasYctUnguarded(Cykas):
    """YCT does not wait for the ack of its own message, which it may overtake."""

    __slots__ = ()

    def _try_send_yct(self, receiver: str) -> None:
        last = self._unack.pop(receiver, None)
        super()._try_send_yct(receiver)
        if last is not None:
            self._unack[receiver] = last


# -- matrices, logs and vectors -----------------------------------------------


class RstDestsMissing(Rst):
    """A receiver counts itself alone among the destinations of a multicast."""

    __slots__ = ()

    def _counted(self, matrix: Matrix, k: int, message: Packet) -> Matrix:
        if k != self._my_index:
            message = rst.RstMessage(message[1], (self.me,), *message[3:])
        return super()._counted(matrix, k, message)


class RstUpcallFirst(Rst):
    """The application is called before the matrix knows of the message."""

    __slots__ = ("_before",)

    def _counted(self, matrix: Matrix, k: int, message: Packet) -> Matrix:
        if k != self._my_index:
            self._before = self._matrix
        return super()._counted(matrix, k, message)

    def _deliver(self, source: str, mid: int, payload: Any) -> None:
        if source == self.me:
            return super()._deliver(source, mid, payload)
        after, self._matrix = self._matrix, self._before
        super()._deliver(source, mid, payload)
        self._matrix = tuple(map(max, after, self._matrix))
        return None


class KsUpcallFirst(Ks):
    """The application is called before LOG knows of the message (RCV(2) before RCV(3-5))."""

    __slots__ = ("_taken",)

    def _absorb(self, source: str, message: Packet) -> None:
        self._taken = message

    def _deliver(self, source: str, mid: int, payload: Any) -> None:
        super()._deliver(source, mid, payload)
        if source != self.me:
            super()._absorb(source, self._taken)


class KsOwnChannelSkipped(Ks):
    """A message does not wait for others of its own sender: its channel is FIFO, is it not?"""

    __slots__ = ("_source",)

    def _check(self, source: str, message: Packet) -> None:
        self._source = source
        super()._check(source, message)

    def _needs(self, message: Packet) -> list[Need]:
        return [need for need in super()._needs(message) if need[0] != self._source]


class BssTwice(Bss):
    """The delivery condition with <= accepts what is delivered already."""

    __slots__ = ()

    def _known(self, source: str, j: int, message: Packet) -> bool:
        return False


class BssUpcallFirst(Bss):
    """The application is called before V counts the message."""

    __slots__ = ()

    def _deliver(self, source: str, mid: int, payload: Any) -> None:
        self._v[self.index[source]] -= 1
        super()._deliver(source, mid, payload)
        self._v[self.index[source]] += 1


# -- Newtop and positive acknowledgements -------------------------------------


class NewtopWithoutNulls(Newtop):
    """Nobody tells how far its clock has come but by messages."""

    __slots__ = ()

    def _say_null(self) -> None:
        pass


class PakUpcallFirst(Pak):
    """The application is called before V counts the message."""

    __slots__ = ()

    def _deliver(self, source: str, mid: int, payload: Any) -> None:
        self._v[self.index[source]] -= 1
        super()._deliver(source, mid, payload)
        self._v[self.index[source]] += 1


class PakSmallModulus(Pak):
    """V modulo 2 cannot tell the three values of a causal window apart."""

    __slots__ = ()

    @property
    def _least_k(self) -> int:
        return 2


class PakCreditSmallModulus(PakCredit):
    """V modulo 2ct cannot tell the 2ct + 1 values of a causal window apart."""

    __slots__ = ()

    @property
    def _least_k(self) -> int:
        return 2 * self.ct


class PakCreditAnonymousAcks(PakCredit):
    """One ack counts for all broadcasts that wait for one of that process."""

    __slots__ = ()

    def _receive_ack(self, j: int, ack: int) -> None:
        if self._acked[j] < self._v[self._i]:
            self._take_ack(j, self._v[self._i])


class PakNakCountsModuloK(PakNak):
    """Which broadcasts are acknowledged is decided by V[me], which is modulo k."""

    __slots__ = ()

    def _asks(self, number: int) -> int:
        while number and (number - 1) % self.k % self._step != self._step - 1:
            number -= 1
        return number


TABLE = (
    Mutant(
        "cykas-clears-new-bits",
        "cykas",
        CykasClearsNewBits,
        "5.2",
        "Algorithm 4 as printed, with OB tried once more after its loop",
        "0>2,1,2,1,2; 1>; 2>1",
    ),
    Mutant(
        "cykas-yct-acknowledged",
        "cykas",
        CykasYctAcknowledged,
        "5.4",
        "YCT is acknowledged",
        "0>2,1; 1>; 2>",
    ),
    Mutant(
        "cykas-yct-unguarded",
        "cykas",
        CykasYctUnguarded,
        "5.5",
        "YCT does not wait for the ack of its message",
        "0>2,1; 1>; 2>",
    ),
    Mutant(
        "mf-footnote-4",
        "mf",
        Mf,
        "6",
        "no wait between messages to one receiver, on channels that are not FIFO",
        "0>1,1; 1>",
        options={"fifo": True},
    ),
    Mutant(
        "rst-dests-missing",
        "rst",
        RstDestsMissing,
        "7.2",
        "the receiver of a multicast does not count the other receivers",
        "0>1+2; 1>2; 2>",
    ),
    Mutant(
        "rst-upcall-first",
        "rst",
        RstUpcallFirst,
        "7.1",
        "the application is called before the matrix is brought up to date",
        "0>2,1; 1>2; 2>",
    ),
    Mutant(
        "ks-upcall-first",
        "ks",
        KsUpcallFirst,
        "7.1",
        "the application is called before LOG is brought up to date",
        "0>2,1; 1>2; 2>",
    ),
    Mutant(
        "ks-own-channel-skipped",
        "ks",
        KsOwnChannelSkipped,
        "7.3",
        "a message does not wait for others of its own sender",
        "0>1,1; 1>",
    ),
    Mutant(
        "bss-twice",
        "bss",
        BssTwice,
        "7.6",
        "the delivery condition accepts duplicates",
        "0>1; 1>",
        {"duplicates": 1},
    ),
    Mutant(
        "bss-upcall-first",
        "bss",
        BssUpcallFirst,
        "7.1",
        "the application is called before V counts the message",
        "0>1+2; 1>0+2; 2>",
    ),
    Mutant(
        "newtop-without-nulls",
        "newtop",
        NewtopWithoutNulls,
        "7.7",
        "no null messages",
        "0>1+2; 1>; 2>",
        {"fifo": True, "rounds": 2},
    ),
    Mutant(
        "pak-upcall-first",
        "pak",
        PakUpcallFirst,
        "7.1",
        "the application is called before V counts the message",
        "0>1+2; 1>0+2; 2>",
        {"fifo": True},
    ),
    Mutant(
        "pak-small-modulus",
        "pak",
        PakSmallModulus,
        "8.1",
        "V is modulo 2",
        "0>1+2,1+2; 1>0+2; 2>",
        {"fifo": True},
    ),
    Mutant(
        "pak-credit-small-modulus",
        "pak-credit",
        PakCreditSmallModulus,
        "8.1",
        "V is modulo 2ct",
        "0>1+2,1+2,1+2; 1>0+2; 2>",
        {"fifo": True},
    ),
    Mutant(
        "pak-credit-anonymous-acks",
        "pak-credit",
        PakCreditAnonymousAcks,
        "8.3",
        "an ack does not name its message",
        "0>1+2,1+2,1+2,1+2; 1>0+2; 2>",
        {"fifo": True},
    ),
    Mutant(
        "pak-nak-counts-modulo-k",
        "pak-nak",
        PakNakCountsModuloK,
        "8.4",
        "which broadcasts are acknowledged is decided by a count modulo k",
        "0>1+2,1+2,1+2,1+2,1+2,1+2,1+2; 1>0+2; 2>",
        {"fifo": True},
    ),
)
