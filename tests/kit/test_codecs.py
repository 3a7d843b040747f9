"""Payloads that are not bytes."""

from __future__ import annotations

import pickle
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

from causewire.kit import GroupMessage, Request
from causewire.kit.codecs import CodecSpec, codec_of
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit

PAYLOAD = {"text": "Zoë", "numbers": [1, 2.5, None, True]}


def stand_in() -> Any:
    """The two functions of `msgpack` that are used, if it is not installed."""

    def unpackb(data: bytes, *, strict_map_key: bool = True) -> Any:
        value = pickle.loads(data)
        if strict_map_key and isinstance(value, dict) and not all(map(_is_text, value)):
            raise ValueError("int is not allowed for map key when strict_map_key=True")
        return value

    return SimpleNamespace(packb=pickle.dumps, unpackb=unpackb)


def _is_text(key: Any) -> bool:
    return isinstance(key, str | bytes)


def test_messagepack_has_maps_with_keys_of_any_type(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("msgpack") is None:
        monkeypatch.setitem(sys.modules, "msgpack", stand_in())
    codec = codec_of("msgpack")
    value = {1: "one", "two": [2.5, None, True, b"bytes", "Zoë"]}
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize("codec", ["json", "msgpack", (pickle.dumps, pickle.loads)])
def test_values_travel_in_requests_and_messages(
    codec: CodecSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    if codec == "msgpack" and find_spec("msgpack") is None:
        monkeypatch.setitem(sys.modules, "msgpack", stand_in())

    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice", codec=codec) as alice, kit(loop, "bob", codec=codec) as bob:

            @bob.serves()
            async def echo(request: Request) -> Any:
                return [request.payload]

            assert await alice.request("bob", PAYLOAD) == [PAYLOAD]
            room = await alice.join("room")
            await room.send(PAYLOAD)
            async for item in room:
                if isinstance(item, GroupMessage):
                    assert item.payload == PAYLOAD
                    break

    run(main)


def test_without_a_codec_payloads_are_bytes() -> None:
    async def main(loop: VirtualLoop) -> None:
        async with kit(loop, "alice") as alice:
            room = await alice.join("room")
            with pytest.raises(TypeError, match="not dict"):
                await room.send(PAYLOAD)

    run(main)


def test_an_unknown_codec_is_refused() -> None:
    async def main(loop: VirtualLoop) -> None:
        with pytest.raises(ValueError, match="'json', 'msgpack' or a pair of functions"):
            async with kit(loop, "alice", codec="xml"):
                pass

    run(main)
