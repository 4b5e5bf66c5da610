"""The invite list when Discord cannot be asked: who has to connect again, and who only has to retry."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import reflex as rx

import models
from gateways import close_gateways
from models import User, now, transaction
from services.accounts import sessions
from services.accounts.encryption import seal
from services.core.errors import ProviderUnavailable
from services.servers.servers import GuildView
from settings import settings
from state.core import retry
from state.core.toasts import ToastState
from state.dashboard import invite
from state.dashboard.invite import InviteState, NavigationInviteState
from state.dashboard.servers import DashboardState


@pytest.fixture(autouse=True)
async def nobody_outside(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[None]:
    """A database, and a Discord that does not answer."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("SANDBOX_PORT", "1")
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)
    settings.cache_clear()
    await models.use(database_url)
    yield
    await close_gateways()
    await models.use(None)
    settings.cache_clear()


async def the_list_of(*, connected: bool) -> InviteState:
    """Return the state of a person's tab on /invite."""
    async with transaction() as db:
        user = User(
            discord_id="42", username="zoe", connected=connected, access_token=seal("a token"),
            token_expires_at=now() + timedelta(days=3),
        )  # fmt: skip
        db.add(user)
        await db.flush()
        session = await sessions.open_session(db, user.id or 0, "")
    root = rx.State()
    cookie = f"{sessions.cookie_name()}={session}"
    root._update_router_vars({"headers": {"cookie": cookie}, "pathname": "/invite", "asPath": "/invite"}, {})
    return await root.get_state(InviteState)


async def test_who_is_no_longer_connected_is_asked_to_connect() -> None:
    state = await the_list_of(connected=False)
    await state.load()
    assert (state.loaded, state.connected, state.failed, state.guilds) == (True, False, False, [])


async def test_an_outage_of_discord_is_a_failure_to_try_again_and_no_disconnection() -> None:
    state = await the_list_of(connected=True)
    with pytest.raises(ProviderUnavailable):
        await state.load()
    assert (state.loaded, state.connected, state.failed) == (False, True, True)


async def test_an_invite_that_fails_says_so_and_one_that_opens_names_bot_and_server() -> None:
    state = await the_list_of(connected=True)
    state.guilds = [GuildView("77", "Cats", None, None, True, False)]
    toasts = await state.get_state(ToastState)
    for server_id, title, text in (
        ("78", "Invite Failed", "Please try again"),
        ("77", "Invite HoldfastBot", "Follow the instructions to add HoldfastBot to Cats"),
    ):
        steps = [state.inviting async for _ in state.invite(server_id)]
        assert steps[0] == server_id, "its button is at work"
        assert (toasts.title, toasts.text, toasts.destructive) == (title, text, title == "Invite Failed")
        assert state.inviting == ""


async def test_a_double_click_opens_one_tab_of_discord_and_a_later_click_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = await the_list_of(connected=True)
    state.guilds = [GuildView(one, one, None, None, True, False) for one in ("77", "78")]
    dashboard, bar = await state.get_state(DashboardState), await state.get_state(NavigationInviteState)

    async def opened(server_id: str) -> tuple[bool, bool, bool]:
        """Return whether a click opens a tab on the invite list, on the dashboard and in the navigation."""
        steps = [step async for step in state.invite(server_id) if step is not None]
        return bool(steps), bool(await dashboard.invite(server_id)), await bar.open() is not None

    monkeypatch.setattr(invite, "INVITE_AGAIN_SECONDS", 3_600.0)
    assert await opened("77") == (True, True, True)
    assert await opened("77") == (False, False, False)
    assert await opened("78") == (True, True, False), "another server"
    monkeypatch.setattr(invite, "INVITE_AGAIN_SECONDS", 0.0)
    assert await opened("78") == (True, True, True), "a while later"
