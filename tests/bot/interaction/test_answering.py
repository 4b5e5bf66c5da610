"""The work behind an answer, and its end when the answer is cancelled."""

import asyncio

from bot.interaction import answering
from bot.messages.reply import Reply


async def test_work_ends_with_the_answer_that_waits_for_it() -> None:
    begun, ends = asyncio.Event(), list[str]()

    async def work() -> Reply:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("work")
        return Reply("Never")

    task = asyncio.create_task(answering.outcome(work()))
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (task.cancelled(), ends) == (True, ["work"])
