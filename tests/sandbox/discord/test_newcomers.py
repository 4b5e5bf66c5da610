"""Fresh people and guilds, so that tests need no reset."""

from sandbox.base.people import PEOPLE, wallets_of
from tests.sandbox.conftest import Outside


def test_the_six_wallets_follow_from_their_names():
    assert all(person.wallets == wallets_of(person.username) for person in PEOPLE)


async def test_a_new_guild_has_the_usual_roles_and_lets_the_bot_in(discord: Outside):
    zoe = await discord.control("people", username="zoe")
    made = await discord.control("guilds", action="create", guild="Zoo", owner="zoe", admins=["bob"], members=["carol"])
    await discord.control("guilds", guild="Zoo", action="add_bot")
    guild = await discord.guild(made["id"])
    assert guild["owner_id"] == zoe["id"]
    assert [member["username"] for member in guild["members"]] == ["zoe", "bob", "carol", "HoldfastBot"]
    assert [role["name"] for role in guild["roles"]][-3:] == ["Admin", "HoldfastBot", "Founder"]
    for called in ("Zoo", made["id"]):
        assert (await discord.http.get(f"/control/guilds/{called}")).json() == guild
    assert (await discord.http.get("/control/guilds/Ark")).status_code == 404
    assert (await discord.bot("GET", f"/guilds/{made['id']}")).status_code == 200
    tokens = await discord.signed_in("zoe")
    mine = await discord.rest("GET", "/users/@me/guilds", f"Bearer {tokens['access_token']}")
    assert [each["owner"] for each in mine.json()] == [True]
    await discord.control("reset")
    assert len((await discord.world())["guilds"]) == 3
    assert len((await discord.world())["users"]) == 6


async def test_a_guilds_own_commands_are_deleted_with_it(discord: Outside):
    app = discord.settings["DISCORD_CLIENT_ID"]
    made = await discord.control("guilds", action="create", guild="Short Lived", owner="ada")
    await discord.control("guilds", action="add_bot", guild=made["id"])
    command = {"name": "here", "description": "Only here"}
    assert (await discord.bot("POST", f"/applications/{app}/guilds/{made['id']}/commands", command)).status_code == 201
    assert (await discord.bot("POST", f"/applications/{app}/commands", command)).status_code == 201
    await discord.control("reset")
    assert [one.guild_id for one in discord.sandbox.discord.world.commands.values()] == [None]


async def test_a_rival_bot_joins_by_the_call_about_members(discord: Outside):
    quiet, joins = "Quiet Corner", {"guild": "Quiet Corner", "action": "join"}
    made = await discord.control("members", **joins, user="newrival", bot=True)
    moved = {"guild": quiet, "user": "carol", "role": "Holder", "by": "newrival"}
    await discord.control("members", **moved, action="add_role")
    members = (await discord.guild("1170000000000003000"))["members"]
    assert made["id"] in [member["user_id"] for member in members]
    other = await discord.control("people", username="oldrival", bot=True)
    assert await discord.control("members", **joins, user=other["id"], bot=True) == {}
    for body, status in (
        ({**joins, "user": "newrival", "bot": True}, 409),
        ({**joins, "user": "mallory", "bot": True}, 409),
        ({**joins, "user": "mallory", "bot": "yes"}, 400),
        ({**joins, "user": "nobody-at-all"}, 404),
        ({**joins, "user": "nobody-at-all", "bot": False}, 404),
    ):
        assert (await discord.http.post("/control/members", json=body)).status_code == status, body


async def test_a_newcomer_may_still_have_to_pass_the_screening(discord: Outside):
    joins = {"guild": "Quiet Corner", "user": "mallory", "action": "join"}
    assert (await discord.http.post("/control/members", json={**joins, "pending": "yes"})).status_code == 400
    await discord.control("members", **joins, pending=True)
    assert (await discord.member("1170000000000003000", "mallory"))["pending"] is True
