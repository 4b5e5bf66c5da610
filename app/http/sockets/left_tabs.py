"""Limits the states of closed tabs. Reflex keeps each for minutes, so that a tab that reconnects finds its form."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Container
from contextlib import asynccontextmanager

from reflex.istate.manager.memory import StateManagerMemory
from reflex.istate.manager.token import StateToken
from reflex_base.registry import RegistrationContext

from app.http.caller_address import caller_address
from services.runtime.retries import run_forever
from services.runtime.task_cancellation import stop

KEPT = 30
"""Tabs per address. Each takes 60 KB, 2 MB with a full rule form; an address may open hundreds in a minute."""
EVERY_SECONDS = 1.0


@asynccontextmanager
async def dropping() -> AsyncGenerator[None]:
    """Drop the oldest states while the block runs, if states are in this process's memory and not in Redis."""
    task = asyncio.create_task(run_forever(_drop_for_ever))
    try:
        yield
    finally:
        await stop(task)


async def _drop_for_ever() -> None:
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        app = RegistrationContext.get().app
        manager, sockets = app.state_manager, app.event_namespace
        if isinstance(manager, StateManagerMemory) and sockets is not None:
            drop(manager, sockets._token_manager.token_to_sid)


def drop(manager: StateManagerMemory, connected: Container[str]) -> None:
    """Keep all connected tabs, and of the others the KEPT most recently used per address."""
    if len(manager._token_expires_at) <= KEPT:
        return
    left: defaultdict[str, list[tuple[float, StateToken[object]]]] = defaultdict(list)
    for key, (ends, token) in manager._token_expires_at.items():
        if token.ident not in connected:
            address = manager.states[key].router.session.client_ip if key in manager.states else ""
            left[caller_address({"client": (address, 0)})].append((ends, token))
    for tabs in left.values():
        for _, token in sorted(tabs, key=lambda tab: tab[0])[:-KEPT]:
            lock = manager._states_locks.get(token.lock_key)
            if lock is None or not lock.locked():  # otherwise one of its handlers still runs
                manager._purge_token(token)
