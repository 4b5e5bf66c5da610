"""Commands used outside of the bot's servers: in a direct message, in a group, or as a user-installed app."""

import logging
from typing import Any

import pytest

from tests.bot.acquaintance import is_, names
from tests.bot.test_faulty_answers import COMMANDS, EVERYBODY, commands_of
from tests.bot.test_faulty_answers import living as living
from tests.bot.test_faulty_answers import sandbox_url as sandbox_url
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import CLUB, Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
]

IN_A_SERVER = "Use this inside a server."
FILLED_IN = {"try": {"rule": "Holder", "address": "wallet.eth"}}
"""The options that Discord requires for a command."""
NOT_HERE = "The bot is not in this server"


def said(answer: dict[str, Any]) -> str:
    """Return the whole answer, after checking that it is private and offers no form that leads nowhere."""
    assert "modal" not in answer, answer
    (message,) = answer["messages"]
    assert message["ephemeral"]
    return message["content"] + "".join(embed["title"] + embed["description"] for embed in message["embeds"])


@pytest.mark.parametrize(
    "where", [{"context": "bot_dm"}, {"context": "private_channel"}, {"context": "guild"}], ids=str
)
async def test_every_command_answers_with_a_sentence_where_the_bot_is_not(
    discord: Outside, living: None, where: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    await is_(names, EVERYBODY)
    await is_(lambda: commands_of(discord), COMMANDS)
    await discord.control("application", user_install=True)
    place = {"guild": CLUB} if where["context"] == "guild" else {}
    for command in COMMANDS:
        options = FILLED_IN.get(command, {})
        body = {"user": "carol", "kind": "command", "name": command, "options": options, **where, **place}
        answer = await discord.http.post("/control/interactions", json=body, timeout=30)
        assert answer.status_code == 200, (command, answer.text)
        assert (NOT_HERE if place else IN_A_SERVER) in said(answer.json()), command
    for command, option in (("why", "role"), ("wallets", "remove"), ("try", "rule")):
        options = {option: "a"}
        body = {"user": "carol", "kind": "autocomplete", "name": command, "options": options, **where, **place}
        answer = await discord.http.post("/control/interactions", json=body, timeout=30)
        assert (answer.status_code, answer.json().get("choices")) == (200, []), answer.text
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR or one.exc_info] == []
