"""A guild of the test's own in the shared product, and what people do there through Discord only."""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.support.product import Product
from tests.system.whole.people import Person, collection, rule, until

STRANGER = "0x" + "5e" * 20


@dataclass
class Club:
    """One guild with an owner, members, a collection on Base, and a rule once one is made."""

    product: Product
    name: str
    people: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    contract: str = ""
    owner: Person | None = None
    tokens: int = 0

    def act(self, who: str, kind: str, **more: Any) -> dict[str, Any]:
        """Act in Discord as a person, and return what they see."""
        return self.product.control(
            "interactions", {"guild": self.name, "user": self.people[who]["id"], "kind": kind, "wait": 30, **more}
        )

    def ask(self, who: str, command: str, **options: Any) -> "Said":
        """Use a command and return its answer."""
        return Said(self.act(who, "command", name=command, options=options))

    def press(self, who: str, said: "Said", label: str) -> "Said":
        """Press a button by its label and return its answer."""
        return Said(self.act(who, "button", custom_id=said.button(label)))

    def claim(self, who: str, address: str, method: str = "opensea_bio") -> "Said":
        """Fill in and send the form of /verify, and return its answer."""
        form = self.act(who, "command", name="verify")["modal"]
        fields = {"address": address, "method": method}
        return Said(self.act(who, "modal", custom_id=form["custom_id"], fields=fields))

    def wallet(self, who: str) -> str:
        return self.people[who]["wallets"]["evm"]

    def bio(self, who: str, text: str) -> None:
        self.product.control(f"opensea/accounts/{self.wallet(who)}", {"bio": text}, "PUT")

    def prove(self, who: str) -> "Said":
        """Prove the person's wallet by its bio, and return the bot's answer."""
        asked = self.claim(who, self.wallet(who))
        self.bio(who, f"gm {asked.code}")
        return self.press(who, asked, "Check now")

    def buys(self, who: str) -> str:
        self.tokens += 1
        body = {"contract": self.contract, "token_id": str(self.tokens), "to": self.wallet(who)}
        self.product.control("chains/base/mint", body)
        return str(self.tokens)

    def sells(self, token: str) -> None:
        body = {"contract": self.contract, "token_id": token, "to": STRANGER}
        self.product.control("chains/base/transfer", body)

    def has(self, who: str, role: str) -> bool:
        """Return whether Discord shows the role on the person."""
        guild = self.product.guild(self.name)
        wanted = next(one["id"] for one in guild["roles"] if one["name"] == role)
        return any(
            wanted in one["roles"] for one in guild["members"] if one["user_id"] == self.people[who]["id"]
        )  # fmt: skip

    def make_rule(self, role: str = "Holder") -> int:
        """Create a rule for one token of the club's collection and return its id."""
        assert self.owner is not None
        server_id = self.server_id()
        return self.owner.post(
            "/api/verification-rules", **rule(self.product, self.contract, self.name, role, server_id)
        )["id"]

    def logged(self, kind: str) -> bool:
        """Return whether the server's log has such a line."""
        assert self.owner is not None
        return kind in str(self.owner.get(f"/api/servers/{self.server_id()}/events"))

    def server_id(self) -> int:
        assert self.owner is not None
        return int(self.owner.server(self.name)["internalId"])


@dataclass
class Said:
    """An ephemeral answer of the bot."""

    answer: dict[str, Any]

    def __post_init__(self) -> None:
        assert self.messages, self.answer
        assert all(message["ephemeral"] for message in self.messages), "somebody else could read this"

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.answer["messages"]

    @property
    def text(self) -> str:
        """The whole text of the answer."""
        return json.dumps([message["embeds"] for message in self.messages], ensure_ascii=False)

    @property
    def title(self) -> str:
        return self.messages[-1]["embeds"][-1]["title"]

    @property
    def code(self) -> str:
        found = re.search(r"holdfast-[a-z0-9]{10}", self.text)
        assert found, self.text
        return found[0]

    def field(self, name: str) -> str:
        """Return a field of the last embed, or an empty text."""
        fields = self.messages[-1]["embeds"][-1].get("fields", [])
        return next((one["value"] for one in fields if one["name"] == name), "")

    def components(self) -> list[dict[str, Any]]:
        return [one for message in self.messages for row in message["components"] for one in row["components"]]

    def button(self, label: str) -> str:
        return next(one["custom_id"] for one in self.components() if one.get("label") == label)


@pytest.fixture
def club(product: Product) -> Iterator[Club]:
    """A club owned by ada, with carol and dave as members."""
    made = Club(product, f"Club {uuid.uuid4().hex[:8]}")
    for name in ("ada", "carol", "dave"):
        made.people[name] = product.control("people", {"username": f"{name}{uuid.uuid4().hex[:6]}"})
    owner, *others = (person["id"] for person in made.people.values())
    product.control("guilds", {"action": "create", "guild": made.name, "owner": owner, "members": others})
    product.control("guilds", {"action": "add_bot", "guild": made.name})
    made.contract = collection(product, f"Cats{uuid.uuid4().hex[:6]}")
    made.owner = Person(product, made.people["ada"]["username"])
    owner_of = made.owner
    until(lambda: any(one["name"] == made.name and one["botInvited"] for one in owner_of.get("/api/servers")))
    yield made
    owner_of.close()


def http_status(product: Product, body: dict[str, Any]) -> tuple[int, str]:
    """Return the sandbox's status and text for an interaction that Discord would not even offer."""
    answer = httpx.post(f"{product.sandbox}/control/interactions", json=body, timeout=60)
    return answer.status_code, answer.text
