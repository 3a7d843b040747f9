"""Addresses as people write them, and sockets for them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
from dataclasses import replace
from typing import Any, TypeAlias

from ..transport import Address, TransportConfig

__all__ = [
    "NOWHERE",
    "Place",
    "bind",
    "check_socket",
    "is_hostname",
    "lookup",
    "lookup_now",
    "mismatch",
    "settings",
    "split",
]

Place: TypeAlias = str | Address
"""The address of a node: `"host:port"`, `"[::1]:port"`, or a pair."""

NOWHERE: Address = ("", 0)
"""The address of a peer whose address is not known yet: no system sends datagrams there."""

BUFFER = 4 << 20
"""The size of the socket's buffers, as far as the system allows."""


NEVER_CUT_UP = {
    socket.AF_INET: (socket.IPPROTO_IP, 10, 3),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 23, 3),
}
"""Options of Linux under which a datagram that is too long for a link on its way is dropped, and
not cut up (IP_MTU_DISCOVER and IPV6_MTU_DISCOVER, PMTUDISC_PROBE), by family."""


def settings(config: TransportConfig | None) -> TransportConfig:
    """Return the settings of a node on this system.

    The length of datagrams is searched for only where none is cut up: the parts of a long one
    may all arrive, but more easily one of them is lost.
    """
    config = config or TransportConfig()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            if _never_cut_up(sock):
                return config
    except OSError:  # there is no IPv4
        if sys.platform == "linux":
            return config
    return replace(config, longest_datagram=config.datagram)


def _never_cut_up(sock: socket.socket) -> bool:
    """Have datagrams dropped that are too long; return whether the system does that."""
    if sys.platform != "linux" or sock.family not in NEVER_CUT_UP:
        return False
    try:
        sock.setsockopt(*NEVER_CUT_UP[sock.family])
    except OSError:
        return False
    return True


def split(place: Place) -> Address:
    """Return host and port.

    Raises:
        ValueError: It is not written as an address.
    """
    if isinstance(place, tuple):
        host, port = (*place, None, None)[:2]
        if not isinstance(host, str) or not isinstance(port, int):
            raise ValueError(
                f"an address is written as host:port or a pair (host, port), not {place}"
            )
    else:
        host, _, digits = place.rpartition(":") if isinstance(place, str) else ("", "", "")
        if not host or not digits.isdigit():
            raise ValueError(f"an address is written as host:port, not {place!r}")
        host, port = host.strip("[]"), int(digits)
    if not 0 <= port < 65536:
        raise ValueError(f"a port is a number up to 65535, not {port}")
    return host, port


def _numeric(place: Place) -> tuple[Address, bool]:
    """Return host and port, and whether the host is a number already."""
    host, port = split(place)
    try:
        return (str(ipaddress.ip_address(host)), port), True
    except ValueError:
        return (host, port), False


def is_hostname(place: Place) -> bool:
    """Return whether the host of an address has to be resolved."""
    return not _numeric(place)[1]


def _best(port: int, found: list[Any], here: Address | None) -> Address:
    """Return the first address that a socket at `here` can send to, or else the first one."""
    addresses = [(str(one[4][0]), port) for one in found]
    usable = [there for there in addresses if here is None or not mismatch(here, there)]
    return (usable or addresses)[0]


async def lookup(place: Place, here: Address | None = None) -> Address:
    """Return the numeric address of a place, without blocking the event loop.

    Args:
        place: The address, in which the host may have a name.
        here: The address from which datagrams will be sent there. A host may have addresses of
            several families.

    Raises:
        OSError: The name of the host cannot be resolved.
        ValueError: It is not written as an address.
    """
    address, numeric = _numeric(place)
    if numeric:
        return address
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(*address, type=socket.SOCK_DGRAM)
    except socket.gaierror as error:
        raise OSError(f"{address[0]}: {error.strerror}") from None
    return _best(address[1], found, here)


def lookup_now(place: Place, here: Address | None = None) -> Address:
    """Return the numeric address of a place; the same as `lookup`, but it blocks."""
    address, numeric = _numeric(place)
    if numeric:
        return address
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)
    except socket.gaierror as error:
        raise OSError(f"{address[0]}: {error.strerror}") from None
    return _best(address[1], found, here)


def check_socket(sock: Any) -> None:
    """Raise `ValueError` unless a node can use a socket, and have the socket not block."""
    usable = hasattr(sock, "recvfrom")
    if isinstance(sock, socket.socket):
        internet = sock.family in (socket.AF_INET, socket.AF_INET6)
        usable = internet and sock.type == socket.SOCK_DGRAM and sock.getsockname()[1] > 0
    if not usable:
        raise ValueError(f"sock is a datagram socket that is bound to an address, not {sock!r}")
    if isinstance(sock, socket.socket):
        sock.setblocking(False)
        _never_cut_up(sock)


def mismatch(here: Address, there: Address) -> str:
    """Return why a socket at one address cannot send to another one, or nothing."""
    mine, other = [ipaddress.ip_address(host).version for host, _ in (here, there)]
    if mine == other:
        return ""
    return f"its address {there[0]} is IPv{other}, and this node listens on {here[0]}, IPv{mine}"


class InsecureAddressError(ValueError):
    """A node without a key would listen on another address than loopback."""


def bind(address: Address, insecure: bool) -> socket.socket:
    """Return a datagram socket that is bound to a numeric address.

    Args:
        address: The address.
        insecure: Whether another address than loopback is acceptable.

    Raises:
        InsecureAddressError: The address is not loopback, and must be.
        OSError: The address is not available. The error names it.
    """
    host, port = address
    ip = ipaddress.ip_address(host)
    if not ip.is_loopback and not insecure:
        raise InsecureAddressError(
            f"without a cluster key a node listens on loopback only, not on {host}: "
            f"give key=, or insecure=True if anybody may read and forge its messages"
        )
    sock = socket.socket(socket.AF_INET6 if ip.version == 6 else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        _never_cut_up(sock)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        place = f"[{host}]:{port}" if ip.version == 6 else f"{host}:{port}"
        raise OSError(error.errno, error.strerror, place) from None
    return sock
