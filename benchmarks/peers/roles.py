"""nextcord's or discord.py's own client giving roles: `roles.py MODULE URL GUILDS EACH`.

It asks for all of them at once and leaves the pace to the library. For discord.py it runs in an environment of its own,
so it imports nothing of ours.
"""

import asyncio
import importlib
import sys
from typing import Any

GUILD, PERSON, ROLE = 700_000_000_000_000_000, 800_000_000_000_000_000, 900_000_000_000_000_000


async def main() -> None:
    """Give every member of every guild a role."""
    module, url, guilds, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    http: Any = importlib.import_module(f"{module}.http")
    http.Route.BASE = url
    if module == "nextcord":
        client = http.HTTPClient(dispatch=lambda *_: None)
    else:
        client = http.HTTPClient(asyncio.get_running_loop())
    await client.static_login("a.b.c")
    pairs = [(GUILD + guild, PERSON + guild * each + member) for member in range(each) for guild in range(guilds)]
    await asyncio.gather(*(client.add_role(guild, person, ROLE, reason="a benchmark") for guild, person in pairs))
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
