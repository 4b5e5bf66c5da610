"""What the operator's pages say about an installation."""

import pytest
import reflex as rx
from pydantic import SecretStr

from settings import settings
from state.help import operator
from state.help.operator import OperatorState, presences

CALLBACK = "/api/auth/discord/callback"


async def loaded_under(origin: str) -> OperatorState:
    root = rx.State()
    root._update_router_vars({"headers": {"origin": origin}, "pathname": "/oauth-fix", "asPath": "/oauth-fix"}, {})
    state = await root.get_state(OperatorState)
    state.load()
    return state


async def test_the_callback_url_is_built_from_the_current_host() -> None:
    state = await loaded_under(settings().public_url)
    assert state.callback_url == settings().public_url + CALLBACK
    assert state.used_callback_url == ""
    assert state.host == "localhost"


async def test_another_host_than_public_urls_is_warned_about() -> None:
    state = await loaded_under("https://holdfast.example")
    assert state.callback_url == f"https://holdfast.example{CALLBACK}"
    assert state.used_callback_url == settings().public_url + CALLBACK
    assert state.host == "holdfast.example"


async def test_where_the_pages_are_left_out_no_setting_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await loaded_under(settings().public_url)).presences
    left_out = settings().model_copy(update={"operator_pages": False})
    monkeypatch.setattr(operator, "settings", lambda: left_out)
    assert (await loaded_under(settings().public_url)).presences == []


def test_settings_are_told_by_name_and_presence_alone() -> None:
    known = settings().model_copy(
        update={"discord_client_id": "123456", "discord_bot_token": SecretStr(" "), "secret_key": None}
    )
    told = {one.name: one.present for one in presences(known)}
    assert told["DISCORD_CLIENT_ID"]
    assert not told["DISCORD_BOT_TOKEN"]
    assert not told["SECRET_KEY"]
    assert "123456" not in repr(presences(known))
