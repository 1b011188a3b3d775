"""aiogram: updates are handled one after the other; its polling makes a task of each besides."""

import asyncio
import json
import sys
import time

from aiogram import Bot, Dispatcher, F
from aiogram.client.session.base import BaseSession
from aiogram.types import Message


class Sink(BaseSession):
    """Takes what is sent, without a network."""

    def __init__(self):
        super().__init__()
        self.sent = 0
        self.reply = None

    async def make_request(self, bot, method, timeout=None):
        self.sent += 1
        return self.reply

    async def stream_content(self, *arguments, **named):
        yield b""

    async def close(self):
        pass


async def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().splitlines()
    warm = int(sys.argv[2])
    sink = Sink()
    bot = Bot("1:TOKEN", session=sink)
    sink.reply = Message.model_validate(json.loads(lines[0])["message"])
    dispatcher = Dispatcher()

    @dispatcher.message(F.text == "hi")
    async def answer(message):
        await message.answer("Hello!")

    for line in lines[:warm]:
        await dispatcher.feed_raw_update(bot, json.loads(line))
    cpu, begun = time.process_time(), time.perf_counter()
    for line in lines[warm:]:
        await dispatcher.feed_raw_update(bot, json.loads(line))
    wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    if sink.sent != len(lines):
        raise SystemExit(f"{sink.sent} replies")
    print(json.dumps({"messages": len(lines) - warm, "wall": wall, "cpu": cpu}))


asyncio.run(main())
