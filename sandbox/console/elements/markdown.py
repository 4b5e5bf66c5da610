"""Discord's markdown as markup: what its client makes of a message's text, without pictures or external links.

Supported: bold, italics, underline, strike-through, spoilers, code, quotes, headings, lists, links, mentions and times
(docs/facts.md#discord-messages).
"""

import re
from datetime import UTC, datetime

from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.people import name_of
from sandbox.discord.world.entities import Guild
from sandbox.discord.world.world import World

_BLOCK = re.compile(r"```(?:[\w+-]*\n)?(.*?)```", re.S)
_INLINE = re.compile(
    r"\\(?P<escaped>[^\w\s])"
    r"|`(?P<code>[^`\n]+)`"
    r"|\*\*(?P<bold>.+?)\*\*(?!\*)"
    r"|__(?P<under>.+?)__"
    r"|~~(?P<strike>.+?)~~"
    r"|\|\|(?P<spoiler>.+?)\|\|"
    r"|\*(?P<star>[^*\s](?:[^*]*[^*\s])?)\*"
    r"|(?<!\w)_(?P<line>[^_\s](?:[^_]*[^_\s])?)_(?!\w)"
    r"|\[(?P<label>[^\]\n]+)\]\((?P<target>https?://[^\s)]+)\)"
    r"|<t:(?P<moment>-?\d{1,11})(?::(?P<style>[tTdDfFR]))?>"
    r"|<(?P<kind>@!?|@&|#)(?P<id>\d{15,20})>"
    r"|(?P<everyone>@(?:everyone|here))"
    r"|(?P<url>https?://[^\s<>()]+)",
    re.S,
)
_HEADING = re.compile(r"(#{1,3}) (.+)")
_SPANS = {"bold": "strong", "star": "em", "line": "em", "under": "u", "strike": "s"}


class Markdown:
    """Renders the texts of one guild; it knows the names of its roles, channels and people."""

    def __init__(self, world: World, guild: Guild) -> None:
        self._world = world
        self._guild = guild

    def render(self, text: str) -> Markup:
        """Return the text as blocks and lines."""
        parts = _BLOCK.split(text)
        shown = [
            el("pre", el("code", part.strip("\n"))) if at % 2 else self._lines(part) for at, part in enumerate(parts)
        ]
        return join(shown)

    def line(self, text: str) -> Markup:
        """Return one line without blocks, as in titles."""
        return self._inline(text.replace("\n", " "))

    def _lines(self, text: str) -> Markup:
        shown: list[Markup] = []
        for line in text.strip("\n").split("\n") if text.strip("\n") else []:
            if heading := _HEADING.fullmatch(line):
                shown.append(el("p", self._inline(heading[2]), class_=f"h h{len(heading[1])}"))
            elif line.startswith("> "):
                shown.append(el("blockquote", self._inline(line[2:])))
            elif line[:2] in ("- ", "* "):
                shown.append(el("p", "• ", self._inline(line[2:])))
            else:
                shown.append(el("p", self._inline(line)) if line else el("p", class_="gap"))
        return join(shown)

    def _inline(self, text: str) -> Markup:
        shown: list[str | Markup] = []
        at = 0
        for match in _INLINE.finditer(text):
            shown += [text[at : match.start()], self._piece(match)]
            at = match.end()
        return join(*shown, text[at:])

    def _piece(self, match: re.Match[str]) -> Markup:
        found = {name: value for name, value in match.groupdict().items() if value is not None}
        for name, element in _SPANS.items():
            if name in found:
                return el(element, self._inline(found[name]))
        if "escaped" in found:
            return join(found["escaped"])
        if "code" in found:
            return el("code", found["code"])
        if "spoiler" in found:
            return el("details", el("summary", "Spoiler"), self._inline(found["spoiler"]), class_="spoiler")
        if "target" in found or "url" in found:
            target = found.get("target") or found["url"]
            return el("a", found.get("label") or target, href=target, rel="noopener noreferrer", target="_blank")
        if "moment" in found:
            return moment(int(found["moment"]), found.get("style", "f"))
        if "everyone" in found:
            return el("span", found["everyone"], class_="mention")
        return el("span", self._mention(found["kind"], found["id"]), class_="mention")

    def _mention(self, kind: str, id_: str) -> str:
        if kind == "#":
            channel = self._guild.channels.get(id_)
            return f"#{channel.name}" if channel else "#unknown"
        if kind == "@&":
            role = self._guild.roles.get(id_)
            return f"@{role.name}" if role else "@deleted-role"
        user = self._world.users.get(id_)
        return f"@{name_of(self._guild, user)}" if user else "@unknown-user"


_AGES = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_STYLES: dict[str, str] = {
    "t": "%H:%M", "T": "%H:%M:%S", "d": "%d/%m/%Y", "D": "%-d %B %Y", "f": "%-d %B %Y %H:%M",
    "F": "%A, %-d %B %Y %H:%M",
}  # fmt: skip


def moment(seconds: int, style: str) -> Markup:
    """Return a time as Discord writes it; `R` says how long ago in whole minutes, so that pages rarely change."""
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError):
        return join("Invalid date")
    text = _ago((datetime.now(UTC) - when).total_seconds()) if style == "R" else when.strftime(_STYLES[style])
    return el("time", text, datetime=when.isoformat(), title=when.strftime("%-d %B %Y %H:%M UTC"))


def _ago(seconds: float) -> str:
    past = seconds >= 0
    length = abs(int(seconds))
    if length < 60:
        return "less than a minute ago" if past else "in less than a minute"
    size, unit = next((size, unit) for size, unit in _AGES if length >= size)
    count = length // size
    told = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{told} ago" if past else f"in {told}"
