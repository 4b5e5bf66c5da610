"""Discord's refusals of bodies of messages, each with the place of its error."""

from typing import Any

import pytest

from tests.sandbox.conftest import BASE, HOLDER, Outside, role_of

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
    "a picture of less than no width": (
        embed(title="T", image={"url": "https://example.org/a.png", "width": -1}),
        "embeds.0.image.width",
    ),
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
