"""The download of everything about a person: whole, without secrets, without others, and written piece by piece."""

import json
import re
from typing import Any

from sqlalchemy import text
from sqlmodel import SQLModel, select

from models import TokenTrail, Wallet, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.guilds.gateway import known_people
from services.privacy import export
from services.wallets.transaction_check import in_coins
from tests.services.privacy.test_preferences import known_everywhere, somebody, tables_that_name
from tests.support.builders import CONTRACT


async def exported(db: AsyncSession, actor: Actor) -> dict[str, Any]:
    """Return the document of everything about the person."""
    return json.loads("".join([piece async for piece in export.export(db, actor)]))


async def test_the_export_has_a_part_for_every_table_that_names_somebody_and_no_secret(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        await known_everywhere(db, one)
        named = await tables_that_name(db, one.actor.discord_id, one.wallet)
    async with transaction() as db:
        document = await exported(db, one.actor)
    parts = {
        "user": "account", "wallet": "wallets", "challenge": "walletChallenges", "observation": "walletHoldings",
        "surveyed": "walletReadings",
        "sighting": "walletTransfersSeen", "quarantine": "walletTransfersPaused",
        "delegation": "walletDelegations", "ended_delegation": "walletDelegationsEnded",
        "delegation_read": "walletDelegationsRead", "tally": "walletTokens", "token_trail": "walletTokensToLookAt",
        "verified_person": "countedAsVerified", "verified_stale": "countsToCome",
        "member": "memberships", "access": "serversYouRun", "server": "serversYouRun", "rule": "rulesYouMade",
        "breaker": "removalsYouDecided", "grant": "roles", "due": "looksToCome", "notice": "notices", "event": "events",
        "alert": "reportsAboutYou",
        "rival_move": "rolesOthersMoved", "truce": "rolesLeftAlone", "payout_listing": "payoutListsYouDownloaded",
    }  # fmt: skip
    assert named == parts.keys()
    assert all(document[part] for part in parts.values())
    assert document["walletTrails"]
    assert document["walletHandovers"]
    assert document["rolesYouMoved"]
    assert document["payoutAddressDownloaded"]
    assert document["sessions"][0]["userAgent"] == "A browser"
    assert document["apiTokens"][0]["name"] == "ci"
    assert document["signInsUnderWay"] == [{"purpose": "connect", "returnPath": "/invite", **_time(document)}]
    assert {(one["shareWallets"], one["useWallets"], one["shownAs"]) for one in document["memberships"]} == {
        (True, True, "somebody"), (False, False, None),
    }  # fmt: skip
    assert document["walletHoldings"][0]["amount"] == "3"
    for secret in ("secretcode", "secretverifier", "hash", "token_", "12345", in_coins(12345)):
        assert secret not in str(document), secret


PERSONAL = re.compile(
    r"(discord_id|user_id|owner_id|subject|actor|created_by|approved_by|dismissed_by|address|delegate|vault|username|"
    r"email)"
)
# Not about a person: the addresses in an admin's list, which are data of the server, as the privacy policy says (it had
# them without us). Kept in order to forget: the fact that somebody whose roles are still to be taken asked for it, and
# the role changes that may yet arrive at Discord (services/roles/in_doubt.py: for an hour).
NOT_ABOUT_A_PERSON, KEPT_TO_FORGET = {"address_list_entry"}, {"farewell", "unanswered"}


async def test_every_table_with_a_column_for_a_person_is_tried_here(database: str) -> None:
    """A new table that can name a person has to be in `known_everywhere`, so that export and deletion are tested."""
    async with transaction() as db:
        await known_everywhere(db, await somebody(db))
    can = {
        table.name
        for table in SQLModel.metadata.sorted_tables
        if any(PERSONAL.fullmatch(column.name) for column in table.columns)
    }
    async with transaction() as db:
        filled = {
            table.name
            for table in SQLModel.metadata.sorted_tables
            if (await db.execute(text(f'SELECT 1 FROM "{table.name}" LIMIT 1'))).first() is not None
        }
    assert len(can) > 15
    assert can - NOT_ABOUT_A_PERSON - KEPT_TO_FORGET <= filled


def _time(document: dict[str, Any]) -> dict[str, str]:
    return {"expiresAt": document["signInsUnderWay"][0]["expiresAt"]}


async def test_the_document_is_never_in_memory_as_a_whole(database: str) -> None:
    """A member's wallet has a row for each contract that rules name, and anybody can send it thousands of tokens."""
    ids, contracts = [f"{10**77 + number}" for number in range(200)], 100
    async with transaction() as db:
        one = await somebody(db)
        db.add_all(
            TokenTrail(chain="base", contract=f"{CONTRACT} {number}", address=one.wallet, ids=ids)
            for number in range(contracts)
        )
    async with transaction() as db:
        pieces = [piece async for piece in export.export(db, one.actor)]
    row = len(json.dumps(ids)) + 1_000
    assert max(map(len, pieces)) < export.ROWS_A_PIECE * row < contracts * row / 4 < sum(map(len, pieces))
    trails = json.loads("".join(pieces))["walletTokensToLookAt"]
    assert [len(trail["ids"]) for trail in trails] == [len(ids)] * contracts


async def test_servers_in_which_the_bot_only_searched_for_somebody_are_not_named(database: str) -> None:
    async with transaction() as db:
        one, other = await somebody(db), await somebody(db)
        await known_people.look_elsewhere(db, one.server.id, one.actor.discord_id, "one")
    async with transaction() as db:
        document = await exported(db, one.actor)
    assert [row["serverId"] for row in document["memberships"]] == [one.server.discord_id]
    assert [row["servers"] for row in document["serversSearchedForYou"]] == [1]
    assert other.server.discord_id not in str(document)


async def test_the_export_of_one_has_nothing_of_another(database: str) -> None:
    async with transaction() as db:
        one, other = await somebody(db), await somebody(db)
        await known_everywhere(db, other)
        moved = (await db.exec(select(Wallet).where(Wallet.address == one.wallet))).one()
        moved.evidence = {**moved.evidence, "movedFrom": other.actor.discord_id}
        db.add(moved)
    async with transaction() as db:
        document = str(await exported(db, one.actor))
    assert one.wallet in document
    assert other.wallet not in document
    assert other.actor.discord_id not in document
