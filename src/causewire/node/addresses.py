"""Addresses as people write them, and sockets for them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TypeAlias

from ..transport import Address

__all__ = ["Place", "bind", "lookup", "split"]

Place: TypeAlias = str | Address
"""Where a node is: `"host:port"`, `"[::1]:port"`, or a pair."""

BUFFER = 4 << 20
"""What the socket's buffers should be, as far as the system allows."""


def split(place: Place) -> Address:
    """Host and port."""
    if isinstance(place, tuple):
        host, port = place[0], place[1]
    else:
        host, _, digits = place.rpartition(":")
        if not host or not digits.isdigit():
            raise ValueError(f"an address is written as host:port, not {place!r}")
        host, port = host.strip("[]"), int(digits)
    if not 0 <= port < 65536:
        raise ValueError(f"a port is a number up to 65535, not {port}")
    return host, port


async def lookup(place: Place) -> Address:
    """The numeric address of a place; names are looked up."""
    host, port = split(place)
    try:
        return str(ipaddress.ip_address(host)), port
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except socket.gaierror as error:
        raise OSError(f"{host}: {error.strerror}") from None
    return str(found[0][4][0]), port


def bind(address: Address, insecure: bool) -> socket.socket:
    """A datagram socket; on loopback only, unless datagrams are sealed or it is all right."""
    host, port = address
    ip = ipaddress.ip_address(host)
    if not ip.is_loopback and not insecure:
        raise ValueError(
            f"without a cluster key a node listens on loopback only, not on {host}: "
            f"give key=, or insecure=True if anybody may read and forge its messages"
        )
    sock = socket.socket(socket.AF_INET6 if ip.version == 6 else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock
