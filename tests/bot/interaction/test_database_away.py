"""What a member reads while the database does not answer: a sentence each time, and a search that goes on."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bot.commands import roles, try_address, verify, wallets
from bot.commands.verify import ProofSearch, Verify
from bot.interaction import answering, recheck_wait
from bot.interaction.answering import InteractionContext
from bot.interaction.presses import Presses
from bot.messages.reply import Reply
from services.core.actors import Actor
from services.guilds.members import MemberContext
from services.servers import notices
from services.servers.notices import NoticeView
from services.wallets import bio_schedule
from services.wallets import wallets as wallet_service
from services.wallets.ownership import Verdict
from tests.bot.test_events import AWAY

ADDRESS = "0x" + "12" * 20
MEMBER = MemberContext(Actor(1, "1", "ada"), 1, "1", "Cats")
FAULTS = pytest.mark.parametrize("fault", AWAY, ids=lambda fault: type(fault).__name__)


def person(offered: list[dict[str, str]] | None = None) -> Any:
    """Return an interaction; the choices that it is sent are added to `offered`."""

    async def send_autocomplete(choices: dict[str, str]) -> None:
        if offered is not None:
            offered.append(choices)

    user = SimpleNamespace(id=1, name="ada", discriminator="0")
    rights = SimpleNamespace(administrator=True)
    response = SimpleNamespace(send_autocomplete=send_autocomplete)
    return SimpleNamespace(
        id=1, guild_id=1, guild=object(), user=user, locale=None, permissions=rights, response=response
    )


def raises(fault: Exception) -> Callable[..., Any]:
    async def away(*_: object, **__: object) -> Any:
        raise fault

    return away


@FAULTS
async def test_a_command_says_that_the_database_does_not_answer(fault: Exception) -> None:
    reply = await answering.outcome(raises(fault)())
    assert (reply.title, reply.tone) == ("One moment", "warning")
    assert "Our database does not answer right now." in reply.text


@FAULTS
async def test_choices_are_none_rather_than_an_error(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    offered = list[dict[str, str]]()
    monkeypatch.setattr(InteractionContext, "find_member", raises(fault))
    presses = Presses()
    await roles.Roles(presses).roles_like(person(offered), "")
    await try_address.Trials().rules_like(person(offered), "")
    await wallets.Wallets(presses).wallets_like(person(offered), "")
    assert offered == [{}, {}, {}]


@FAULTS
async def test_a_search_for_a_proof_goes_on(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    shown, asked = list[Reply](), list[str]()

    async def held(_: object) -> frozenset[str]:
        asked.append("held")
        if len(asked) == 1:
            raise fault
        return frozenset()

    async def found(*_: object, **__: object) -> MemberContext:
        return MEMBER

    async def checked(*_: object) -> Verdict:
        return Verdict(True, "It is yours.")

    async def result(*_: object) -> Reply:
        return Reply("Wallet verified", tone="good")

    async def show(_: object, reply: Reply) -> bool:
        shown.append(reply)
        return True

    monkeypatch.setattr(recheck_wait, "held", held)
    monkeypatch.setattr(recheck_wait, "result", result)
    monkeypatch.setattr(InteractionContext, "find_member", found)
    monkeypatch.setattr(wallet_service, "check_again", checked)
    monkeypatch.setattr(verify, "show", show)
    monkeypatch.setattr(verify, "transaction", lambda: _Nothing())
    monkeypatch.setattr(bio_schedule, "FIRST", 0.0)
    context = InteractionContext(person(), "1", "1", "ada")
    looks = bio_schedule.BioChecks(0.0, 0.0)
    await Verify(Presses())._look(ProofSearch(context, MEMBER, ADDRESS, wallet_service.BIO, looks))
    assert ([reply.title for reply in shown], len(asked)) == (["Wallet verified"], 2)


@FAULTS
async def test_a_notice_that_cannot_be_marked_as_shown_is_no_error(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    async def waiting(_: object) -> list[NoticeView]:
        return [NoticeView(1, "A role was taken from you.")]

    async def works(*_: object, **__: object) -> bool:
        return True

    async def helped(_: object) -> Reply:
        return Reply("Help")

    monkeypatch.setattr(answering, "_waiting", waiting)
    monkeypatch.setattr(answering.delivery, "first", works)
    monkeypatch.setattr(answering, "show", works)
    monkeypatch.setattr(answering, "transaction", lambda: _Nothing())
    monkeypatch.setattr(notices, "mark_shown", raises(fault))
    await answering.answer(person(), helped)


class _Nothing:
    async def __aenter__(self) -> None:
        """Open nothing."""

    async def __aexit__(self, *_: object) -> None:
        """Close nothing."""
