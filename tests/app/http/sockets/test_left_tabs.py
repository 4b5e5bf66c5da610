"""Closed tabs of one address do not fill the memory."""

import reflex as rx
from reflex.istate.data import RouterData
from reflex.istate.manager.memory import StateManagerMemory
from reflex.istate.manager.token import BaseStateToken

from app.http.sockets.left_tabs import KEPT, drop


async def visit(manager: StateManagerMemory, tab: str, address: str, at: float) -> None:
    """Add a tab of this address, last used at this moment."""
    token = BaseStateToken(ident=tab, cls=rx.State)
    async with manager.modify_state(token) as state:
        state.router_data = {"ip": address}
        state.router = RouterData.from_router_data(state.router_data)
    key = next(key for key, (_, one) in manager._token_expires_at.items() if one.ident == tab)
    manager._token_expires_at[key] = (at, manager._token_expires_at[key][1])


def tabs(manager: StateManagerMemory) -> set[str]:
    """Return the tabs for which something is kept in memory."""
    return {key.partition("/")[0] for key in manager.states}


async def test_the_oldest_closed_tabs_of_an_address_are_dropped() -> None:
    manager = StateManagerMemory()
    soon = 4_000_000_000.0
    for number in range(2 * KEPT):
        await visit(manager, f"crowd{number}", "203.0.113.7", soon + number)
    await visit(manager, "open", "203.0.113.7", soon - 1)
    await visit(manager, "busy", "203.0.113.7", soon - 1)
    await visit(manager, "other", "198.51.100.7", soon - 1)
    async with manager.modify_state(BaseStateToken(ident="busy", cls=rx.State)):
        drop(manager, {"open"})
    newest = {f"crowd{number}" for number in range(KEPT + 1, 2 * KEPT)}
    assert tabs(manager) >= {"open", "busy", "other"} | newest
    assert len(tabs(manager)) <= KEPT + 3
    assert "crowd0" not in tabs(manager)
    await manager.close()
