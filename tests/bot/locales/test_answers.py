"""Interactions answered at the same time, each in its own language."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bot.commands.verify import claim_form
from bot.interaction import answering
from bot.interaction.answering import InteractionContext, answer, ask
from bot.interaction.forms import Form
from bot.messages.reply import Reply
from locales import _
from models import now
from services.servers.notices import NoticeView

TITLES = {"ja": "あなたのウォレット", "pt-BR": "Suas carteiras", "es-419": "Tus billeteras", "de": "Your wallets"}


def interaction(locale: str, shown: dict[str, str]) -> Any:
    """Return enough of a library interaction to answer it; `shown` collects the titles by locale."""

    async def defer(**_options: Any) -> None: ...

    async def edit(embeds: list[Any], **_options: Any) -> None:
        shown[locale] = embeds[-1].title

    async def send_modal(form: Form) -> None:
        shown[locale] = str(form.title)

    return SimpleNamespace(
        id=1, locale=locale, guild_id=1, guild=object(), created_at=now(), edit_original_message=edit,
        user=SimpleNamespace(id=2, name="carol", discriminator="0"),
        response=SimpleNamespace(defer=defer, send_modal=send_modal),
    )  # fmt: skip


async def test_languages_of_answers_that_are_made_at_once_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_notices(_context: InteractionContext) -> list[Any]:
        return []

    monkeypatch.setattr(answering, "_waiting", no_notices)
    shown, everybody = dict[str, str](), asyncio.Barrier(len(TITLES))

    async def work(_context: InteractionContext) -> Reply:
        await everybody.wait()
        return Reply(_("Your wallets"))

    await asyncio.gather(*(answer(interaction(locale, shown), work) for locale in TITLES))
    assert shown == TITLES


async def test_a_form_is_made_in_the_language_of_who_asks_for_it() -> None:
    shown = dict[str, str]()
    for locale in ("ja", "xx"):
        await ask(interaction(locale, shown), claim_form)
    assert shown == {"ja": "ウォレットを認証", "xx": "Verify a wallet"}


async def test_notices_that_do_not_fit_above_an_answer_wait_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, told = [NoticeView(number, "n" * 900) for number in range(1, 9)], list[int]()

    async def some(_context: InteractionContext) -> list[NoticeView]:
        return waiting

    async def mark(_db: object, notices: list[NoticeView]) -> None:
        told.extend(one.id for one in notices)

    @asynccontextmanager
    async def transaction() -> AsyncIterator[None]:
        yield

    async def work(_context: InteractionContext) -> Reply:
        return Reply("Your wallets", "w" * 5000)

    monkeypatch.setattr(answering, "_waiting", some)
    monkeypatch.setattr(answering.notice_service, "mark_shown", mark)
    monkeypatch.setattr(answering, "transaction", transaction)
    asked, sent = interaction("en-US", {}), list[list[Any]]()

    async def edit(embeds: list[Any], **_options: Any) -> None:
        sent.append(embeds)

    asked.edit_original_message = edit
    await answer(asked, work)
    (embeds,) = sent
    assert all(len(one.description) <= 4096 for one in embeds)
    assert sum(len(one) for one in embeds) <= 6000
    assert told == [1, 2]
