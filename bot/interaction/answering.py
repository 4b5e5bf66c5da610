"""Answer interactions: acknowledge within three seconds, then send the result or an error, always something."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import nextcord

from bot.interaction import delivery, unstored_members
from bot.interaction.delivery import Interaction
from bot.messages import notices
from bot.messages.reply import Reply
from locales import _, speaking
from models import transaction
from services.accounts.users import whole_username
from services.core import request_ids
from services.core.discord_text import plain
from services.core.errors import HoldfastError, TooMany
from services.guilds import members
from services.guilds.members import MemberContext
from services.runtime import rate_limits
from services.runtime.database_faults import NOT_DONE, first_line
from services.servers import notices as notice_service
from services.servers.notices import NoticeView

log = logging.getLogger(f"holdfast.{__name__}")

MOST_CHOICES, LONGEST_LABEL = 25, 100
"""Choices of an autocomplete, and characters of a label."""
MOST_IN_A_MESSAGE = 6_000
"""Characters of all embeds of a message together, beyond which Discord refuses it (docs/facts.md#discord-messages)."""
LONGEST_REASON = 900
"""Characters of the reason why something did not work."""
Work = Callable[["InteractionContext"], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class InteractionContext:
    """An interaction in a server, and its person."""

    interaction: Interaction
    guild_id: str
    discord_id: str
    username: str

    async def find_member(self, *, keep: bool = False) -> MemberContext:
        """Return the person and the server as we know them; `keep` stores a new person. Raises ServerNotFound."""
        async with transaction() as db:
            return await members.find_member(db, self.guild_id, self.discord_id, self.username, keep=keep)


def elsewhere(interaction: Interaction) -> str | None:
    """Return the sentence for places without the bot (direct messages, groups, servers where only the user has it).

    None in a server with the bot.
    """
    if interaction.guild_id is None:
        return _("Use this inside a server.")
    # At the start of a session, Discord lists every server of the bot, also those in an outage.
    if interaction.guild is not None:
        return None
    return _("The bot is not in this server, so nothing can be verified here. People who run the server can invite it.")


def context_of(interaction: Interaction) -> InteractionContext | None:
    """Return the context of an interaction, or None outside a server."""
    if interaction.guild_id is None or interaction.user is None:
        return None
    user = interaction.user
    username = whole_username(user.name, user.discriminator)
    return InteractionContext(interaction, str(interaction.guild_id), str(user.id), username)


async def answer(interaction: Interaction, work: Work, *, takes_place: bool = False) -> None:
    """Do the work and show its reply only to the person, in their language, below their pending notices.

    With `takes_place`, the reply replaces the person's own message with the pressed button, so that no button of an
    answered question remains. Only for quick work: until then nothing shows that it runs.
    """
    request_ids.begin(f"discord-{interaction.id}")
    with speaking(interaction.locale):
        await _answer(interaction, work, _own_message(interaction) if takes_place else None)


def _own_message(interaction: Interaction) -> nextcord.Message | None:
    """Return the message with the pressed button; None if others see it too, as they see the panel."""
    message = interaction.message
    return message if message is not None and message.flags.ephemeral else None


async def _answer(interaction: Interaction, work: Work, question: nextcord.Message | None) -> None:
    context = context_of(interaction)
    if await _told_elsewhere(interaction) or context is None:
        return
    if not await delivery.first(lambda: interaction.response.defer(ephemeral=True, with_message=question is None)):
        return
    # Discord's confirmation of the first answer took long enough for `MemberReader` to begin.
    await unstored_members.stored(interaction.id)
    reply = await outcome(_within_limit(context, work))
    pending = notices.fitting(await _waiting(context))
    if unsaid := [notice for notice in pending if notice.taken not in reply.taken]:
        reply = reply.after([notices.embed(unsaid)])
    if await show(interaction, reply, question if reply.failed else None) and pending:
        try:
            async with transaction() as db:
                await notice_service.mark_shown(db, pending)
        except NOT_DONE as fault:
            # They are shown once more.
            log.warning("notices not marked as shown reason=%s", first_line(fault))


async def _within_limit(context: InteractionContext, work: Work) -> Reply:
    """Do the work unless the person sends too much: a client without Discord's own limit could keep us busy alone."""
    await rate_limits.spend_for_interaction(context.discord_id)
    return await work(context)


async def _told_elsewhere(interaction: Interaction) -> bool:
    """Explain that the bot is not in this place; return False if it is."""
    sentence = elsewhere(interaction)
    if sentence is not None:
        await delivery.first(lambda: interaction.response.send_message(sentence, ephemeral=True))
    return sentence is not None


async def outcome(work: Awaitable[Reply]) -> Reply:
    """Return the reply, or a reply about the failure; an unexpected error is logged."""
    try:
        return await work
    except TooMany as fault:
        return Reply(_("Not so fast"), plain(fault.message, LONGEST_REASON), "warning", failed=True)
    except HoldfastError as fault:
        # It may repeat what the person typed.
        return Reply(_("That did not work"), plain(fault.message, LONGEST_REASON), "warning", failed=True)
    except NOT_DONE as fault:
        log.warning("database did not answer an interaction reason=%s", first_line(fault))
        text = _("Our database does not answer right now. Please try again in a minute.")
        return Reply(_("One moment"), text, "warning", failed=True)
    except Exception:
        log.exception("interaction failed")
    return _own_fault()


def _own_fault() -> Reply:
    text = _("Nothing was changed. Please try again in a minute.")
    return Reply(_("Something went wrong on our side"), text, "bad", failed=True)


async def answer_own_fault(interaction: Interaction) -> None:
    """Answer that something went wrong, for an error outside of `answer`, unless there is an answer already."""

    async def work(_: InteractionContext) -> Reply:
        return _own_fault()

    if not interaction.response.is_done():
        await answer(interaction, work)


async def show(interaction: Interaction, reply: Reply, question: nextcord.Message | None = None) -> bool:
    """Replace the answer with the reply; return False if Discord no longer shows it (after 15 minutes).

    A `question` stays below the reply, with its buttons: it is not answered yet. Where its text has no room there, only
    the buttons stay.
    """
    embeds, view = reply.embeds(), reply.view()
    if question is None:
        return await delivery.later(interaction, lambda: interaction.edit_original_message(embeds=embeds, view=view))
    # Its last embed: those before it are notices, or the reply to an earlier press.
    both = [*embeds, *question.embeds[-1:]]
    fitting = both if sum(map(len, both)) <= MOST_IN_A_MESSAGE else embeds
    return await delivery.later(interaction, lambda: interaction.edit_original_message(embeds=fitting))


async def ask(interaction: Interaction, make: Callable[[], nextcord.ui.Modal]) -> None:
    """Show a form in the person's language, except in places without the bot."""
    with speaking(interaction.locale):
        if not await _told_elsewhere(interaction):
            form = make()
            await delivery.first(lambda: interaction.response.send_modal(form))


async def offer(
    interaction: Interaction, find: Callable[[MemberContext], Awaitable[Iterable[tuple[str, str]]]]
) -> None:
    """Send an autocomplete's choices, pairs of a label and a value; none where they cannot be read.

    None either for a person who asks for too many: each list is read from the database.
    """
    choices, context = dict[str, str](), context_of(interaction)
    if context is not None:
        with speaking(interaction.locale), suppress(HoldfastError, *NOT_DONE):
            await rate_limits.spend_for_completion(context.discord_id)
            choices = distinct(await find(await context.find_member()))

    def send() -> Awaitable[object]:
        return interaction.response.send_autocomplete(choices)  # pyright: ignore[reportUnknownMemberType]

    await delivery.first(send)


def distinct(choices: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the choices as label → value, as many as Discord accepts (docs/facts.md#discord-interactions).

    A label that another value already has gets a number, or a person could choose only one of two roles of one name.
    """
    found: dict[str, str] = {}
    for whole, value in dict.fromkeys(choices):
        label, number = whole[:LONGEST_LABEL], 1
        while label in found:
            number += 1
            label = f"{whole[: LONGEST_LABEL - 6]} ({number})"
        found[label] = value
        if len(found) == MOST_CHOICES:
            break
    return found


async def _waiting(context: InteractionContext) -> list[NoticeView]:
    try:
        member = await context.find_member()
        async with transaction() as db:
            return await notice_service.waiting(db, member)
    except (HoldfastError, *NOT_DONE):
        return []
