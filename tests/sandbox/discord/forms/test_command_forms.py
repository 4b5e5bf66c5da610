"""Discord's refusals of commands, each with the place of its error."""

from typing import Any

import pytest

from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.discord.forms.test_message_forms import APP, LONG, place_of


def command(*options: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "go", "description": "Go", "options": list(options), **more}


def named(name: str) -> dict[str, Any]:
    return command(name=name)


def word(**more: Any) -> dict[str, Any]:
    return {"type": 3, "name": "word", "description": "A word", **more}


def sub(*options: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": 1, "name": "sub", "description": "A part", "options": list(options), **more}


def choice(n: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": f"c{n}", "value": str(n), **more}


COMMANDS: dict[str, tuple[dict[str, Any], str]] = {
    "name in capitals": (command(name="Go"), "name"),
    "name with a blank": (command(name="go on"), "name"),
    "no description": ({"name": "go"}, "description"),
    "description over 100": (command(description=LONG), "description"),
    "26 choices": (command(word(choices=[choice(n) for n in range(26)])), "options.0.choices"),
    "choice name over 100": (command(word(choices=[choice(name=LONG)])), "options.0.choices.0.name"),
    "choice value over 100": (command(word(choices=[choice(value=LONG)])), "options.0.choices.0.value"),
    "choice value of another type": (command(word(choices=[choice(value=5)])), "options.0.choices.0.value"),
    "text for a number's choice": (command(word(type=4, choices=[choice()])), "options.0.choices.0.value"),
    "choices and autocomplete": (command(word(choices=[choice()], autocomplete=True)), "options.0.autocomplete"),
    "duplicate option names": (command(word(), word()), "options.1"),
    "option type 99": (command(word(type=99)), "options.0"),
    "option without type": (command({"name": "o", "description": "O"}), "options.0.type"),
    "a number above 2**53 - 1": (command(word(type=4, max_value=2**53)), "options.0.max_value"),
    "a channel type twice": (command(word(type=7, channel_types=[0, 0])), "options.0.channel_types"),
    "permissions that there are not": (command(default_member_permissions=str(2**54)), "default_member_permissions"),
    "min over max": (command(word(type=4, min_value=2, max_value=1)), "options.0.min_value"),
    "min_length over max_length": (command(word(min_length=2, max_length=1)), "options.0.min_length"),
    "sub-command beside an option": (command(sub(), word()), "options.1"),
    "sub-command in a sub-command": (command(sub(sub())), "options.0.options.0"),
    "option in a group": (command({**sub(word()), "type": 2}), "options.0.options.0"),
    "required after optional": (command(word(), word(name="b", required=True)), "options.1"),
    "26 options": (command(*[word(name=f"o{n}") for n in range(26)]), "options"),
    "unknown locale": (command(name_localizations={"xx": "go"}), "name_localizations.xx"),
    "locale name in capitals": (command(name_localizations={"de": "Los"}), "name_localizations.de"),
    "permissions that are none": (command(default_member_permissions="all"), "default_member_permissions"),
    "context menu with a description": (command(type=2), "description"),
    "command type 9": (command(type=9), "_errors"),
}  # fmt: skip


@pytest.mark.parametrize("case", COMMANDS)
async def test_a_command_that_discord_refuses(discord: Outside, case: str):
    body, path = COMMANDS[case]
    answer = await discord.bot("POST", f"/applications/{APP}/commands", body)
    if path == "_errors":
        assert answer.json()["errors"]["_errors"]
    else:
        place_of(answer, path)
    put = await discord.bot("PUT", f"/applications/{APP}/commands", [command(name="fine"), body])
    assert put.status_code == 400
    assert list(put.json()["errors"]) == ["1"]
    assert (await discord.bot("GET", f"/applications/{APP}/commands")).json() == [], "nothing of a refused list is kept"


async def test_a_command_has_at_most_eight_thousand_characters(discord: Outside):
    choices = [choice(n, name=f"{n:02}" + "x" * 98, value=f"{n:02}" + "y" * 98) for n in range(25)]
    options = [word(name=f"o{n}", choices=choices) for n in range(2)]
    answer = await discord.bot("POST", f"/applications/{APP}/commands", command(*options))
    assert answer.json()["errors"]["_errors"][0]["message"] == "Command exceeds maximum size (8000)"
    assert (await discord.bot("POST", f"/applications/{APP}/commands", command(options[0]))).status_code == 201


async def test_a_number_may_be_as_great_as_every_reader_keeps_exactly(discord: Outside):
    """NUMBER is "any double between -2^53 and 2^53"; INTEGER ends one before (docs/facts.md#discord-commands)."""
    option = word(type=10, min_value=-(2**53), max_value=2**53)
    answer = await discord.bot("POST", f"/applications/{APP}/commands", command(option))
    assert answer.status_code == 201, answer.text
    beyond = await discord.bot("POST", f"/applications/{APP}/commands", command({**option, "max_value": 2**53 + 2}))
    place_of(beyond, "options.0.max_value")


async def test_a_list_of_commands_has_each_name_once(discord: Outside):
    twice = [command(), command(), {"name": "go", "type": 2}]
    answer = await discord.bot("PUT", f"/applications/{APP}/commands", twice)
    place_of(answer, "1.name")
    other = await discord.bot("PUT", f"/applications/{APP}/commands", twice[1:])
    assert [one["type"] for one in other.json()] == [1, 2]


async def test_a_command_does_not_take_the_name_of_another(discord: Outside):
    base = f"/applications/{APP}/commands"
    made = [(await discord.bot("POST", base, named(name))).json()["id"] for name in ("one", "two")]
    place_of(await discord.bot("PATCH", f"{base}/{made[1]}", {"name": "one"}), "name")
    assert (await discord.bot("PATCH", f"{base}/{made[1]}", {"name": "two", "description": "New"})).status_code == 200
    assert [one["name"] for one in (await discord.bot("GET", base)).json()] == ["one", "two"]


async def test_commands_tell_words_of_other_languages_when_asked(discord: Outside):
    base = f"/applications/{APP}/commands"
    german = {"name_localizations": {"de": "los"}}
    made = (await discord.bot("POST", base, command(sub(word(choices=[choice()])), **german))).json()
    asked = (await discord.bot("GET", base, params={"with_localizations": "true"})).json()
    assert asked == [made]
    assert made["name_localizations"] == {"de": "los"}
    part = made["options"][0]
    inner = part["options"][0]
    for each in (part, inner):
        assert (each["name_localizations"], each["description_localizations"]) == (None, None)
    assert inner["choices"] == [{"name": "c0", "value": "0", "name_localizations": None}]
    assert "localizations" not in str((await discord.bot("GET", base)).json())


async def test_two_hundred_commands_are_made_a_day(discord: Outside, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sandbox.discord.answers.limits.CREATIONS", 3)
    base = f"/applications/{APP}/commands"
    names = [f"c{n}" for n in range(3)]
    made = [(await discord.bot("POST", base, command(name=name))).status_code for name in names]
    assert made == [201, 201, 201]
    assert (await discord.bot("POST", base, command(name="c0", description="Other"))).status_code == 200
    await discord.bot("PUT", base, [])
    refused = await discord.bot("POST", base, command())
    assert (refused.status_code, refused.json()["code"]) == (400, 30034)
    of_guild = f"/applications/{APP}/guilds/{BASE}/commands"
    assert (await discord.bot("POST", of_guild, command())).status_code == 201


async def test_a_hundred_commands_are_replaced_by_a_hundred_others_or_nothing_changes(
    discord: Outside, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sandbox.discord.rest.commands.MOST", {1: 3, 2: 1, 3: 1})
    monkeypatch.setattr("sandbox.discord.answers.limits.CREATIONS", 7)
    base = f"/applications/{APP}/commands"
    first, second = ([named(f"{letter}{n}") for n in range(3)] for letter in "ab")
    for wanted in (first, second):
        answer = await discord.bot("PUT", base, wanted)
        assert answer.status_code == 200, answer.text
    before = (await discord.bot("GET", base)).json()
    assert [one["name"] for one in before] == ["b0", "b1", "b2"]
    for code, refused in (
        (30032, [command(name=f"c{n}") for n in range(4)]),
        (30034, [*second[:1], *map(named, "xy")]),
    ):
        answer = await discord.bot("PUT", base, refused)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert (await discord.bot("GET", base)).json() == before
    assert (await discord.bot("PUT", base, [named("x")])).status_code == 200, "the refused ones are not counted"
