"""What the product does where Discord is as slow as it is."""

from typing import Any

from gateways import gateways
from tests.jobs.town import Town


async def test_more_messages_than_a_channel_takes_at_once_all_get_there(town: Town):
    channel: dict[str, Any] = (await town.guild())["channels"][0]
    wanted = [f"Message {n}" for n in range(7)]
    for n, content in enumerate(wanted):
        await gateways().discord.post_message(channel["id"], {"content": content}, f"strict-{channel['id'][-8:]}-{n}")
    shown: dict[str, Any] = (await town.guild())["channels"][0]
    assert [message["content"] for message in shown["messages"]] == wanted
