"""The verification channel against the sandbox: created, checked, repaired, and refused where Discord refuses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from sqlalchemy import text
from sqlmodel import col, select, update

from gateways import gateways
from gateways.discord.channels import Channel, Message
from locales import speaking
from models import AsyncSession, Event, Server, transaction
from services.core.actors import Actor
from services.core.errors import Conflict, FieldRefused, Forbidden, ProviderUnavailable, ServerNotFound
from services.guilds import alert_channel, panel, verification_channel
from services.guilds.verification_channel import BOT_ALLOWED, EMBED, HISTORY, MEMBERS_ALLOWED, SEND, VIEW, Repaired
from settings import settings
from tests.jobs.conftest import product as product
from tests.jobs.town import Town, a_town
from tests.support.builders import a_server


@pytest.fixture
async def town(product: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada", "carol") as made:
        yield made


def acting(town: Town, who: str) -> Actor:
    return Actor(0, town.people[who]["id"], town.people[who]["username"])


async def repair(town: Town, who: str = "ada") -> Repaired:
    async with transaction() as db:
        return await verification_channel.create_or_repair(db, gateways(), acting(town, who), town.server_id)


async def view(town: Town) -> verification_channel.ChannelsView:
    async with transaction() as db:
        return await verification_channel.view(db, gateways(), acting(town, "ada"), town.server_id)


async def shown(town: Town, channel_id: str) -> dict[str, Any]:
    """Return the channel as the sandbox has it."""
    return next(one for one in (await town.guild())["channels"] if one["id"] == channel_id)


async def discord(town: Town, method: str, path: str, body: Any = None) -> Any:
    """Call Discord with the bot's own token."""
    token = settings().discord_bot_token.get_secret_value()
    headers = {"Authorization": f"Bot {token}"}
    answer = await town.control.request(method, f"/discord/api/v10{path}", headers=headers, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


async def grant_the_bot(town: Town, permissions: int) -> None:
    bot = next(role for role in (await town.guild())["roles"] if role["managed"])
    await town.call("guilds", action="edit_role", guild=town.name, role=bot["id"], permissions=str(permissions))


async def test_it_makes_a_channel_that_members_read_and_the_bot_writes_with_one_panel_that_stays_one(town: Town):
    made = await repair(town)
    assert made.done == ("Created the channel #verify.", "Posted the panel.")
    channel = await discord(town, "GET", f"/channels/{made.channel_id}")
    overwrites = {one["id"]: (int(one["allow"]), int(one["deny"])) for one in channel["permission_overwrites"]}
    me = (await gateways().discord.me()).id
    everyone = overwrites[(await town.guild())["id"]]
    assert everyone[0] & MEMBERS_ALLOWED == MEMBERS_ALLOWED
    assert everyone[1] & SEND
    assert overwrites[me][0] & BOT_ALLOWED == BOT_ALLOWED
    assert panel.SAFETY in channel["topic"]
    (message,) = (await shown(town, made.channel_id))["messages"]
    fields = " ".join(field["value"] for field in message["embeds"][0]["fields"])
    assert panel.SAFETY in fields
    assert f"(id {me})" in fields
    buttons = message["components"][0]["components"]
    assert [(one["custom_id"], one["label"]) for one in buttons] == [
        ("holdfast:verify", "Verify"), ("holdfast:roles", "My roles"), ("holdfast:recheck", "Re-check"),
    ]  # fmt: skip
    assert await repair(town) == Repaired(made.channel_id, "verify", ())
    assert len((await shown(town, made.channel_id))["messages"]) == 1
    assert (await view(town)).faults == ()


async def test_what_is_missing_is_reported_and_repaired_and_what_an_admin_added_stays(town: Town):
    made = await repair(town)
    guild = (await town.guild())["id"]
    (message,) = (await shown(town, made.channel_id))["messages"]
    await discord(town, "DELETE", f"/channels/{made.channel_id}/messages/{message['id']}")
    invite = 1 << 0
    changed = {"type": 0, "allow": str(SEND | invite), "deny": "0"}
    await discord(town, "PUT", f"/channels/{made.channel_id}/permissions/{guild}", changed)
    seen = await view(town)
    assert seen.name == "verify"
    assert [fault.split(":")[0] for fault in seen.faults] == ["Its permissions were changed", "The panel was deleted."]
    assert (await repair(town)).done == ("Corrected the channel's permissions.", "Posted the panel.")
    channel = await discord(town, "GET", f"/channels/{made.channel_id}")
    everyone = next(one for one in channel["permission_overwrites"] if one["id"] == guild)
    assert int(everyone["allow"]) & (SEND | invite | VIEW) == invite | VIEW
    assert (await view(town)).faults == ()


async def test_a_deleted_channel_is_made_again_and_an_old_panel_is_brought_up_to_date(town: Town):
    made = await repair(town)
    await discord(town, "DELETE", f"/channels/{made.channel_id}")
    assert (await view(town)).faults == ("The channel was deleted.",)
    again = await repair(town)
    assert again.channel_id != made.channel_id
    (message,) = (await shown(town, again.channel_id))["messages"]
    path = f"/channels/{again.channel_id}/messages/{message['id']}"
    await discord(town, "PATCH", path, {"embeds": [{"title": "Of last year"}]})
    assert (await view(town)).faults == ("The panel is not up to date.",)
    assert (await repair(town)).done == ("Updated the panel.",)
    assert [one["id"] for one in (await shown(town, again.channel_id))["messages"]] == [message["id"]]


async def change(town: Town, who: str = "ada", **texts: str) -> str | None:
    wanted = replace(panel.default_texts(), **texts)
    async with transaction() as db:
        return await verification_channel.change_panel(db, gateways(), acting(town, who), town.server_id, wanted)


async def test_a_servers_own_words_are_in_its_panel_and_stay_there(town: Town):
    assert await change(town, title="Before the channel") is None, "they wait for it"
    made = await repair(town)
    (message,) = (await shown(town, made.channel_id))["messages"]
    assert message["embeds"][0]["title"] == "Before the channel"
    words = {"title": "{server} wants you", "text": "Press **{button}**.", "button": "Start", "color": "#a02020"}
    assert await change(town, **words) == "verify"
    (message,) = (await shown(town, made.channel_id))["messages"]
    embed = message["embeds"][0]
    assert (embed["title"], embed["description"]) == (f"{town.name} wants you", "Press **Start**.")
    assert embed["color"] == 0xA02020
    assert panel.SAFETY in embed["fields"][0]["value"], "nobody can take that away"
    first = message["components"][0]["components"][0]
    assert (first["label"], first["custom_id"]) == ("Start", panel.VERIFY)
    seen = await view(town)
    assert (seen.faults, seen.panel.color) == ((), "#A02020")
    assert await repair(town) == Repaired(made.channel_id, "verify", ())
    await change(town)
    assert (await view(town)).panel == panel.default_texts()
    async with transaction() as db:
        assert (await db.get_one(Server, town.server_id)).panel_title is None, "a later default is followed"


@pytest.mark.parametrize("posted", [True, False])
async def test_texts_that_are_saved_twice_are_in_the_log_once(town: Town, posted: bool):
    if posted:
        await repair(town)
    for _turn in range(2):
        await change(town, title="Hello")
    async with transaction() as db:
        asked = select(Event).where(Event.server_id == town.server_id, Event.kind == "panel.changed")
        assert len((await db.exec(asked)).all()) == 1


async def change_language(town: Town, language: str, **texts: str) -> None:
    wanted = replace(panel.in_language(panel.default_texts(), language), **texts)
    async with transaction() as db:
        await verification_channel.change_panel(db, gateways(), acting(town, "ada"), town.server_id, wanted)


async def test_a_panel_is_in_the_language_of_its_server_but_for_an_admins_own_words(town: Town):
    made = await repair(town)
    await change_language(town, "ja", button="Go")
    (message,) = (await shown(town, made.channel_id))["messages"]
    (embed,) = message["embeds"]
    assert (embed["title"], embed["fields"][0]["name"]) == ("NFTでロールをもらおう", "安全のために")
    assert "**Go**を押して" in embed["description"]
    labels = [one["label"] for one in message["components"][0]["components"]]
    assert labels == ["Go", "マイロール", "再確認"]
    assert ((await view(town)).faults, (await view(town)).panel.language) == ((), "ja")
    async with transaction() as db:
        server = await db.get_one(Server, town.server_id)
        assert (server.language, server.panel_title, server.panel_button) == ("ja", None, "Go")
    await change_language(town, "en")
    (message,) = (await shown(town, made.channel_id))["messages"]
    assert message["embeds"][0]["title"] == "Your NFTs, your roles"


async def test_a_channel_whose_creation_was_not_answered_is_known_by_its_topic_in_any_language(town: Town):
    async with transaction() as db:
        (await db.get_one(Server, town.server_id)).language = "es"
    made = await repair(town)
    channel = await discord(town, "GET", f"/channels/{made.channel_id}")
    assert channel["topic"].startswith("Verifica tus billeteras")
    async with transaction() as db:
        server = await db.get_one(Server, town.server_id)
        server.verify_channel_id, server.language = None, "ja"
    assert (await repair(town)).channel_id == made.channel_id


async def test_sentences_that_discord_would_refuse_change_nothing(town: Town):
    made = await repair(town)
    before = (await shown(town, made.channel_id))["messages"]
    with pytest.raises(FieldRefused, match="is not a placeholder"):
        await change(town, text="Hello {name}")
    with pytest.raises(ServerNotFound):
        await change(town, "carol", title="Mine now")
    assert (await shown(town, made.channel_id))["messages"] == before
    assert (await view(town)).panel == panel.default_texts()


async def test_what_was_made_before_a_crash_is_taken_up_and_not_made_twice(town: Town):
    made = await repair(town)
    async with transaction() as db:
        await db.exec(
            update(Server)
            .where(col(Server.id) == town.server_id)
            .values(verify_channel_id=None, panel_message_id=None)
        )  # fmt: skip
    assert await repair(town) == Repaired(made.channel_id, "verify", ())
    assert len([one for one in (await town.guild())["channels"] if one["name"] == "verify"]) == 1


async def test_nobody_waits_for_another_change_of_the_channel(town: Town):
    made = await repair(town)
    async with transaction() as holder:
        await holder.lock(f"channel:{town.server_id}", 2)
        with pytest.raises(Conflict, match="right now"):
            await repair(town)
        with pytest.raises(Conflict, match="right now"):
            await change(town, title="Another title")
        assert await refresh(town) is False
    assert await repair(town) == Repaired(made.channel_id, "verify", ())


async def refresh(town: Town) -> bool:
    async with transaction() as db:
        return await verification_channel.refresh_panel(db, gateways(), await db.get_one(Server, town.server_id))


async def test_nothing_is_locked_while_discord_is_asked_about_the_panel(town: Town, monkeypatch: pytest.MonkeyPatch):
    await repair(town)
    channel, free = gateways().discord.channel, list[bool]()

    async def and_meanwhile(channel_id: str) -> Channel:
        async with transaction() as db:
            free.append(await db.try_lock(f"channel:{town.server_id}", 2))
        return await channel(channel_id)

    monkeypatch.setattr(gateways().discord, "channel", and_meanwhile)
    assert await refresh(town)
    assert free == [True]


@pytest.mark.parametrize("saved", [True, False], ids=["saved", "being saved"])
async def test_an_older_text_does_not_stay_in_the_panel(town: Town, monkeypatch: pytest.MonkeyPatch, saved: bool):
    made = await repair(town)
    async with transaction() as db:
        (await db.get_one(Server, town.server_id)).panel_title = "Old title"
    edit = gateways().discord.edit_message
    async with AsyncExitStack() as ends:

        async def after_another_change(*arguments: Any) -> Message:
            monkeypatch.setattr(gateways().discord, "edit_message", edit)
            if saved:
                await change(town, title="New title")
            else:
                db = await ends.enter_async_context(transaction())
                texts = replace(panel.default_texts(), title="New title")
                await verification_channel.change_panel(db, gateways(), acting(town, "ada"), town.server_id, texts)
            return await edit(*arguments)

        monkeypatch.setattr(gateways().discord, "edit_message", after_another_change)
        # Where the other change is not saved yet, the scheduler tries again later.
        assert await refresh(town) is saved
    assert await refresh(town)
    (message,) = (await shown(town, made.channel_id))["messages"]
    assert message["embeds"][0]["title"] == "New title"


async def test_who_waits_for_a_slow_discord_holds_no_connection(product: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification_channel, "AT_ONCE", 1)
    monkeypatch.setattr(verification_channel, "_turns", WeakKeyDictionary[Any, Any]())
    async with transaction() as db:
        servers = [(await a_server(db)).id, (await a_server(db)).id]
    answered, arrived = asyncio.Event(), [asyncio.Event(), asyncio.Event()]
    give_up_the_connection, given_up = verification_channel.release, asyncio.Semaphore(0)

    async def release(db: AsyncSession) -> None:
        await give_up_the_connection(db)
        given_up.release()

    async def change_slowly(number: int) -> None:
        async with transaction() as db:
            server = await db.get_one(Server, servers[number])
            async with verification_channel._changing(db, server):
                arrived[number].set()
                await answered.wait()

    monkeypatch.setattr(verification_channel, "release", release)
    async with asyncio.timeout(60):
        first = asyncio.create_task(change_slowly(0))
        await arrived[0].wait()
        second = asyncio.create_task(change_slowly(1))
        for _ in servers:
            await given_up.acquire()
        assert not arrived[1].is_set()
        async with transaction() as db:
            held = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = "
            assert (await db.execute(text(f"{held}current_database()"))).scalar_one() == 1
        answered.set()
        await asyncio.gather(first, second)
    assert arrived[1].is_set()


@pytest.mark.parametrize(("lacking", "name"), [(1 << 4, "Manage Channels"), (1 << 11, "Send Messages")])
async def test_without_the_permission_it_says_which_one_and_makes_nothing(town: Town, lacking: int, name: str):
    everyone = (await town.guild())["id"]
    await town.call("guilds", action="edit_role", guild=town.name, role=everyone, permissions="0")
    await grant_the_bot(town, 2416004112 & ~lacking)
    with pytest.raises(Conflict, match=name):
        await repair(town)
    assert [one for one in (await town.guild())["channels"] if one["name"] == "verify"] == []


async def test_what_discord_refuses_is_told_in_its_own_words_and_an_outage_is_not(town: Town):
    full = {"code": 30013, "message": "Maximum number of server channels reached (500)"}
    route = {"target": "discord", "kind": "answer", "method": "POST", "path": "/guilds/*/channels", "seconds": 60}
    try:
        await town.call("faults", **route, status=400, body=full)
        with pytest.raises(Conflict, match=r"refused the change \(Maximum number of server channels reached \(500\)\)"):
            await repair(town)
        await town.control.delete("/control/faults")
        await town.call("faults", **route, status=403, body="an error page of the proxy")
        with pytest.raises(ProviderUnavailable):
            await repair(town)
    finally:
        await town.control.delete("/control/faults")
    assert (await repair(town)).channel_name == "verify"


async def test_a_channel_that_the_bot_cannot_see_any_more_is_told_not_doubled(town: Town):
    made = await repair(town)
    me = (await gateways().discord.me()).id
    body = {"type": 1, "allow": "0", "deny": str(VIEW)}
    await discord(town, "PUT", f"/channels/{made.channel_id}/permissions/{me}", body)
    assert "cannot see" in (await view(town)).faults[0]
    with pytest.raises(Conflict, match="cannot see"):
        await repair(town)
    assert len([one for one in (await town.guild())["channels"] if one["name"] == "verify"]) == 1


async def test_a_panel_that_the_bot_may_not_read_is_reported_and_repaired(town: Town):
    """With an overwrite for the bot, an admin has taken what the bot needs there; the tab is where that is repaired."""
    made = await repair(town)
    me = (await gateways().discord.me()).id
    body = {"type": 1, "allow": str(VIEW | SEND | EMBED), "deny": str(HISTORY)}
    await discord(town, "PUT", f"/channels/{made.channel_id}/permissions/{me}", body)
    _, unreadable = (await view(town)).faults
    assert unreadable == "The bot may not read #verify. Give it Read Message History there."
    assert (await repair(town)).done == ("Corrected the channel's permissions.",)
    assert (await view(town)).faults == ()


async def without_history(town: Town, *channel_ids: str) -> None:
    """Take Read Message History from the bot everywhere: Discord then lists no messages and reports no error."""
    guild, me = (await town.guild())["id"], (await gateways().discord.me()).id
    for channel_id in channel_ids:
        for id_, kind in ((guild, 0), (me, 1)):
            body = {"type": kind, "allow": str(VIEW | SEND | EMBED), "deny": "0"}
            await discord(town, "PUT", f"/channels/{channel_id}/permissions/{id_}", body)
    await town.call("guilds", action="edit_role", guild=town.name, role=guild, permissions=str(VIEW))
    await grant_the_bot(town, 2416004112 & ~HISTORY)


async def test_messages_that_the_bot_may_not_read_are_not_taken_for_none(town: Town):
    made = await repair(town)
    async with transaction() as db:
        await db.exec(update(Server).where(col(Server.id) == town.server_id).values(panel_message_id=None))
    await without_history(town, made.channel_id)
    with pytest.raises(Conflict, match="Read Message History"):
        await repair(town)
    with speaking("es"), pytest.raises(Conflict, match="Leer el historial de mensajes"):
        await repair(town)
    assert len((await shown(town, made.channel_id))["messages"]) == 1


async def test_a_log_channel_in_which_the_bot_may_not_read_is_refused(town: Town):
    general = (await town.guild())["channels"][0]["id"]
    await without_history(town, general)
    with pytest.raises(FieldRefused, match="Read Message History"):
        async with transaction() as db:
            await alert_channel.choose(db, gateways(), acting(town, "ada"), town.server_id, general)


async def test_inside_discord_manage_server_is_enough_and_checked_there_and_then(town: Town):
    guild = (await town.guild())["id"]

    async def set_up() -> Repaired:
        async with transaction() as db:
            return await verification_channel.set_up(db, gateways(), acting(town, "carol"), guild)

    with pytest.raises(Forbidden, match="Manage Server"):
        await set_up()
    with pytest.raises(ServerNotFound):
        await repair(town, "carol")
    made = await town.call("guilds", action="add_role", guild=town.name, name="Keeper", permissions=str(1 << 5))
    await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="add_role", role=made["id"])
    assert (await set_up()).done[0] == "Created the channel #verify."
    async with transaction() as db:
        (line,) = (await db.exec(select(Event).where(Event.kind == "channel.repaired"))).all()
    assert line.actor == town.people["carol"]["id"]


async def test_a_log_channel_is_greeted_and_one_where_the_bot_may_not_write_is_refused(town: Town):
    guild = await town.guild()
    general = guild["channels"][0]["id"]

    async def choose(channel_id: str | None) -> str | None:
        async with transaction() as db:
            return await alert_channel.choose(db, gateways(), acting(town, "ada"), town.server_id, channel_id)

    name = await choose(general)
    assert name == guild["channels"][0]["name"]
    assert (await shown(town, general))["messages"][-1]["embeds"][0]["title"] == "Alerts arrive here"
    assert (await view(town)).log_channel_id == general
    me = (await gateways().discord.me()).id
    await discord(town, "PUT", f"/channels/{general}/permissions/{me}", {"type": 1, "allow": "0", "deny": str(SEND)})
    with pytest.raises(FieldRefused, match="may not write"):
        await choose(general)
    with pytest.raises(FieldRefused, match="no such channel"):
        await choose("1")
    assert await choose(None) is None
    assert (await view(town)).log_channel_id is None
