"""A guild of a browser test's own, with people that no other test has."""

import uuid
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from tests.support.product import Product
from tests.system.whole.people import Person, until

GUILD = "Base Builders"


@dataclass(frozen=True)
class Village:
    """A guild with its name and its people, by the names that the test uses; the first one owns it.

    With the bot in it, `server` is the part of an address that names the guild's server.
    """

    guild: str
    people: dict[str, str]
    server: str = ""

    @property
    def rules(self) -> str:
        """The address of the server's rules: a test that is not about the dashboard begins there."""
        return f"/server-config?{self.server}"

    @property
    def form(self) -> str:
        """The address of the form of a new rule."""
        return f"/add-verification-rule?{self.server}"

    def __getitem__(self, name: str) -> str:
        """Return a person's Discord username."""
        return self.people[name]


def village(product: Product, *names: str, bot: bool = True, called: str = "Village") -> Village:
    """A function that makes the guild and its people, with the bot in it unless told otherwise."""
    mark = uuid.uuid4().hex[:6]
    people = {name: f"{name}{mark}" for name in names}
    ids = [product.control("people", {"username": username})["id"] for username in people.values()]
    guild = f"{called} {mark}"
    product.control("guilds", {"action": "create", "guild": guild, "owner": ids[0], "members": ids[1:]})
    server = add_bot(product, next(iter(people.values())), guild) if bot else ""
    return Village(guild, people, server)


def add_bot(product: Product, owner: str, guild: str) -> str:
    """Add the bot to a guild and wait until the product knows it: a dashboard reads its servers once, when it opens.

    Return the part of an address that names the server.
    """
    product.control("guilds", {"action": "add_bot", "guild": guild})
    with closing(Person(product, owner)) as person:
        until(lambda: any(one["name"] == guild and one["botInvited"] for one in person.get("/api/servers")))
        return _naming(person.server(guild))


@cache
def base_builders(product: Product) -> Village:
    """Return the guild that ada runs in every sandbox, for tests that leave it as it is."""
    with closing(Person(product, "ada")) as ada:
        return Village(GUILD, {"ada": "ada"}, _naming(ada.server(GUILD)))


def _naming(server: dict[str, Any]) -> str:
    named = {"serverId": server["internalId"], "discordServerId": server["id"], "serverName": server["name"]}
    return urlencode(named)
