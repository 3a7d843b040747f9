"""The chat of five friends: the program that each of them runs.

Every line goes to all the others. A conversation has an opening, an answer and a
last word, which the opener has. Many go on at once, so messages and replies cross;
whoever reads an answer before the question has seen causality break.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from causewire.testing.puppet import Puppet

FRIENDS = ("ann", "bob", "cy", "dora", "eve")

CONVERSATIONS = (
    ("Has anybody seen my keys?", "On the kitchen table.", "Got them, thanks!"),
    ("Shall we meet at noon?", "Fine with me. Where?", "At the station."),
    ("I broke the blue cup.", "Never mind, it was old.", "I will bring a new one."),
    ("The 5:15 is cancelled.", "Then take the 5:40.", "Good, see you at six."),
    ("Do not open the red folder!", "Too late. Why not?", "It was to be a surprise."),
    ("Who feeds the cat today?", "I do, at seven.", "She will be pleased."),
    ("I lost my ring.", "I found it!", "You have saved my day."),
    ("Is the meeting still on?", "No, it was called off.", "Then I go home."),
)


class Line(NamedTuple):
    """The text of a message, and its place in a conversation."""

    text: str
    topic: int
    turn: int
    speakers: tuple[str, str]
    """Who opened the conversation, and who answers."""
    number: int
    """Of the conversation, among those that its opener opened."""

    def answers(self, other: Line) -> bool:
        """Return whether this is the answer to another line."""
        return self.turn == other.turn + 1 and self[3:] == other[3:]


class Friend(Puppet):
    """Opens conversations, and answers when it is spoken to."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.random = Random(f"{settings['seed']} {settings['name']}")
        self.talking: asyncio.Task[None] | None = None
        """Kept, so that it is not forgotten."""
        self.said: dict[int, Line] = {}
        self.got = 0

    async def obey(self, command: str, words: Sequence[str]) -> None:
        if command == "talk":
            self.talking = asyncio.create_task(self.talk(int(words[0]), float(words[1])))
        elif command == "state":
            self.say(up=len(self.node.peers_up()), sent=len(self.said), got=self.got)

    async def talk(self, conversations: int, pause: float) -> None:
        """Open conversations, with a pause of random length (on average `pause`) after each."""
        for number in range(conversations):
            topic = self.random.randrange(len(CONVERSATIONS))
            speakers = (self.node.name, self.random.choice(self.others))
            await self.speak(Line(CONVERSATIONS[topic][0], topic, 0, speakers, number))
            await asyncio.sleep(self.random.uniform(0, 2 * pause))

    async def speak(self, line: Line) -> None:
        """Send a line to all others."""
        receipt = await self.node.send(self.others, json.dumps(line).encode())
        self.said[receipt.mid] = line

    async def listen(self) -> None:
        async for message in self.node:
            self.got += 1
            line = Line(*json.loads(message.payload))
            turn, words = line.turn + 1, CONVERSATIONS[line.topic]
            if turn < len(words) and line.speakers[turn % 2] == self.node.name:
                await self.speak(line._replace(text=words[turn], turn=turn))

    def last_words(self) -> dict[str, Any]:
        return {"said": self.said, "stats": self.node.stats()}


if __name__ == "__main__":
    logging.disable()  # the network is bad on purpose: nobody needs to be warned of it
    Friend.perform()
