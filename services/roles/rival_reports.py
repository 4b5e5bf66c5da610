"""Rivals and truces of servers in words, and an admin's order to follow the rules again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gateways import Gateways
from locales import N_, _, day_and_time, listed, ngettext, sentences
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.guilds import permissions, rivals
from services.roles.rival_names import NO_PERMISSION
from services.rules.rule_rows import newest_role_name
from settings import settings

SHOWN = timedelta(hours=24)
"""How long a move is shown."""
MOST = 20
"""The most rivals that are shown for a server."""
MOST_TIMES = 3
"""The most times that a sentence names."""
WITHHELD = "withheld"
"""The reason for a name that the reader may not read."""
_WHY_UNKNOWN = {
    WITHHELD: N_("Who it was is left out: this token lacks the scope for members."),
    NO_PERMISSION: N_("Who it was is unknown: the bot lacks the permission View Audit Log, which would tell."),
    "": N_("Who it was is still looked up in the server's audit log."),
}
_NOT_FOUND = N_("Who it was is unknown: the server's audit log does not say it.")
_ALLOW = N_("Switch on View Audit Log for the bot's role in Server Settings › Roles.")


@dataclass(frozen=True, slots=True)
class Rival:
    """One rival's moves of one role of a server within a day."""

    server_id: int
    role_id: str
    role_name: str
    actor_id: str | None
    name: str | None
    bot: bool
    reason: str
    """Why the name is unknown; empty while it is looked up."""
    took: int
    gave: int
    against: bool
    searching: bool
    first_at: datetime
    last_at: datetime
    times: tuple[datetime, ...]

    def unnamed(self) -> "Rival":
        """Return the rival without its name and id if it is a person; bots keep theirs."""
        return self if self.bot or self.name is None else replace(self, name=None, actor_id=None, reason=WITHHELD)

    @property
    def title(self) -> str:
        """The title of an alert."""
        if self.bot and self.against:
            return _("Two bots fight over {role}").format(role=self.role_name)
        return _("Somebody else moves {role}").format(role=self.role_name)

    @property
    def text(self) -> str:
        """Sentences about what the rival did, and when."""
        parts = [self._did(count, taken=taken) for count, taken in ((self.took, True), (self.gave, False)) if count]
        times = listed([day_and_time(moment) for moment in self.times[:MOST_TIMES]])
        # Translators: {times} are the newest dates and times of what was said before.
        parts.append(_("Last: {times}.").format(times=times))
        if self.name is None:
            parts.append(_(_WHY_UNKNOWN.get(self.reason, _NOT_FOUND)))
        return sentences(*parts)

    def _did(self, count: int, *, taken: bool) -> str:
        if taken:
            # Translators: {name} is another bot or a person, {role} a role's name.
            said = ngettext(
                "{name} took {role} once within 24 hours.", "{name} took {role} {count} times within 24 hours.", count
            )
        else:
            said = ngettext(
                "{name} gave {role} once within 24 hours.", "{name} gave {role} {count} times within 24 hours.", count
            )
        return said.format(name=self.name or _("Somebody"), role=self.role_name, count=count)

    @property
    def mend(self) -> str:
        """Advice on how to end it."""
        if self.name is None:
            return _(_ALLOW) if self.reason == NO_PERMISSION else _("Look at Server Settings › Audit Log.")
        if self.bot:
            advice = _("Let one bot decide about {role}: end the rule for it in {name}, or here.")
        else:
            advice = _("Agree with {name} on who decides about {role}: they or the rule.")
        again = _("Undo on the Activity tab gives back what was taken.") if self.took and self.against else ""
        return f"{advice.format(role=self.role_name, name=self.name)} {again}".strip()


