"""nextcord, unchanged except for its base address, works with the sandbox's Discord."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import nextcord
import pytest
from nextcord.ext import commands

from tests.sandbox.conftest import BASE, Outside

pytestmark = pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning")


class Verify(nextcord.ui.View):
    """A persistent button, as in a panel."""

    def __init__(self) -> None:
        super().__init__(timeout=None)

    @nextcord.ui.button(label="Verify", custom_id="verify")
    async def press(self, _: nextcord.ui.Button[Any], interaction: nextcord.Interaction[Any]) -> None:
        await interaction.response.defer(ephemeral=True, with_message=True)
        await interaction.followup.send("Looking…", ephemeral=True)
        await interaction.edit_original_message(content=f"Done, {interaction.user.name}")  # type: ignore[union-attr]

    @nextcord.ui.select(
        custom_id="chain", options=[nextcord.SelectOption(label="Base"), nextcord.SelectOption(label="Ethereum")]
    )
    async def choose(self, select: Any, interaction: nextcord.Interaction[Any]) -> None:
        await interaction.response.edit_message(content=f"You chose {select.values[0]}")


class Ask(nextcord.ui.Modal):
    """A modal with a question."""

    def __init__(self) -> None:
        super().__init__("Your wallet", custom_id="ask", timeout=None)
        self.wallet = nextcord.ui.TextInput("Address", custom_id="wallet", min_length=3, max_length=42)
        self.add_item(self.wallet)

    async def callback(self, interaction: nextcord.Interaction[Any]) -> None:
        await interaction.response.send_message(f"Got {self.wallet.value}", ephemeral=True)


def build() -> "commands.Bot":
    bot = commands.Bot(intents=nextcord.Intents(guilds=True, members=True), guild_ready_timeout=0.1)

    @bot.slash_command(name="greet", description="Say hello")
    async def greet(
        interaction: nextcord.Interaction[Any], who: nextcord.Member, word: str = nextcord.SlashOption(required=False)
    ) -> None:
        await interaction.response.send_message(f"{word or 'Hello'} {who.name}", ephemeral=True)

    @greet.on_autocomplete("word")
    async def words(interaction: nextcord.Interaction[Any], typed: str) -> None:
        await interaction.response.send_autocomplete([w for w in ("Hi", "Howdy", "Servus") if w.startswith(typed)])

    @bot.slash_command(name="ask", description="Ask for a wallet")
    async def ask(interaction: nextcord.Interaction[Any]) -> None:
        await interaction.response.send_modal(Ask())

    @bot.slash_command(name="silent", description="Say nothing", default_member_permissions=0x20)
    async def silent(interaction: nextcord.Interaction[Any]) -> None:
        await asyncio.sleep(0)

    assert all((greet, ask, silent, words))
    return bot


@pytest.fixture
async def bot(discord: Outside, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator["commands.Bot"]:
    """A ready bot, with a panel in #general of Base Builders and its commands registered."""
    base = discord.settings["DISCORD_API_URL"].replace("localhost", "127.0.0.1")
    monkeypatch.setattr("nextcord.http.Route.BASE", base)
    running = build()
    became_ready = asyncio.Event()

    async def on_ready() -> None:
        running.add_view(Verify())
        became_ready.set()

    running.add_listener(on_ready)
    task = asyncio.create_task(running.start(discord.settings["DISCORD_BOT_TOKEN"]))
    done, _ = await asyncio.wait(
        {task, asyncio.create_task(became_ready.wait())}, timeout=60, return_when="FIRST_COMPLETED"
    )
    assert task not in done, task.exception()
    async with asyncio.timeout(60):
        while len(discord.sandbox.discord.world.commands) < 3:
            await asyncio.sleep(0.02)
    yield running
    await running.close()
    await asyncio.gather(task, return_exceptions=True)


async def test_it_logs_in_knows_the_members_and_hears_changes(discord: Outside, bot: "commands.Bot"):
    guild = bot.get_guild(int(BASE))
    assert guild is not None
    assert {member.name for member in guild.members} >= {"ada", "bob", "carol", "dave", "erin", "mallory"}
    heard = asyncio.get_running_loop().create_task(bot.wait_for("member_update", timeout=60))
    await asyncio.sleep(0)
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    _, after = await heard
    assert [role.name for role in after.roles] == ["@everyone", "Whale"]


