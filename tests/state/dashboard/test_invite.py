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
from settings import settings
from state.core import retry
from state.core.toasts import ToastState
from state.dashboard.invite import GuildCardView, InviteState


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
    state.guilds = [GuildCardView("77", "Cats", "", True, False)]
    toasts = await state.get_state(ToastState)
    for server_id, title, text in (
        ("78", "Invite Failed", "Please try again"),
        ("77", "Invite HoldfastBot", "Follow the instructions to add HoldfastBot to Cats"),
    ):
        steps = [state.inviting async for _ in state.invite(server_id)]
        assert steps[0] == server_id, "its button is at work"
        assert (toasts.title, toasts.text, toasts.destructive) == (title, text, title == "Invite Failed")
        assert state.inviting == ""
