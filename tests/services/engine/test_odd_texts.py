"""Texts of providers that the database cannot store keep no member from being reconciled."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlmodel import select

from gateways import Gateways
from gateways.evm.rpc.errors import rpc_error
from locales.stored_texts import said
from models import Grant, Rule, transaction
from services.core import queue
from services.core.answer import Answer
from services.engine import reconcile
from services.engine.cases import Case
from services.engine.reconcile_outcome import CaseOutcome
from services.holdings.evaluate import Reading
from services.rules.expression import AtLeast, Requirement, to_document
from services.rules.types.any_wallet import AnyWallet
from tests.support.builders import CONTRACT, a_member, a_rule, a_server, address, snowflake

pytestmark = pytest.mark.usefixtures("database")


async def test_a_message_with_a_nul_keeps_nobody_from_a_role() -> None:
    async def tokens(*_: Any, **__: Any) -> None:
        # Nodes put texts of contracts into their messages, so a message may have any character.
        raise rpc_error("Base (node 1)", 3, "execution reverted: not\x00now")

    chains = SimpleNamespace(costly=lambda _: frozenset[str](), endpoints=lambda _: 1, tokens=tokens)
    outside = cast(Gateways, cast(object, SimpleNamespace(chains=chains)))
    either = AtLeast(
        1,
        (
            Requirement("token_id", "base", CONTRACT, token_ids=("7",)),
            Requirement("any_wallet", "", "", details=AnyWallet()),
        ),
    )
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server, wallet=address())
        rule: Rule = await a_rule(db, server, snowflake())
        rule.expression = to_document(either)
        await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
    async with transaction() as db:
        claims = await queue.claim(db, "w1", 10)
    await reconcile.reconcile_claims(outside, "w1", claims)
    async with transaction() as db:
        (grant,) = (await db.exec(select(Grant))).all()
    assert (grant.state, grant.role_id) == ("giving", rule.role_id)
    assert "execution reverted: not" in str(grant.evidence)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("Base (node 2): the connection was lost", "Base (node 2): the connection was lost"), (None, "Base: not read")],
)
def test_the_reason_of_a_doubt_names_its_chain_once(reason: str | None, shown: str) -> None:
    leaf = Requirement("token_id", "base", CONTRACT, token_ids=("7",))
    found = {1: [Reading(leaf, Answer.UNKNOWN, None, reason=reason)]}
    outcome = CaseOutcome(cast(Case, None), [], {}, found)
    assert said(outcome.doubt or "") == shown
