"""Which roles a rule may grant, each refusal with its own reason."""

from dataclasses import dataclass

import pytest

from locales import _, speaking
from services.core.discord_text import color_hex
from services.guilds.role_safety import DANGEROUS, judge, refusal, standing, translated


@dataclass(frozen=True)
class Role:
    id: str
    name: str
    position: int
    permissions: int = 0
    managed: bool = False
    giver: str = ""


EVERYONE = Role("1", "@everyone", 0)
HOLDER, WHALE = Role("10", "Holder", 1), Role("11", "Whale", 2)
ADMIN = Role("12", "Admin", 3, DANGEROUS["Administrator"])
BOT = Role("13", "Holdfast", 4, DANGEROUS["Manage Roles"], managed=True)
FOUNDER = Role("14", "Founder", 5)
ROLES = [EVERYONE, HOLDER, WHALE, ADMIN, BOT, FOUNDER]


bot = standing("1", "owner", ROLES, "bot", [BOT.id])
owner = standing("1", "owner", ROLES, "owner", [])
admin = standing("1", "owner", ROLES, "bob", [ADMIN.id])


def test_each_refusal_names_its_own_reason() -> None:
    refused = {role.name: refusal(role, "1", bot, owner) for role in (EVERYONE, ADMIN, BOT, FOUNDER)}
    assert None not in refused.values()
    assert len(set(refused.values())) == 4
    assert "Administrator" in str(refused["Admin"])
    assert refusal(HOLDER, "1", bot, owner) is None


def test_a_permission_is_named_in_the_readers_language() -> None:
    with speaking("es"):
        found = judge(ADMIN, "1", bot, owner)
        assert found is not None
        assert _("Administrator") != "Administrator"
        for text in (found.mend, found.short):
            assert _("Administrator") in text


@pytest.mark.parametrize(
    ("giver", "managed", "why"),
    [
        ("linked", False, "Linked Role"), ("booster", True, "boost"), ("shop", True, "shop"), ("bot", True, "bot"),
        ("integration", True, "integration"), ("", True, "managed"),
    ],
)  # fmt: skip
def test_a_role_that_discord_gives_says_who_gets_it(giver: str, managed: bool, why: str) -> None:
    role = Role("15", "Special", 1, managed=managed, giver=giver)
    assert why in str(refusal(role, "1", bot, owner))


@pytest.mark.parametrize(
    "role",
    [
        FOUNDER,
        Role("20", "{Mod}", 1, DANGEROUS["Ban Members"]),
        *(Role("15", "Special", 1, giver=giver) for giver in ("linked", "booster", "shop", "bot", "integration")),
        Role("15", "Special", 1, managed=True),
    ],
)
def test_a_stored_refusal_is_said_in_the_readers_language(role: Role) -> None:
    refused = str(refusal(role, "1", bot))
    assert translated(refused, role.name) == refused
    with speaking("ja"):
        said = translated(refused, role.name)
        assert said.startswith(role.name)
        assert said != refused
        assert translated(refused, "a former name") == refused
        assert translated("of other words", role.name) == "of other words"


@pytest.mark.parametrize("name", sorted(DANGEROUS))
def test_no_dangerous_permission_is_ever_handed_out(name: str) -> None:
    role = Role("20", "Mod", 1, DANGEROUS[name])
    assert name in str(refusal(role, "1", bot, owner))


def test_an_admin_hands_out_only_what_is_below_their_own_top_role() -> None:
    second = standing("1", "owner", ROLES, "bob", [HOLDER.id])
    assert refusal(HOLDER, "1", bot, second) is not None
    assert refusal(WHALE, "1", bot, second) is not None
    assert refusal(WHALE, "1", bot, admin) is None


def test_of_two_roles_at_one_position_the_older_stands_higher() -> None:
    roles = [EVERYONE, Role("5", "Bot", 1, DANGEROUS["Manage Roles"]), Role("4", "Old", 1), Role("6", "New", 1)]
    weak = standing("1", "owner", roles, "bot", ["5"])
    assert refusal(roles[2], "1", weak) is not None
    assert refusal(roles[3], "1", weak) is None


def test_a_bot_without_manage_roles_can_grant_nothing() -> None:
    assert "Manage Roles" in str(refusal(HOLDER, "1", standing("1", "owner", ROLES, "bot", [FOUNDER.id]), owner))


def test_colour_0_shows_as_the_default() -> None:
    assert color_hex(0) == "#5865F2"
    assert color_hex(255) == "#0000FF"
