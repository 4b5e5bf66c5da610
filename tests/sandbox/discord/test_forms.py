"""Discord's refusals of bodies of messages, commands and channels, each with the place of its error."""

from typing import Any

import pytest

from tests.sandbox.conftest import BASE, HOLDER, Outside, role_of
from tests.sandbox.discord.gateway.test_gateway import ready

GENERAL = f"/channels/{int(BASE) + 100}"
CAROL, APP = "1150000000000000303", "1160000000000000001"
LONG = "x" * 101


def button(**more: Any) -> dict[str, Any]:
    return {"type": 2, "style": 1, "label": "Go", "custom_id": "go", **more}


def link(**more: Any) -> dict[str, Any]:
    return {"type": 2, "style": 5, "label": "Look", "url": "https://example.org", **more}


def option(**more: Any) -> dict[str, Any]:
    return {"label": "A", "value": "a", **more}


def select(*options: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": 3, "custom_id": "menu", "options": list(options or (option(),)), **more}


def row(*components: dict[str, Any]) -> dict[str, Any]:
    return {"content": "Hi", "components": [{"type": 1, "components": list(components)}]}


def embed(**fields: Any) -> dict[str, Any]:
    return {"embeds": [{"title": "T", **fields}]}


def second(*components: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"flags": 1 << 15, "components": list(components), **more}


def shown(text: str) -> dict[str, Any]:
    return {"type": 10, "content": text}


def container(*components: dict[str, Any]) -> dict[str, Any]:
    return {"type": 17, "components": list(components)}


FIRST, OPTION = "components.0.components.0", "components.0.components.0.options.0"
MESSAGES: dict[str, tuple[dict[str, Any], str]] = {
    "button without label and emoji": (row({"type": 2, "style": 1, "custom_id": "x"}), FIRST),
    "button style 9": (row(button(style=9)), f"{FIRST}.style"),
    "button without style": (row({"type": 2, "label": "x", "custom_id": "x"}), f"{FIRST}.style"),
    "button without custom_id": (row({"type": 2, "style": 1, "label": "x"}), f"{FIRST}.custom_id"),
    "button label over 80": (row(button(label="x" * 81)), f"{FIRST}.label"),
    "custom_id over 100": (row(button(custom_id=LONG)), f"{FIRST}.custom_id"),
    "duplicate custom_ids": (row(button(), button()), "components.0.components.1.custom_id"),
    "six buttons in a row": (row(*[button(custom_id=str(n)) for n in range(6)]), "components.0.components"),
    "link button with a custom_id": (row(link(custom_id="x")), f"{FIRST}.custom_id"),
    "link button without url": (row({"type": 2, "style": 5, "label": "x"}), f"{FIRST}.url"),
    "link scheme ftp": (row(link(url="ftp://example.org")), f"{FIRST}.url"),
    "link that is none": (row(link(url="example org")), f"{FIRST}.url"),
    "url over 512": (row(link(url="https://example.org/" + "x" * 512)), f"{FIRST}.url"),
    "button and select in one row": (row(button(), select()), "components.0.components.1"),
    "unknown component type 99": (row({"type": 99}), FIRST),
    "text input in a message": (row({"type": 4, "custom_id": "x", "style": 1}), FIRST),
    "button outside a row": ({"content": "x", "components": [button()]}, "components.0"),
    "select without options": (row({**select(), "options": []}), f"{FIRST}.options"),
    "select with 26 options": (row(select(*[option(value=str(n)) for n in range(26)])), f"{FIRST}.options"),
    "select option label over 100": (row(select(option(label=LONG))), f"{OPTION}.label"),
    "select option value over 100": (row(select(option(value=LONG))), f"{OPTION}.value"),
    "select option description over 100": (row(select(option(description=LONG))), f"{OPTION}.description"),
    "duplicate option values": (row(select(option(), option())), f"{FIRST}.options.1.value"),
    "option without label": (row(select({"value": "a"})), f"{OPTION}.label"),
    "option without value": (row(select({"label": "A"})), f"{OPTION}.value"),
    "min_values over max_values": (
        row(select(option(), option(value="b"), min_values=2, max_values=1)),
        f"{FIRST}.min_values",
    ),
    "max_values over the options": (row(select(max_values=2)), f"{FIRST}.max_values"),
    "two defaults, one allowed": (row(select(option(default=True), option(value="b", default=True))), FIRST),
    "placeholder over 150": (row(select(placeholder="x" * 151)), f"{FIRST}.placeholder"),
    "embed url no url": (embed(url="nowhere"), "embeds.0.url"),
    "embed color too large": (embed(color=0x1000000), "embeds.0.color"),
    "embed timestamp nonsense": (embed(timestamp="yesterday"), "embeds.0.timestamp"),
    "empty embed": ({"content": "x", "embeds": [{}]}, "embeds.0.description"),
    "field without value": (embed(fields=[{"name": "n"}]), "embeds.0.fields.0.value"),
    "field name of blanks": (embed(fields=[{"name": "  ", "value": "v"}]), "embeds.0.fields.0.name"),
    "26 fields": (embed(fields=[{"name": "n", "value": "v"}] * 26), "embeds.0.fields"),
    "author without name": (embed(author={"url": "https://example.org"}), "embeds.0.author.name"),
    "footer over 2048": (embed(footer={"text": "x" * 2049}), "embeds.0.footer.text"),
    "title over 256": (embed(title="x" * 257), "embeds.0.title"),
    "over 6000 in embeds": ({"embeds": [{"description": "x" * 3001}] * 2}, "embeds"),
    "eleven embeds": ({"embeds": [{"title": "x"}] * 11}, "embeds"),
    "content over 2000": ({"content": "x" * 2001}, "content"),
    "content that is a number": ({"content": 5}, "content"),
    "nonce over 25": ({"content": "x", "nonce": "x" * 26}, "nonce"),
    "allowed_mentions parse and users": (
        {"content": "x", "allowed_mentions": {"parse": ["users"], "users": [CAROL]}},
        "allowed_mentions",
    ),
    "mentions of no kind": ({"content": "x", "allowed_mentions": {"parse": ["all"]}}, "allowed_mentions.parse.0"),
    "unknown flag": ({"content": "x", "flags": 1 << 30}, "flags"),
    "v2: content": (second(shown("x"), content="x"), "content"),
    "v2: embeds": (second(shown("x"), **embed()), "embeds"),
    "v2 without its flag": ({"components": [shown("x")]}, "components.0"),
    "v2: over 40 components nested": (second(container(*[shown("x")] * 40)), "components"),
    "v2: text over 4000": (second(shown("x" * 4001)), "components.0.content"),
    "v2: texts together over 4000": (second(shown("x" * 2001), shown("x" * 2000)), "components"),
    "v2: text display without content": (second({"type": 10}), "components.0.content"),
    "v2: container in container": (second(container(container(shown("x")))), FIRST),
    "v2: container without components": (second(container()), "components.0.components"),
    "v2: section without accessory": (second({"type": 9, "components": [shown("x")]}), "components.0.accessory"),
}  # fmt: skip


def place_of(answer: Any, path: str) -> Any:
    """Return the errors at a dotted place of a refusal, after checking that it has Discord's shape."""
    body = answer.json()
    assert (answer.status_code, body["code"], body["message"]) == (400, 50035, "Invalid Form Body"), body
    node = body["errors"]
    for part in path.split("."):
        assert part in node, body
        node = node[part]
    assert all(set(error) == {"code", "message"} for error in node["_errors"])
    return node["_errors"]


@pytest.mark.parametrize("case", MESSAGES)
async def test_a_message_that_discord_refuses(discord: Outside, case: str):
    body, path = MESSAGES[case]
    place_of(await discord.bot("POST", f"{GENERAL}/messages", body), path)
    assert (await discord.bot("GET", f"{GENERAL}/messages")).json() == []


RIGHT: dict[str, dict[str, Any]] = {
    "all kinds of buttons": row(button(), link(), button(custom_id="b", label=None, emoji={"name": "✅"})),
    "selects": {
        "content": "x",
        "components": [
            {"type": 1, "components": [{"type": kind, "custom_id": f"m{kind}", "max_values": 25}]}
            for kind in (5, 6, 7, 8)
        ],
    },
    "a string select with defaults": row(select(option(default=True), option(value="b"), max_values=2, min_values=0)),
    "a full embed": embed(
        description="d", url="https://example.org", color=0, timestamp="2026-01-01T00:00:00Z",
        author={"name": "a"}, footer={"text": "f"}, image={"url": "https://example.org/a.png"},
        fields=[{"name": "n", "value": "v", "inline": True}],
    ),
    "second version": second(
        container(
            shown("# Title"), {"type": 14, "divider": True, "spacing": 2}, {"type": 1, "components": [button()]},
            {"type": 9, "components": [shown("a")], "accessory": link()},
            {"type": 12, "items": [{"media": {"url": "https://example.org/a.png"}}]},
            {"type": 13, "file": {"url": "attachment://a.txt"}},
            {"type": 9, "components": [shown("b")], "accessory": {"type": 11, "media": {"url": "https://e.org/b"}}},
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
async def test_a_message_that_discord_takes(discord: Outside, case: str):
    answer = await discord.bot("POST", f"{GENERAL}/messages", RIGHT[case])
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("body", [{"content": "  \n "}, {"content": None}, {"embeds": []}, {}])
async def test_a_message_that_says_nothing(discord: Outside, body: dict[str, Any]):
    answer = await discord.bot("POST", f"{GENERAL}/messages", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 50006)


async def test_every_fault_of_a_body_is_told_at_once(discord: Outside):
    body = {"content": "x" * 2001, "embeds": [{"title": "x" * 257}], "flags": "many"}
    errors = (await discord.bot("POST", f"{GENERAL}/messages", body)).json()["errors"]
    assert set(errors) == {"content", "embeds", "flags"}
    assert errors["embeds"]["0"]["title"]["_errors"][0]["message"] == "Must be 256 or fewer in length."


async def test_outer_blanks_are_cut_off_and_unknown_fields_are_not_given_back(discord: Outside):
    fields = [{"name": " n ", "value": "v\n"}]
    body = {"content": "  hi  ", "nonsense": 1, **embed(title=" t ", description="d \n", nonsense=1, fields=fields)}
    told = (await discord.bot("POST", f"{GENERAL}/messages", body)).json()
    shown_fields = [{"inline": False, "name": "n", "value": "v"}]
    assert told["content"] == "hi"
    assert told["embeds"] == [{"title": "t", "description": "d", "fields": shown_fields, "type": "rich"}]
    assert "nonsense" not in told


async def test_an_edit_that_is_refused_changes_nothing(discord: Outside):
    message = (await discord.bot("POST", f"{GENERAL}/messages", {"content": "Hi"})).json()["id"]
    one = f"{GENERAL}/messages/{message}"
    assert (await discord.bot("PATCH", one, {"content": " "})).json()["code"] == 50006
    place_of(await discord.bot("PATCH", one, {"content": "New", "embeds": [{}]}), "embeds.0.description")
    assert (await discord.bot("GET", one)).json()["content"] == "Hi"


@pytest.mark.parametrize("edit", [{"content": "Hi"}, {"embeds": [{"title": "T"}]}])
async def test_an_edit_puts_no_content_and_no_embed_beside_components_of_version_2(
    discord: Outside, edit: dict[str, Any]
):
    body = {"flags": 1 << 15, "components": [{"type": 10, "content": "Words"}]}
    message = (await discord.bot("POST", f"{GENERAL}/messages", body)).json()["id"]
    place_of(await discord.bot("PATCH", f"{GENERAL}/messages/{message}", edit), next(iter(edit)))


async def test_roles_and_everybody_are_called_where_the_bot_may(discord: Outside):
    role = (await discord.bot("POST", f"/guilds/{BASE}/roles", {"name": "Loud", "mentionable": True})).json()["id"]
    text = f"<@&{role}> <@&{role_of(BASE, HOLDER)}> @everyone"
    told = (await discord.bot("POST", f"{GENERAL}/messages", {"content": text})).json()
    assert (told["mention_roles"], told["mention_everyone"]) == ([role], False)
    quiet = {"content": text, "allowed_mentions": {"parse": []}}
    assert (await discord.bot("POST", f"{GENERAL}/messages", quiet)).json()["mention_roles"] == []
    await discord.control("guilds", guild=BASE, action="edit_role", role="HoldfastBot", permissions="8")
    told = (await discord.bot("POST", f"{GENERAL}/messages", {"content": text})).json()
    assert (told["mention_roles"], told["mention_everyone"]) == ([role, role_of(BASE, HOLDER)], True)


async def test_a_nonce_is_its_authors_in_all_channels(discord: Outside):
    other = (await discord.bot("POST", f"/guilds/{BASE}/channels", {"name": "other"})).json()["id"]
    body = {"content": "Once", "nonce": "n-1", "enforce_nonce": True}
    first = (await discord.bot("POST", f"{GENERAL}/messages", body)).json()
    again = (await discord.bot("POST", f"/channels/{other}/messages", body)).json()
    assert again["id"] == first["id"]


async def test_without_read_message_history_there_are_no_messages_to_list(discord: Outside):
    await discord.bot("POST", f"{GENERAL}/messages", {"content": "Hi"})
    everyone = 1 << 10 | 1 << 11 | 1 << 14
    for role in ("@everyone", "HoldfastBot"):
        await discord.control("guilds", guild=BASE, action="edit_role", role=role, permissions=str(everyone))
    answer = await discord.bot("GET", f"{GENERAL}/messages")
    assert (answer.status_code, answer.json()) == (200, [])


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
    for letter in "ab":
        wanted = [command(name=f"{letter}{n}") for n in range(3)]
        answer = await discord.bot("PUT", base, wanted)
        assert answer.status_code == 200, answer.text
    before = (await discord.bot("GET", base)).json()
    assert [one["name"] for one in before] == ["b0", "b1", "b2"]
    for code, refused in (
        (30032, [command(name=f"c{n}") for n in range(4)]),
        (30034, [*wanted[:1], *map(named, "xy")]),
    ):
        answer = await discord.bot("PUT", base, refused)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert (await discord.bot("GET", base)).json() == before
    assert (await discord.bot("PUT", base, [named("x")])).status_code == 200, "the refused ones are not counted"


CHANNELS: dict[str, tuple[dict[str, Any], str]] = {
    "forum in a server that is not a community": ({"type": 15}, "type"),
    "unknown type": ({"type": 1}, "type"),
    "no name": ({"name": ""}, "name"),
    "name over 100": ({"name": LONG}, "name"),
    "parent that is not a category": ({"parent_id": str(int(BASE) + 100)}, "parent_id"),
    "parent that is not there": ({"parent_id": "5"}, "parent_id"),
    "slowmode over 21600": ({"rate_limit_per_user": 99_999}, "rate_limit_per_user"),
    "topic over 1024": ({"topic": "x" * 1025}, "topic"),
    "same bit allowed and denied": (
        {"permission_overwrites": [{"id": BASE, "type": 0, "allow": "1024", "deny": "1024"}]},
        "permission_overwrites.0",
    ),
    "overwrite without id": ({"permission_overwrites": [{"type": 0}]}, "permission_overwrites.0.id"),
}


@pytest.mark.parametrize("case", CHANNELS)
async def test_a_channel_that_discord_refuses(discord: Outside, case: str):
    body, path = CHANNELS[case]
    before = (await discord.bot("GET", f"/guilds/{BASE}/channels")).json()
    place_of(await discord.bot("POST", f"/guilds/{BASE}/channels", {"name": "new", **body}), path)
    assert (await discord.bot("GET", f"/guilds/{BASE}/channels")).json() == before


async def test_an_overwrite_is_for_somebody_who_is_there(discord: Outside):
    overwrites = [{"id": "5", "type": 1, "allow": "1024"}]
    body = {"name": "new", "permission_overwrites": overwrites}
    answer = await discord.bot("POST", f"/guilds/{BASE}/channels", body)
    assert (answer.status_code, answer.json()["code"]) == (404, 10013)
    overwrites[0]["type"] = 0
    assert (await discord.bot("POST", f"/guilds/{BASE}/channels", body)).json()["code"] == 10011


async def test_a_channel_stands_in_a_category(discord: Outside):
    made = (await discord.bot("POST", f"/guilds/{BASE}/channels", {"name": "Place", "type": 4})).json()
    inside = {"name": "In It", "parent_id": made["id"]}
    answer = (await discord.bot("POST", f"/guilds/{BASE}/channels", inside)).json()
    assert (answer["parent_id"], answer["name"]) == (made["id"], "in-it")
    out = await discord.bot("PATCH", f"/channels/{answer['id']}", {"parent_id": None})
    assert out.json()["parent_id"] is None


async def test_an_audit_reason_has_at_most_512_characters(discord: Outside):
    path = f"/guilds/{BASE}/members/{CAROL}/roles/{role_of(BASE, HOLDER)}"
    right = await discord.bot("PUT", path, headers={"X-Audit-Log-Reason": "%E2%9C%93" * 512})
    wrong = await discord.bot("PUT", path, headers={"X-Audit-Log-Reason": "x" * 513})
    assert (right.status_code, wrong.status_code, wrong.json()["code"]) == (204, 400, 50035)


async def test_a_deleted_role_is_told_once_and_not_for_each_holder(discord: Outside):
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Holder")
    async with ready(discord) as (client, _):
        await discord.bot("DELETE", f"/guilds/{BASE}/roles/{role_of(BASE, HOLDER)}")
        await discord.control("gateway", action="send", event="MARK", payload={})
        told: list[str] = []
        while (event := (await client.frame())["t"]) != "MARK":
            told.append(event)
    assert [event for event in told if event != "GUILD_CREATE"] == ["GUILD_ROLE_DELETE"]
    assert (await discord.member(BASE, "carol"))["roles"] == []


async def test_other_versions_of_the_path_answer_too(discord: Outside):
    headers = {"Authorization": f"Bot {discord.settings['DISCORD_BOT_TOKEN']}"}
    for version in ("/v9", "/v10", ""):
        answer = await discord.http.get(f"/discord/api{version}/guilds/{BASE}", headers=headers)
        assert answer.json()["id"] == BASE
    assert (await discord.http.get("/discord/api/v5/users/@me", headers=headers)).status_code == 404


async def test_a_request_that_says_not_what_sends_it_is_blocked(discord: Outside):
    answer = await discord.bot("GET", "/users/@me", headers={"User-Agent": ""})
    assert (answer.status_code, answer.json()["code"]) == (403, 40333)


async def test_messages_and_renames_are_slow_where_the_sandbox_is_strict(discord: Outside):
    discord.sandbox.be_strict(False)
    usual = (await discord.http.get("/control/limits")).json()["discord"]
    discord.sandbox.be_strict(True)
    told = (await discord.http.get("/control/limits")).json()["discord"]
    assert told["messages_of_a_channel"] == {"requests": 5, "seconds": 5.0}
    assert set(told) - set(usual) == {"messages_of_a_channel", "renames_of_a_channel"}
    renamed = [(await discord.bot("PATCH", GENERAL, {"name": f"n{n}"})) for n in range(3)]
    assert [answer.status_code for answer in renamed] == [200, 200, 429]
    assert 500 < renamed[-1].json()["retry_after"] <= 600
    assert (await discord.bot("PATCH", GENERAL, {"nsfw": False})).status_code == 200
    posted = [(await discord.bot("POST", f"{GENERAL}/messages", {"content": "x"})) for _ in range(6)]
    assert [answer.status_code for answer in posted] == [200] * 5 + [429]
    assert posted[0].headers["X-RateLimit-Limit"] == "5"
    assert 0 < posted[-1].json()["retry_after"] <= 5