async def test_it_writes_roles_and_reads_them_back(discord: Outside, bot: "commands.Bot"):
    guild = bot.get_guild(int(BASE))
    assert guild is not None
    carol, holder = guild.get_member_named("carol"), nextcord.utils.get(guild.roles, name="Holder")
    founder = nextcord.utils.get(guild.roles, name="Founder")
    assert carol
    assert holder
    assert founder
    await carol.add_roles(holder, reason="holds one")
    assert holder.id in [role.id for role in (await guild.fetch_member(carol.id)).roles]
    with pytest.raises(nextcord.Forbidden):
        await carol.add_roles(founder)
    log = discord.sandbox.discord.world.audit[BASE].values()
    assert any(entry.reason == "holds one" for entry in log)


async def act(discord: Outside, user: str = "carol", **body: Any) -> Any:
    return await discord.control("interactions", guild=BASE, user=user, **body)


async def test_commands_complete_and_answer(discord: Outside, bot: "commands.Bot"):
    completed = await act(discord, kind="autocomplete", name="greet", options={"who": "dave", "word": "H"})
    assert [choice["value"] for choice in completed["choices"]] == ["Hi", "Howdy"]
    said = await act(discord, kind="command", name="greet", options={"who": "dave"})
    assert [(m["content"], m["ephemeral"]) for m in said["messages"]] == [("Hello dave", True)]


async def test_a_modal_is_shown_filled_in_and_answered(discord: Outside, bot: "commands.Bot"):
    shown = await act(discord, kind="command", name="ask")
    assert [field["custom_id"] for field in shown["modal"]["fields"]] == ["wallet"]
    body = {"guild": BASE, "user": "carol", "kind": "modal", "custom_id": "ask"}
    too_short = await discord.http.post("/control/interactions", json={**body, "fields": {"wallet": "x"}})
    assert too_short.status_code == 400
    said = await act(discord, kind="modal", custom_id="ask", fields={"wallet": "0xabc"})
    assert said["messages"][0]["content"] == "Got 0xabc"


async def test_a_panel_answers_its_button_and_select(discord: Outside, bot: "commands.Bot"):
    channel = bot.get_guild(int(BASE)).text_channels[0]  # type: ignore[union-attr]
    panel = await channel.send("Panel", view=Verify())
    pressed = await act(discord, kind="button", custom_id="verify", wait=5)
    assert pressed["messages"][0]["ephemeral"] is True
    async with asyncio.timeout(5):
        while "Done, carol" not in (await discord.http.get(f"/control/interactions/{pressed['id']}")).text:
            await asyncio.sleep(0.02)
    chosen = await act(discord, kind="select", custom_id="chain", values=["Base"], message_id=str(panel.id))
    assert [message["content"] for message in chosen["messages"]] == ["You chose Base"]


async def test_silence_is_a_504_and_a_command_out_of_reach_a_403(discord: Outside, bot: "commands.Bot"):
    body = {"guild": BASE, "kind": "command", "name": "silent"}
    refused = await discord.http.post("/control/interactions", json={**body, "user": "carol"})
    silent = await discord.http.post("/control/interactions", json={**body, "user": "ada"}, timeout=10)
    assert (refused.status_code, silent.status_code) == (403, 504)
    assert silent.json()["messages"] == []


async def test_its_commands_come_back_as_it_sent_them_so_that_a_restart_sends_none(
    discord: Outside, bot: "commands.Bot"
):
    base = f"/applications/{discord.settings['DISCORD_CLIENT_ID']}/commands"
    told = (await discord.bot("GET", base, params={"with_localizations": "true"})).json()
    mine = {command.name: command for command in bot.get_application_commands()}
    assert set(mine) == {"greet", "ask", "silent"} == {each["name"] for each in told}
    assert all(mine[each["name"]].is_payload_valid(each) for each in told)
