"""A guild of a browser test's own, with people that no other test has."""

import uuid
from contextlib import closing
from dataclasses import dataclass

from tests.support.product import Product
from tests.system.whole.people import Person, until


@dataclass(frozen=True)
class Village:
    """A guild with its name and its people, by the names that the test uses; the first one owns it."""

    guild: str
    people: dict[str, str]

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
    if bot:
        add_bot(product, next(iter(people.values())), guild)
    return Village(guild, people)


def add_bot(product: Product, owner: str, guild: str) -> None:
    """Add the bot to a guild and wait until the product knows it: a dashboard reads its servers once, when it opens."""
    product.control("guilds", {"action": "add_bot", "guild": guild})
    with closing(Person(product, owner)) as person:
        until(lambda: any(one["name"] == guild and one["botInvited"] for one in person.get("/api/servers")))
