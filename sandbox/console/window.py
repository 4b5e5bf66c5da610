"""The window: servers on the left, then channels, messages and members, and tools for everything else."""

from sandbox.assembly import WholeSandbox
from sandbox.console.composer import composer
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.people import icon, members, people_of, picture
from sandbox.console.elements.place import PANELS, Place, guilds_of, visible
from sandbox.console.messages import messages
from sandbox.console.modals import modal
from sandbox.console.panels.faults import faults_now
from sandbox.discord import LocalDiscord

SYMBOLS = {
    "servers": "M4 5h16v5H4zM4 14h16v5H4zM7 7.5h2M7 16.5h2",
    "chains": "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
    "profiles": "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4.5 20a7.5 7.5 0 0 1 15 0",
    "faults": "M13 3 5 14h6l-1 7 8-11h-6z",
}
"""The path of each icon, in a square of 24."""


def page(sandbox: WholeSandbox, place: Place, dismissed: set[str], panel: Markup) -> str:
    """Return the whole document; `panel` is the open tool, or empty."""
    discord = sandbox.discord
    title = PANELS[place.panel] if place.panel else f"#{place.channel.name}" if place.channel else "Nowhere"
    head = join(
        el("meta", charset="utf-8"),
        el("title", f"{title} | Sandbox console"),
        el("meta", name="viewport", content="width=device-width,initial-scale=1"),
        el("link", rel="icon", href="/console/pictures/console.png"),
        el("link", rel="stylesheet", href="/console/style.css"),
        el("script", src="/console/console.js", defer=True),
    )
    said = el("p", place.said, id="said", role="status", hidden=not place.said)
    body = el(
        "body",
        el("a", "Skip to the middle", href="#middle", class_="skip"),
        el("nav", _rail(sandbox, place), class_="rail", aria_label="Servers and tools"),
        el("nav", _side(discord, place), class_="side", aria_label="Channels and people"),
        _tool(place, panel) if place.panel else _talk(discord, place, dismissed),
        said,
        el("div", modal(discord, place), id="modal"),
        class_="tool" if place.panel else "talk",
    )
    return f'<!doctype html><html lang="en"><head>{head}</head>{body}</html>'


def parts(sandbox: WholeSandbox, place: Place, dismissed: set[str]) -> dict[str, Markup]:
    """Return the parts that change without a press, by the id of the element that shows them."""
    discord = sandbox.discord
    shown = {"rail": _rail_list(sandbox, place), "channels": _channels(place), "faults-now": faults_now(sandbox)}
    if place.panel is None:
        shown["messages"] = messages(discord, place, dismissed)
        shown["members"] = members(discord, place.guild) if place.guild else Markup()
    return shown


def _rail(sandbox: WholeSandbox, place: Place) -> Markup:
    return join(
        el("ul", _rail_list(sandbox, place), id="rail", data_part=True),
        el("hr"),
        el("ul", (_tool_link(place, name) for name in PANELS)),
    )


def _rail_list(sandbox: WholeSandbox, place: Place) -> Markup:
    return join(
        el(
            "li",
            el(
                "a",
                icon(guild),
                el("span", guild.name, class_="unseen"),
                href=place.url(guild=guild.id, channel=None, panel=None, at=None),
                title=guild.name,
                aria_current="page" if guild is place.guild and not place.panel else None,
            ),
            data_key=guild.id,
        )
        for guild in guilds_of(sandbox.discord, place.user)
    )


def _tool_link(place: Place, name: str) -> Markup:
    here = "page" if place.panel == name else None
    symbol = el("svg", el("path", d=SYMBOLS[name]), viewBox="0 0 24 24", aria_hidden="true")
    link = el("a", symbol, el("small", PANELS[name]), href=place.url(panel=name, at=None), aria_current=here)
    return el("li", link)


def _side(discord: LocalDiscord, place: Place) -> Markup:
    others = [
        el("li", el("a", picture(user, 24), user.username, href=place.url(**{"as": user.username})), data_key=user.id)
        for user in people_of(discord)
        if user is not place.user
    ]
    me = join(
        picture(place.user, 32),
        el(
            "span",
            el("strong", place.user.global_name or place.user.username),
            el("small", place.user.username, class_="dim"),
        ),
    )
    return join(
        el("h1", place.guild.name if place.guild else "No server"),
        el("ul", _channels(place), id="channels", data_part=True),
        el(
            "details",
            el("summary", me, el("span", "Switch", class_="swap"), aria_label="Be somebody else"),
            el("ul", others, class_="others"),
            class_="me",
        ),
    )


def _channels(place: Place) -> Markup:
    if place.guild is None:
        return el("li", "You are in no server.", class_="dim", data_key="none")
    return join(
        el(
            "li",
            el(
                "a",
                el("span", "# ", aria_hidden="true"),
                channel.name,
                href=place.url(channel=channel.id, panel=None, at=None),
                aria_current="page" if channel is place.channel and not place.panel else None,
            ),
            data_key=channel.id,
        )
        for channel in visible(place.guild, place.user)
    )


def _talk(discord: LocalDiscord, place: Place, dismissed: set[str]) -> Markup:
    channel, guild = place.channel, place.guild
    name = channel.name if channel else "nowhere"
    topic = el("span", channel.topic, class_="dim topic", title=channel.topic) if channel and channel.topic else None
    faults = el("p", faults_now(discord.sandbox), id="faults-now", data_part=True)
    middle = el(
        "main",
        el("header", el("h2", el("span", "# ", class_="hash", aria_hidden="true"), name), topic, faults),
        el(
            "div",
            el("ol", messages(discord, place, dismissed), id="messages", data_part=True),
            id="log",
            role="log",
            aria_label=f"Messages in #{name}",
            tabindex="0",
        ),
        composer(discord, place),
        id="middle",
        tabindex="-1",
    )
    there = members(discord, guild) if guild else None
    count = f"Members, {len(guild.members)}" if guild else "Members"
    aside = el(
        "aside",
        el("h2", count),
        el("ul", there, id="members", data_part=True, aria_label="Members"),
        aria_label="Members and their roles",
    )
    return join(middle, aside)


def _tool(place: Place, panel: Markup) -> Markup:
    title = PANELS[place.panel or ""]
    return el("main", el("header", el("h2", title)), el("div", panel, class_="cards"), id="middle", tabindex="-1")
