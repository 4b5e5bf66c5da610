"""A role is never lost because of a single node's answer, or because of a block that may still be replaced."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from gateways import close_gateways, gateways, use_gateways
from gateways.chains import node_providers
from gateways.chains.balance_sheet import BalanceSheet, Segment
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from models import Cursor, Due, now, transaction
from services.holdings import confirmation
from services.roles import in_doubt
from settings import settings
from tests.jobs.conftest import Engine
from tests.jobs.deciding.sources.conftest import earned, one_node, reasons, settles_after, states
from tests.jobs.town import BOTH, Town, until
from tests.jobs.watching import given, grants, kinds, looked_at, taken


async def taken_by_node_1_alone(town: Town) -> dict[str, Any]:
    """Return the reading behind the removal: node 1's, which it confirmed itself at a later block."""
    (row,) = await grants(town)
    assert row.state == "taking"
    (reading,) = row.evidence["readings"]
    assert reading["source"] == reading["first"]["source"] == "Base node 1"
    assert reading["first"]["block"] < reading["block"]
    return reading


async def test_a_sale_counts_when_its_block_is_settled_and_the_next_look_comes_about_then(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settles_after(monkeypatch, 30)
    token = await town.buys("carol")
    await town.call("chains/base/mine", blocks=30)
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.sells(token)
        await looked_at(town)
        assert await states(town) == ["held"]
        assert any("not settled yet" in (reason or "") for reason in await reasons(town))
        await town.call("chains/base/mine", blocks=30)
        await town.look()
        await taken(town)


async def test_a_single_node_confirms_a_sale_at_the_next_look_after_a_few_blocks(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one_node(monkeypatch)
    settles_after(monkeypatch, 3)
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.sells(token)
    await looked_at(town)
    (row,) = await grants(town)
    assert row.state == "held"
    assert row.first_no
    assert any("later block" in (reason or "") for reason in await reasons(town))
    await town.call("chains/base/mine", blocks=3)
    await looked_at(town)
    assert await states(town) == ["taking"], "one look was enough"
    async with engine():
        await taken(town)


async def test_two_nodes_of_one_provider_take_a_role_as_a_single_node_would(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_providers, "_origins", lambda urls: (0,) * len(urls))
    settles_after(monkeypatch, 3)
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.sells(token)
    await looked_at(town)
    assert await states(town) == ["held"]
    assert any("later block" in (reason or "") for reason in await reasons(town))
    await town.call("chains/base/mine", blocks=3)
    await looked_at(town)
    (row,) = await grants(town)
    assert row.state == "taking"
    assert [one["oneSource"] for one in row.evidence["readings"]] == [True]


async def test_a_node_of_another_provider_is_asked_before_one_of_the_same(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = settings().rpc["base"]
    monkeypatch.setenv("RPC_BASE", f"{base[0]} {base[0]}?key=another {base[1]}")
    settings.cache_clear()
    await close_gateways()
    monkeypatch.setattr(node_providers, "_origins", lambda urls: (0, 0, 2)[: len(urls)])
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.sells(token)
    await town.call("chains/base/mine", blocks=30)
    await looked_at(town)
    (row,) = await grants(town)
    assert row.state == "taking"
    assert row.evidence["readings"][0]["source"] == "Base node 3"


async def test_a_yes_forgets_what_a_single_node_said_before(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one_node(monkeypatch)
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.sells(token)
    await looked_at(town)
    assert (await grants(town))[0].first_no
    await town.buys("carol")
    await looked_at(town)
    (row,) = await grants(town)
    assert (row.state, row.first_no) == ("held", None)


async def test_a_node_that_moves_to_another_place_in_the_settings_confirms_nothing_that_it_said_before(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart, perhaps of one process after the other, gives the node another number."""
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.break_("down", BOTH[1])
    await town.sells(token)
    await looked_at(town)
    assert (await grants(town))[0].first_no
    await town.call("chains/base/mine", blocks=5)
    monkeypatch.setenv("RPC_BASE", " ".join(reversed(settings().rpc["base"])))
    settings.cache_clear()
    await close_gateways()
    await looked_at(town)
    assert await states(town) == ["held"], "the other node has not been silent for long"
    await town.heal()
    await looked_at(town)
    assert await states(town) == ["taking"]


async def test_with_the_second_node_down_the_first_confirms_its_own_word_after_some_minutes(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.break_("down", BOTH[1])
    await town.sells(token)
    await looked_at(town)
    await town.call("chains/base/mine", blocks=5)
    await looked_at(town)
    assert await states(town) == ["held"]
    monkeypatch.setattr(confirmation, "OTHERS_SILENT", timedelta(0))
    await looked_at(town)
    await taken_by_node_1_alone(town)


class SecondInPart(EvmChains):
    """The chains' reader; its second node gives no amount, or the amount `shows` for everybody."""

    node: int = 1
    shows: int | None = None

    async def balances(self, chain: str, segments: Sequence[Segment], *, at: ReadPoint = NEWEST) -> list[BalanceSheet]:
        sheets = await super().balances(chain, segments, at=at)
        for sheet in sheets:
            if sheet.endpoint == self.node:
                for row in range(sheet.cells.contracts):
                    for column in range(sheet.cells.owners):
                        sheet.cells.put(row, column, self.shows)
        return sheets


class FirstSaysNone(SecondInPart):
    """The chains' reader; its first node says that nobody holds anything."""

    node, shows = 0, 0


async def read_by(reader: type[SecondInPart]) -> None:
    """Read the chains by this reader from now on."""
    await close_gateways()
    use_gateways(replace(gateways(), chains=reader(NodePool(settings().rpc))))


async def test_a_role_in_anothers_place_is_not_taken_by_the_word_of_one_node(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    rule_id = await town.rule("Holder")
    await earned(town, engine)
    await read_by(FirstSaysNone)
    await town.change(rule_id, role_id=await town.role("Collector"), role_name="Collector")
    await looked_at(town)
    assert set(await states(town)) == {"held"}


async def test_a_second_node_that_always_answers_in_part_keeps_no_loss_unconfirmed_for_ever(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await read_by(SecondInPart)
    await town.sells(token)
    await looked_at(town)
    await town.call("chains/base/mine", blocks=5)
    await looked_at(town)
    assert await states(town) == ["held"], "no sooner than if it were silent"
    monkeypatch.setattr(confirmation, "OTHERS_SILENT", timedelta(0))
    await looked_at(town)
    assert (await taken_by_node_1_alone(town))["oneSource"]


async def test_a_second_node_that_shows_the_token_keeps_the_role_however_long_the_first_denies_it(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    monkeypatch.setattr(SecondInPart, "shows", 1)
    monkeypatch.setattr(confirmation, "OTHERS_SILENT", timedelta(0))
    await read_by(SecondInPart)
    await town.sells(token)
    for _ in range(3):
        await looked_at(town)
        await town.call("chains/base/mine", blocks=5)
    assert await states(town) == ["held"]


SETTLING = 30
"""Blocks after which a block counts as settled in the tests about purchases."""


async def bought_just_now(town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let carol buy a token and earn the role by it before the purchase is settled; return the token."""
    settles_after(monkeypatch, SETTLING)
    await town.call("chains/base/mine", blocks=SETTLING)
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    return token


async def bought_long_ago(town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let carol have the role by a purchase that has been settled for long; return the token."""
    settles_after(monkeypatch, SETTLING)
    token = await town.buys("carol")
    await town.call("chains/base/mine", blocks=SETTLING)
    await town.rule("Holder")
    await earned(town, engine)
    await two_hours_pass()
    return token


async def two_hours_pass() -> None:
    """Let two hours pass since the roles were given or kept."""
    async with transaction() as db:
        await db.execute(text("UPDATE \"grant\" SET updated_at = updated_at - interval '2 hours'"))


async def test_a_purchase_that_is_not_settled_yet_is_not_undone_by_the_word_of_one_node(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other node's settled block is from before the purchase, so it says nothing about it."""
    await bought_just_now(town, engine, monkeypatch)
    await read_by(FirstSaysNone)
    await looked_at(town)
    assert await states(town) == ["held"]
    assert any("not settled yet" in (reason or "") for reason in await reasons(town))
    await town.call("chains/base/mine", blocks=30)
    await looked_at(town)
    assert await states(town) == ["held"], "the other node shows the token now"


async def test_a_token_that_is_bought_back_counts_as_a_purchase(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await bought_long_ago(town, engine, monkeypatch)
    await town.break_("down", BOTH[1])
    await town.sells(token)
    await looked_at(town)
    (row,) = await grants(town)
    assert row.first_no, "one node says that the token is sold"
    await town.heal()
    await town.call("chains/base/mine", blocks=30)
    await town.buys("carol")
    await looked_at(town)
    (row,) = await grants(town)
    assert (row.state, row.first_no) == ("held", None)
    await read_by(FirstSaysNone)
    await looked_at(town)
    assert await states(town) == ["held"]


async def test_a_token_that_is_bought_back_before_its_sale_is_settled_counts_as_a_purchase_too(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other node's settled block is from between the sale and the new purchase."""
    token = await bought_long_ago(town, engine, monkeypatch)
    await town.call("chains/base/mine", blocks=30)
    await town.sells(token)
    await looked_at(town)
    assert any("not settled yet" in (reason or "") for reason in await reasons(town))
    await town.call("chains/base/mine", blocks=10)
    await town.buys("carol")
    await looked_at(town)
    await town.call("chains/base/mine", blocks=25)
    await read_by(FirstSaysNone)
    await looked_at(town)
    assert await states(town) == ["held"]


async def test_who_sells_soon_after_the_purchase_loses_the_role_when_the_purchase_is_settled(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await bought_just_now(town, engine, monkeypatch)
    await town.sells(token)
    await looked_at(town)
    assert await states(town) == ["held"]
    await town.call("chains/base/mine", blocks=30)
    await looked_at(town)
    assert await states(town) == ["taking"]


async def test_a_block_of_the_far_future_by_which_the_role_was_given_delays_its_removal_for_two_hours(
    town: Town, engine: Engine
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    ahead = "UPDATE \"grant\" SET evidence = jsonb_set(evidence, '{readings,0,block}', '1000000000')"
    async with transaction() as db:
        await db.execute(text(ahead))
    await town.sells(token)
    await town.call("chains/base/mine", blocks=5)
    await looked_at(town)
    assert await states(town) == ["held"]
    await two_hours_pass()
    await looked_at(town)
    assert await states(town) == ["taking"]


async def test_a_role_that_never_came_is_not_said_to_have_been_taken(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_doubt, "LATE", timedelta(0))
    token = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    assert await states(town) == ["giving"]
    await town.sells(token)
    await looked_at(town)
    assert await states(town) == ["taking"]
    async with engine():
        await until(lambda: _nothing_left(town))
    assert [kind for kind in await kinds(town) if kind.startswith("role.")] == []


async def _nothing_left(town: Town) -> bool:
    return not await grants(town)


async def test_who_buys_and_then_proves_is_not_told_no_by_a_node_that_lags(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    head = (await gateways().chains.head("base")).block
    async with transaction() as db:
        db.add(Cursor(chain="base", block=head, head=head + 5))
    await town.prove("carol")
    await looked_at(town)
    assert await grants(town) == []
    assert any("before block" in (reason or "") for reason in await reasons(town))
    await town.call("chains/base/mine", blocks=5)
    async with engine():
        await town.look()
        await given(town)


async def test_where_a_chain_is_not_followed_a_member_who_waits_in_vain_is_read_once_more(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.engine.retry_later.stale_seconds", lambda _: 3600)
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    async with transaction() as db:
        (row,) = (await db.exec(select(Due).where(Due.key == f"{town.server_id}:{town.people['carol']['id']}"))).all()
        assert (row.priority, row.due_at > now()) == (0, True)
        row.due_at = now()
        db.add(row)
    await looked_at(town)
    async with transaction() as db:
        assert (await db.exec(select(Due).where(col(Due.key).startswith(f"{town.server_id}:")))).all() == []
