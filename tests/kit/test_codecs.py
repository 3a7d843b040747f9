"""Payloads that are not bytes."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from causewire.kit import GroupMessage, Request
from causewire.kit.codecs import CodecSpec
from causewire.testing.virtual import VirtualLoop, run

from .helper import kit

PAYLOAD = {"text": "Zoë", "numbers": [1, 2.5, None, True]}


@pytest.mark.parametrize("codec", ["json", "msgpack", (pickle.dumps, pickle.loads)])
def test_values_travel_in_requests_and_messages(
    codec: CodecSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    if codec == "msgpack":  # the two functions of it that are used
        module: Any = SimpleNamespace(packb=pickle.dumps, unpackb=pickle.loads)
        monkeypatch.setitem(sys.modules, "msgpack", module)

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
