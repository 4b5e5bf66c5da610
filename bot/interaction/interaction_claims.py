"""Claim each interaction before it is answered, so that one process answers it and no other."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from nextcord.webhook.async_ import async_context

from bot.interaction.delivery import SENDING_ERRORS
from models import transaction
from services.guilds import rate_shares
from services.guilds.gateway import interaction_claims
from services.runtime.database_faults import NOT_DONE

CLAIMED_WITHIN = 0.8
"""Seconds for which an interaction waits until the database says that no other process answers it."""
OLDER_ANSWERS_WITHIN, SEEN_WITHIN = 1.0, 0.5
"""Seconds for an older bot to send its first answer, which it does before anything else, and for Discord to show it."""
CHOICES = 4
"""The type of an interaction that asks for choices. It changes nothing, so a second answer is harmless."""

Parse = Callable[[Any], Any]


class Claims:
    """The running claims. They are needed because a resume repeats interactions, and two sessions of a shard both get
    each interaction.
    """

    def __init__(self, state: Any) -> None:
        self._state: Any = state
        self.tasks: set[asyncio.Task[None]] = set()

    def before(self, parse: Parse) -> Callable[[Any], None]:
        """Return a parser that passes an interaction's data to `parse` if this process may answer it."""

        def parsed(data: Any) -> None:
            task = asyncio.create_task(self._claimed(data, parse))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

        return parsed

    async def _claimed(self, data: Any, parse: Parse) -> None:
        ours, beside_older = True, False
        with contextlib.suppress(*NOT_DONE, TimeoutError):
            async with asyncio.timeout(CLAIMED_WITHIN), transaction() as db:
                ours = await interaction_claims.claim(db, str(data["id"]))
                beside_older = ours and await rate_shares.is_beside_an_older_bot(db)
        if ours and not (beside_older and await self._is_answered(data)):
            parse(data)

    async def _is_answered(self, data: Any) -> bool:
        """Wait a moment, and return whether an older bot, which does not claim interactions, has answered this one.

        A form is not a message and counts as no answer: Discord refuses the second form, which is harmless.
        """
        if data["type"] == CHOICES:
            return False
        await asyncio.sleep(OLDER_ANSWERS_WITHIN)
        session = self._state.http._HTTPClient__session
        try:
            async with asyncio.timeout(SEEN_WITHIN):
                await async_context.get().get_original_interaction_response(
                    int(data["application_id"]), data["token"], session=session
                )
        except SENDING_ERRORS:
            # There is no answer (404), or Discord does not say; two answers are better than none.
            return False
        return True
