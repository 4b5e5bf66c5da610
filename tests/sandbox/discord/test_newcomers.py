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
