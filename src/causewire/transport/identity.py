"""Who this process is, and what it knows of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .events import Address
from .heads import TOKEN_BYTES

if TYPE_CHECKING:
    from .seal import Exchange
    from .session import Session

__all__ = ["Identity", "Peer", "check_name"]


def check_name(name: object) -> str:
    """Return the name of a process if it can travel.

    Raises:
        ValueError: It is not printable text of 1 to 255 bytes.
    """
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) < 256:
        raise ValueError(f"a process name must be printable text, up to 255 bytes, not {name!r}")
    return name


class Identity:
    """Who this process is, as it says in its greetings."""

    __slots__ = (
        "connection",
        "cut_off",
        "incarnation",
        "life",
        "name",
        "protocol",
        "reports",
        "superseded",
        "unread",
    )

    def __init__(
        self,
        name: str,
        incarnation: int,
        protocol: str,
        life: int,
        connection: int = 0,
        reports: bool = False,
    ) -> None:
        if not 0 < incarnation < 1 << 63:
            raise ValueError("an incarnation must be a number of up to 63 bits, from 1")
        self.name = check_name(name)
        self.incarnation = incarnation
        self.protocol = protocol
        self.life = life
        self.connection = connection
        """How many times this incarnation has come back with its memory."""
        self.reports = reports
        """Whether it reports which messages its application has handled."""
        self.superseded = 0
        """If peers ignore this incarnation: the lowest one that they accept."""
        self.cut_off = False
        """Whether that is so because this process has heard nobody for too long."""
        self.unread = False
        """Whether it is so because its application does not read, and still does not."""


class Peer:
    """Another process, whichever incarnation of it is alive."""

    __slots__ = (
        "address",
        "aliases",
        "armed",
        "credit",
        "doubted",
        "exchange",
        "gone",
        "gone_at",
        "greet_at",
        "greet_pause",
        "home",
        "left",
        "lives",
        "name",
        "refused",
        "replaced",
        "session",
        "token",
        "trouble",
        "wanted",
    )

    def __init__(self, name: str, address: Address) -> None:
        self.name = name
        self.address = address
        self.home: Address | None = None
        """The address that the driver gave; it is tried again if the peer is silent."""
        self.wanted = False
        """Whether to look for it even if there is no message for it."""
        self.session: Session | None = None
        self.lives = 0
        """Sessions made, each with another incarnation."""
        self.aliases: list[str] = []
        """What the protocol called the incarnations that are over."""
        self.gone = False
        """Whether its last incarnation left or was given up, and no other was met since."""
        self.left = False
        """Whether it left properly."""
        self.gone_at = 0.0
        self.refused = False
        self.trouble = ""
        """Why it cannot be reached at its address, if that is known."""
        self.token = bytes(TOKEN_BYTES)
        """The token of the last greeting that it sent (`heads`)."""
        self.credit: int | None = 0
        """How many greetings may be sent to an address that nobody has proved; None: any number."""
        self.doubted: int | None = None
        """The last datagram from it when another process of its name greeted."""
        self.replaced = 0
        """The incarnation in whose place it was met, if it was."""
        self.exchange: Exchange | None = None
        """The agreement on the keys of the next session."""
        self.greet_at: float | None = None
        self.greet_pause = 0.0
        self.armed: float | None = None
        """When its timer fires."""
