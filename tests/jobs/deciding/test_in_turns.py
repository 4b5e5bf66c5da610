"""Members who do not fit into one read are reconciled soon, however often that has failed before."""

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import col, select

from gateways.evm.tokens import erc1155
from gateways.evm.tokens.read_progress import TokenRead
from gateways.evm.tokens.received_tokens import LogReader
from jobs.reconciler import Reconciler
from models import Due, now, transaction
from services.rules.expression import Requirement, to_document
from tests.jobs.town import Town
from tests.jobs.watching import grants


async def test_who_has_no_turn_in_a_look_has_it_within_a_minute(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_history(*_: object, **more: Any) -> tuple[set[str], str]:
        return set(), "its history could not be searched"

    async def no_list(*_: object) -> dict[str, list[int]]:
        return {}

    first = 0
    monkeypatch.setattr(TokenRead, "listed", no_list)
    monkeypatch.setattr(LogReader, "search", no_history)
    monkeypatch.setattr(erc1155, "MOST_PAIRS", 50)
    monkeypatch.setattr(erc1155, "randbelow", lambda _: first)
    made = await town.call("chains/base/deploy", standard="ERC1155", name="Many", slug=uuid.uuid4().hex)
    for who in ("carol", "dave"):
        await town.call(
            "chains/base/mint", contract=made["contract"], token_id="7", to=town.wallet(who), amount="1"
        )  # fmt: skip
    leaf = Requirement("token_id", "base", made["contract"], token_ids=("0-49",))
    await town.change(await town.rule("Holder"), expression=to_document(leaf))
    for who in ("carol", "dave"):
        await town.prove(who)
    async with transaction() as db:
        for row in (await db.exec(select(Due))).all():
            row.attempts = 9
            db.add(row)
    reconciler = Reconciler(asyncio.Event())
    await reconciler.once()
    assert len(await grants(town)) == 1
    async with transaction() as db:
        mine = col(Due.key).startswith(f"{town.server_id}:")
        (row,) = (await db.exec(select(Due).where(mine))).all()
        assert "turn" in (row.reason or "")
        assert row.due_at - now() <= timedelta(seconds=60)
        row.due_at = now()
        db.add(row)
    await reconciler.once()
    assert len(await grants(town)) == 2
