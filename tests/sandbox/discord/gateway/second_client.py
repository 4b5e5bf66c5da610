"""A Discord client on another library (hikari), in an environment of its own, which reports what it sees line by line.

`test_second_client.py` beside it runs it as `python second_client.py <API address> <token> <guild> <user>`.
"""

import asyncio
import json
import sys

import hikari


def say(what: str, **told: object) -> None:
    """Write one line of JSON to standard output."""
    print(json.dumps({"what": what, **told}), flush=True)


async def main(url: str, token: str, guild_id: int, user_id: int) -> None:
    """Log in and report the guild with its roles and members, then the user's roles whenever they change."""
    intents = hikari.Intents.GUILDS | hikari.Intents.GUILD_MEMBERS
    bot = hikari.GatewayBot(token, intents=intents, rest_url=url, banner=None, logs="ERROR")

    @bot.listen()
    async def on_guild(event: hikari.GuildAvailableEvent) -> None:
        if event.guild_id != guild_id:
            return
        roles = {role.name: [str(role.id), role.position] for role in event.roles.values()}
        members = await bot.rest.fetch_members(guild_id)
        say("guild", name=event.guild.name, roles=roles, members=sorted(one.username for one in members))

    @bot.listen()
    async def on_member(event: hikari.MemberUpdateEvent) -> None:
        if event.user_id == user_id:
            say("member", roles=sorted(str(role) for role in event.member.role_ids if role != guild_id))

    @bot.listen()
    async def on_role(event: hikari.RoleUpdateEvent) -> None:
        say("role", name=event.role.name, permissions=int(event.role.permissions))

    await bot.start()
    me = bot.get_me()
    say("ready", name=me.username if me else None)
    await bot.join()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