@dataclass(frozen=True, slots=True)
class TruceOfRole:
    """A role of a server that is left alone for some members."""

    server_id: int
    role_id: str
    role_name: str
    total: int
    since: datetime
    until: datetime

    @property
    def title(self) -> str:
        """The title of an alert."""
        said = ngettext(
            "{product} leaves {role} of {count} member alone", "{product} leaves {role} of {count} members alone",
            self.total,
        )  # fmt: skip
        return said.format(product=settings().product_name, role=self.role_name, count=self.total)

    @property
    def text(self) -> str:
        """Sentences about why the role is left alone, and until when."""
        told = _(
            "Others reversed it twice within an hour. {product} does not fight: it neither gives nor takes the role "
            "there until {time}, and then follows the rules again."
        )
        return told.format(product=settings().product_name, time=day_and_time(self.until))

    @property
    def mend(self) -> str:
        """Advice on how to end the truce earlier."""
        return _("Find out on Health who moves the role. Once that has ended, press Follow the rules again there.")


async def of_servers(db: AsyncSession, servers: Sequence[int]) -> list[Rival]:
    """Return the rivals that moved roles in these servers within a day, at most MOST for each server.

    Rivals that reversed our changes come first, then the newest.
    """
    values = {"servers": list(servers), "shown": SHOWN, "most": MOST, "denied": NO_PERMISSION}
    rows = (await db.execute(_RIVALS, values)).all()
    return [Rival(*row[:-1], times=tuple(row[-1])) for row in rows]


_RIVALS = f"""
    SELECT f.server_id, f.role_id, COALESCE({newest_role_name("f")}, f.role_id), f.actor_id, f.name, f.bot, f.reason,
           f.took, f.gave, f.against, f.searching, f.first_at, f.last_at, f.times
    FROM (
        SELECT m.*, row_number() OVER (PARTITION BY m.server_id ORDER BY m.against DESC, m.last_at DESC) AS place
        FROM (
            SELECT server_id, role_id, actor_id,
                   (array_agg(actor_name ORDER BY at DESC) FILTER (WHERE naming = 'named'))[1] AS name,
                   bool_or(actor_bot) AS bot, COALESCE(max(reason), '') AS reason,
                   count(*) FILTER (WHERE taken) AS took, count(*) FILTER (WHERE NOT taken) AS gave,
                   bool_or(against) AS against, bool_or(naming = 'open') AS searching,
                   min(at) AS first_at, max(at) AS last_at, (array_agg(at ORDER BY at DESC))[1:10] AS times
            FROM rival_move WHERE server_id = ANY(CAST(:servers AS integer[]))
            AND at > now() - CAST(:shown AS interval) GROUP BY server_id, role_id, actor_id, naming, reason
        ) m
    ) f WHERE f.place <= :most ORDER BY f.server_id, f.place
"""


async def truces_of_servers(db: AsyncSession, servers: Sequence[int]) -> list[TruceOfRole]:
    """Return the roles of these servers that are left alone."""
    rows = await db.execute(
        f"""
        SELECT t.server_id, t.role_id, COALESCE({newest_role_name("t")}, t.role_id), t.total, t.since, t.until
        FROM (
            SELECT server_id, role_id, count(*) AS total, min(since) AS since, max(until) AS until FROM truce
            WHERE server_id = ANY(CAST(:servers AS integer[])) AND until > now() GROUP BY server_id, role_id
        ) t ORDER BY t.server_id, t.since, t.role_id
        """,
        {"servers": list(servers)},
    )
    return [TruceOfRole(*row) for row in rows.all()]


async def follow_again(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, role_id: str, discord_id: str | None = None
) -> int:
    """End the truce about a role for one member or for all; return for how many. The rules decide again at once.

    Raises ServerNotFound unless the actor runs the server, ProviderUnavailable.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    ended = await rivals.end(db, server_id, role_id, None if discord_id is None else [discord_id])
    await audit.record_all(
        db,
        [
            audit.line(
                "role.followed_again", server_id=server_id, actor=actor.discord_id, subject=who, role_id=role_id,
                data={"early": True},
            )
            for who in ended
        ],
    )  # fmt: skip
    return len(ended)
