"""Messages as the person sees them: the author, the text, the embeds and the components."""

from datetime import UTC, datetime
from typing import Any

from sandbox.console.elements.forms import hidden, press_form
from sandbox.console.elements.markdown import Markdown
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.people import colour_of, name_of, picture
from sandbox.console.elements.place import Place
from sandbox.discord import LocalDiscord
from sandbox.discord.forms import components as parts
from sandbox.discord.interactions.interactions import LOADING
from sandbox.discord.world import permissions
from sandbox.discord.world.entities import EPHEMERAL, Channel, Guild, Message

SHOWN = 50
BUTTON_STYLES = {1: "primary", 2: "secondary", 3: "success", 4: "danger"}
TEXT_DISPLAY, SECTION = 10, 9
Json = dict[str, Any]


def messages(discord: LocalDiscord, place: Place, dismissed: set[str]) -> Markup:
    """Return the channel's newest messages and the answers that only this person sees, oldest first."""
    guild, channel = place.guild, place.channel
    if guild is None or channel is None:
        return el("li", "There is no channel here that you can see.", class_="nothing", data_key="none")
    granted = permissions.channel_permissions(guild, channel, guild.members[place.user.id])
    history = granted & permissions.READ_MESSAGE_HISTORY
    found = list(discord.world.messages[channel.id].values()) if history else []
    found += [
        message
        for message in discord.interactions.hidden_messages(place.user.id)
        if message.channel_id == channel.id and message.id not in dismissed
    ]
    found.sort(key=lambda message: int(message.id))
    if not found:
        return el("li", _beginning(channel), class_="nothing", data_key="none")
    return join(_message(discord, place, guild, message) for message in found[-SHOWN:])


def _beginning(channel: Channel) -> Markup:
    return join(
        el("span", "#", class_="hash", aria_hidden="true"),
        el("strong", f"Welcome to #{channel.name}!"),
        el("span", "Nothing has been said here yet."),
    )


def _message(discord: LocalDiscord, place: Place, guild: Guild, message: Message) -> Markup:
    author = discord.world.users[message.author_id]
    name, words = name_of(guild, author), Markdown(discord.world, guild)
    when = datetime.fromisoformat(message.timestamp)
    head = el(
        "p",
        el("strong", name, class_="name", style=colour_of(guild, author.id)),
        el("span", "APP", class_="app") if author.bot else None,
        el("time", _clock(when), datetime=message.timestamp, title=when.strftime("%-d %B %Y %H:%M UTC")),
        class_="head",
    )
    if message.flags & LOADING:
        said = el("p", el("span", class_="dots", aria_hidden="true"), f"{name} is thinking…", class_="dim")
    else:
        edited = el("span", " (edited)", class_="edited") if message.edited_timestamp and message.content else None
        said = join(
            el("div", words.render(message.content), edited, class_="text") if message.content else None,
            (_embed(embed, words) for embed in message.embeds),
            (_component(place, message, one, words) for one in message.components),
        )
    only_you = bool(message.flags & EPHEMERAL)
    return el(
        "li",
        picture(author),
        el("div", head, said, _dismissal(place, message) if only_you else None, class_="said"),
        class_="message only-you" if only_you else "message",
        data_key=message.id,
    )


def _clock(when: datetime) -> str:
    today = datetime.now(UTC).date() == when.date()
    return when.strftime("%H:%M") if today else when.strftime("%d/%m/%Y %H:%M")


def _dismissal(place: Place, message: Message) -> Markup:
    return el(
        "form",
        hidden(back=place.url(), message=message.id),
        el("span", "Only you can see this • "),
        el("button", "Dismiss message", class_="link", id=f"dismiss-{message.id}"),
        method="post",
        action="/console/dismiss",
        data_live=True,
        class_="dim dismissal",
    )


def _embed(embed: Json, words: Markdown) -> Markup:
    color = embed.get("color")
    bar = f"--bar:#{int(color) & 0xFFFFFF:06x}" if isinstance(color, int) else None
    author, footer = embed.get("author") or {}, embed.get("footer") or {}
    fields = [
        el(
            "div",
            el("strong", words.line(str(field["name"]))),
            el("div", words.render(str(field["value"]))),
            class_="field inline" if field.get("inline") else "field",
        )
        for field in embed.get("fields", [])
    ]
    return el(
        "section",
        el("p", str(author["name"]), class_="by") if author.get("name") else None,
        el("h3", words.line(str(embed["title"]))) if embed.get("title") else None,
        el("div", words.render(str(embed["description"]))) if embed.get("description") else None,
        el("div", fields, class_="fields") if fields else None,
        el("p", str(footer["text"]), class_="foot") if footer.get("text") else None,
        class_="embed",
        style=bar,
    )


def _component(place: Place, message: Message, component: Json, words: Markdown) -> Markup:
    inner: list[Json] = component.get("components", [])
    match component.get("type"):
        case parts.ACTION_ROW:
            return el("div", (_component(place, message, one, words) for one in inner), class_="row")
        case parts.BUTTON:
            return _button(place, message, component)
        case 3 | 5 | 6 | 7 | 8:
            return _select(place, message, component)
        case parts.CONTAINER:
            return el("div", (_component(place, message, one, words) for one in inner), class_="embed")
        case int(kind) if kind == TEXT_DISPLAY:
            return el("div", words.render(str(component.get("content", ""))), class_="text")
        case int(kind) if kind == SECTION:
            side = component.get("accessory")
            shown = [*inner, *([side] if isinstance(side, dict) else [])]
            return el("div", (_component(place, message, one, words) for one in shown), class_="section")
        case parts.SEPARATOR:
            return el("hr")
        case kind:
            return el("p", f"(a component of type {kind}, which this window does not draw)", class_="dim")


def _button(place: Place, message: Message, component: Json) -> Markup:
    emoji = (component.get("emoji") or {}).get("name")
    label = " ".join(str(part) for part in (emoji, component.get("label")) if part) or "…"
    url = str(component.get("url", ""))
    if component.get("style") == parts.LINK:
        if not url.startswith(("https://", "http://")):
            return el("span", label, class_="button secondary")
        return el("a", label, href=url, rel="noopener noreferrer", target="_blank", class_="button secondary")
    custom_id = str(component.get("custom_id", ""))
    return press_form(
        place,
        "button",
        message,
        custom_id,
        el(
            "button",
            label,
            class_=BUTTON_STYLES.get(component.get("style", 2), "secondary"),
            disabled=bool(component.get("disabled")),
            id=f"press-{message.id}-{component.get('id')}",
        ),
    )


def _select(place: Place, message: Message, component: Json) -> Markup:
    name = str(component.get("placeholder") or "Make a selection")
    chosen = [(str(one["value"]), str(one["label"])) for one in component.get("options", [])]
    if component["type"] == 6 and place.guild:
        chosen = [(role.id, role.name) for role in place.guild.roles.values()]
    many = component.get("max_values", 1) > 1
    key = f"choose-{message.id}-{component.get('id')}"
    options = [el("option", label, value=value) for value, label in chosen]
    return press_form(
        place,
        "select",
        message,
        str(component["custom_id"]),
        el("label", name, for_=key, class_="unseen"),
        el(
            "select",
            None if many else el("option", name, value=""),
            options,
            name="values",
            id=key,
            required=True,
            multiple=many,
            disabled=bool(component.get("disabled")),
        ),
        el("button", "Choose", class_="secondary", aria_label=f"Choose: {name}", id=f"{key}-go"),
    )
