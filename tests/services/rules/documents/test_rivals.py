"""Rules of other bots: each is translated exactly, or skipped with the reason."""

import json
from dataclasses import replace
from typing import Any

import pytest

from services.core.errors import FieldRefused
from services.rules.documents import collabland, guild_xyz, json_documents, own_format
from services.rules.documents.entry import ParsedEntry, ParsedRule, SkippedEntry
from services.rules.documents.json_documents import DocumentRefused
from services.rules.draft import RuleDraft, check
from services.rules.expression import parse
from services.rules.types.submitted_address_lists import GivenLists
from services.rules.wording import in_words
from tests.services.rules.documents import rivals
from tests.services.rules.documents.rivals import CATS, DOGS, ONE, USDC

NAMES = {("base", CATS): "Cats", ("base", DOGS): "Dogs", ("base", USDC): "USD Coin", ("base", "native"): "ETH"}


async def words(found: list[ParsedEntry]) -> dict[str, str]:
    """Return the rules in words, by their names."""
    told = dict[str, str]()
    for one in found:
        if isinstance(one, ParsedRule):
            lists = GivenLists()
            bare = lists.take_out(one.expression)
            await lists.read()
            told[one.name] = in_words(parse(lists.put_in(bare)), NAMES)
    return told


def reasons(found: list[ParsedEntry]) -> dict[str, str]:
    return {one.what.partition("“")[2].rstrip("”"): one.why for one in found if isinstance(one, SkippedEntry)}


async def test_twenty_rules_of_collabland() -> None:
    found = collabland.read(await rivals.as_read({"account": "string", "rules": rivals.collabland()}), "1")
    assert await words(found) == {
        "Holder": "At least 1 token of Cats on Base",
        "Tier two": "5 to 9 tokens of Cats on Base",
        "No minimum is one": "At least 1 token of Cats on Base",
        "Certain tokens": "Any of the tokens 1, 2 or 42 to 69 of Cats on Base",
        "Pass": "Token 7 of Dogs on Base",
        "Gold": "At least 1 token of Cats on Base with Fur: Gold",
        "Gold with a crown": "At least 2 tokens of Cats on Base with Fur: Gold and Hat: Crown",
        "Gold or silver": "Any of: At least 1 token of Cats on Base with Fur: Gold; At least 1 token of Cats on Base "
        "with Fur: Silver",
        "A hundred coins": "At least 100 of USD Coin on Base",
        "Some coins": "Between 0.5 and 100 of USD Coin on Base",
        "With something new": "At least 3 tokens of Cats on Base",
    }
    why = reasons(found)
    assert len(why) == 9
    assert "OpenSea page" in why["A page"]
    assert "POAP" in why["An event"]
    assert "Safe" in why["A Safe"]
    assert "View call" in why["Staked"]
    assert "creator" in why["A creator"]
    assert "“56”, is not one of the chains here" in why["Another chain"]
    assert "no token ID" in why["Many without an ID"]
    assert "asks for 5 of certain token IDs" in why["Five of one"]
    assert "query" in why["A query"]
    noted = {one.name: one.notes for one in found if isinstance(one, ParsedRule) and one.notes}
    assert noted == {"With something new": ("Not used, because their meaning is not known: “expiresAt”.",)}


@pytest.mark.parametrize(
    "document",
    [
        rivals.collabland()[:1],
        rivals.collabland()[0],
        {"tpcs": rivals.collabland()[:1]},
        {"items": [{"communityId": "77", "name": "Ours", "tpcs": rivals.collabland()[:1]}]},
        {"items": [{"communityId": "5", "tpcs": [{}, {}]}, {"communityId": "77", "tpcs": rivals.collabland()[:1]}]},
    ],
)
async def test_collablands_rules_are_found_wherever_its_documents_have_them(document: object) -> None:
    found = collabland.read(await rivals.as_read(document), "77")
    assert [(one.name, one.role_id, one.role_names) for one in found if isinstance(one, ParsedRule)] == [
        ("Holder", "001", ("Holder", "001"))
    ]


@pytest.mark.parametrize(
    "document",
    [{}, {"rules": {}}, 5, None, "text", {"items": []}, {"items": [{"tpcs": []}, {"tpcs": []}]}, {"roles": []}],
)
def test_another_document_is_not_taken_for_collablands(document: object) -> None:
    with pytest.raises(DocumentRefused):
        collabland.read(document, "77")


NFT = {"type": "ERC721", "chainId": 8453, "contractAddress": CATS, "roleId": "1"}
FUR = {"trait_type": "Fur", "value": "Gold"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"minToken": "0"}, "which everybody has"),
        ({"minToken": "1.5"}, "not a whole number"),
        ({"minToken": "5", "maxToken": "2"}, "maximum of 2 is below"),
        ({"minToken": "1", "minAmount": "2"}, "two things"),
        ({"contractAddress": ""}, "names no contract"),
        ({"contractAddress": "", "address": 5}, ""),
        ({"chainId": None}, "not one of the chains"),
        ({"chainId": True}, "not one of the chains"),
        ({"type": "ERC9999"}, "“ERC9999”, is not one"),
        ({"type": None}, "It names no type."),
        ({"tokenId": "1", "attributes": [FUR]}, "at once"),
        ({"tokenId": {"a": 1}}, "cannot be read"),
        ({"attributes": {"Fur": "Gold"}}, "cannot be read"),
        ({"attributes": [{"trait_type": "Fur"}]}, "no type or no value"),
        ({"attributes": [{"trait_type": "Rank", "value": ">=5"}]}, "read as a comparison"),
        ({"attributes": [FUR | {"negate": True}]}, "“negate”, whose meaning is not known"),
        ({"attributes": [FUR, FUR | {"value": "Red"}], "condition": "XOR"}, "not documented"),
        ({"attributes": [FUR, FUR | {"value": "Red"}], "condition": "OR", "minToken": "2"}, "cannot add those up"),
        ({"requiresMetadata": True}, "does not say which"),
        ({"requiresMetadata": "true"}, "does not say which"),
        ({"requiresMetadata": {}}, "neither true nor false"),
        ({"type": "ERC20", "tokenId": "5"}, "which has none"),
        ({"type": "ERC20", "minToken": "0"}, "which everybody has"),
        ({"type": "SOLANA_FT"}, "is not Solana"),
        ({"tokenId": "1," * 100_000}, "at most 500"),
        ({"tokenIds": ["1"] * 100_000}, "at most 500"),
        ({"attributes": [FUR] * 100_000}, "at most 40 conditions"),
        ({"attributes": [FUR | {"value": "x" * 100_000}]}, "more than 200 characters"),
        ({"condition": "NOT"}, "not documented"),
        ({"type": "ERC20", "operator": "NOT"}, "not documented"),
        ({"tokenId": "7", "requiresMetadata": True}, "does not say which"),
        ({"type": "ERC20", "requiresMetadata": True}, "does not say which"),
        ({"metadata": {"attributes": [FUR], "exclude": True}}, "“exclude”, whose meaning is not known"),
        ({"metadata": {"attributes": [FUR], "conditions": [FUR | {"value": "Red"}]}}, "cannot be read"),
        ({"attributes": [{"key": "Fur", "type": "not", "value": "Gold"}]}, "“type” and “key” differ"),
    ],
)
def test_nothing_of_collabland_is_guessed(fields: dict[str, Any], why: str) -> None:
    (found,) = collabland.read([NFT | fields], "1")
    if why:
        assert isinstance(found, SkippedEntry), found
        assert why in found.why


async def test_a_trait_whose_number_has_more_digits_than_are_read_makes_no_rule() -> None:
    rank = {"trait_type": "Rank", "value": 10**100}
    (found,) = collabland.read(await json_documents.read(json.dumps([NFT | {"attributes": [rank]}])), "1")
    assert isinstance(found, SkippedEntry), found
    assert "cannot be read" in found.why


@pytest.mark.parametrize(
    ("fields", "expression"),
    [
        ({"attributes": [], "metadata": {}, "tokenIds": []}, {"type": "basic"}),
        ({"tokenId": "7", "tokenIds": []}, {"type": "token_id", "tokenIds": ["7"]}),
        (
            {"attributes": [], "metadata": {"traits": [FUR]}},
            {"type": "trait", "traits": [{"type": "Fur", "value": "Gold"}]},
        ),
    ],
)
def test_an_empty_list_beside_a_value_contradicts_nothing(fields: dict[str, Any], expression: dict[str, Any]) -> None:
    (found,) = collabland.read([NFT | fields], "1")
    assert isinstance(found, ParsedRule), found
    assert found.expression == {"chain": "base", "contract": CATS, "minTokens": 1} | expression


def test_a_coin_of_solana_is_a_coin_here() -> None:
    mint = "CJk8TvAXcq1cvC85M9aMQCxPMkTCSuWN5HsFEgAjh4ut"
    (found,) = collabland.read([{"type": "SOLANA_FT", "chainId": 8000000000101, "contractAddress": mint}], "1")
    assert isinstance(found, ParsedRule)
    assert found.expression == {"type": "token", "chain": "solana", "contract": mint, "min": "1"}


async def test_twenty_roles_of_a_guild() -> None:
    found = guild_xyz.read(await rivals.as_read(rivals.guild()), "1")
    cats, coins = "At least 1 token of Cats on Base", "At least 5 of USD Coin on Base"
    assert await words(found) == {
        "Holder": cats,
        "Any amount": "Some USD Coin on Base",
        "Hundred": "Between 100 and 2500.5 of USD Coin on Base",
        "Gas": "At least 0.1 of ETH on Base",
        "Both": f"All of: {cats}; {coins}",
        "Either": f"Any of: {cats}; {coins}",
        "Two of three": f"At least 2 of: {cats}; {coins}; At least 4 tokens of Cats on Base",
        "Not a whale": f"All of: {cats}; Fewer than 50 tokens of Cats on Base",
        "Pass": "Token 7 of Dogs on Base",
        "Certain tokens": "Any of the tokens 1, 2 or 3 of Cats on Base",
        "Gold": "At least 1 token of Cats on Base with Fur: Gold",
        "Friends": "A wallet on a list of 2 addresses",
    }
    assert {one.role_id for one in found if isinstance(one, ParsedRule)} == {"501"}
    why = reasons(found)
    assert len(why) == 8
    assert "Any verified wallet" in why["Everybody"]
    assert "TWITTER_FOLLOW_V2" in why["Follower"]
    assert "hidden" in why["Hidden list"]
    assert "“BSC”, is not one of the chains here" in why["Another chain"]
    assert why["Half of it"].startswith("Requirement 2 (“POAP”): ")
    assert "asks for 5 of certain token IDs" in why["Five of one"]
    assert "several attributes" in why["Two attributes"]
    assert "“XOR”" in why["Strange logic"]


def one_role(requirement: dict[str, Any], **fields: Any) -> ParsedEntry:
    (found,) = guild_xyz.read({"roles": [{"name": "R", "requirements": [requirement], **fields}]}, "1")
    return found


CAT = {"type": "ERC721", "chain": "BASE_MAINNET", "address": CATS}
COIN = {"type": "ERC20", "chain": "BASE_MAINNET", "address": USDC}


@pytest.mark.parametrize(
    ("data", "expression"),
    [
        ({}, {"type": "basic", "minTokens": 1}),
        (None, {"type": "basic", "minTokens": 1}),
        ({"minAmount": 0}, {"type": "basic", "minTokens": 1}),
        ({"amount": 3}, {"type": "basic", "minTokens": 3}),
        ({"minAmount": 0, "maxAmount": 5}, {"type": "basic", "minTokens": 0, "maxTokens": 5}),
        ({"minAmount": "2", "maxAmount": "0"}, {"type": "basic", "minTokens": 2}),
        ({"id": 7}, {"type": "token_id", "minTokens": 1, "tokenIds": ["7"]}),
        ({"attribute": {"trait_type": "Rank", "interval": {"min": 5, "max": 9}}},
         {"type": "trait", "minTokens": 1, "traits": [{"type": "Rank", "value": "5..9"}]}),
        ({"attributes": [{"trait_type": "Rank", "minValue": "5"}]},
         {"type": "trait", "minTokens": 1, "traits": [{"type": "Rank", "value": ">=5"}]}),
    ],
)  # fmt: skip
def test_tokens_of_a_guild(data: object, expression: dict[str, Any]) -> None:
    found = one_role(CAT | {"data": data})
    assert isinstance(found, ParsedRule), found
    assert found.expression == {"chain": "base", "contract": CATS} | expression


@pytest.mark.parametrize(
    ("requirement", "why"),
    [
        (CAT | {"data": {"minAmount": 1, "amount": 2}}, "two things"),
        (CAT | {"data": {"ids": ["1-5"]}}, "cannot be read"),
        (CAT | {"data": {"ids": ["1"], "attributes": [FUR]}}, "at once"),
        (CAT | {"data": {"attributes": [{"trait_type": "Fur", "value": ""}]}}, "any value"),
        (CAT | {"value": "3"}, "first API"),
        (CAT | {"address": None}, "names no contract"),
        (CAT | {"isNegated": 1}, "neither true nor false"),
        (CAT | {"chain": 8453}, "not one of the chains"),
        ({"type": "ALLOWLIST", "data": {"addresses": ["0x" + "a" * 40], "fileId": "x"}}, "goes on in a file"),
        ({"type": "CONTRACT", "chain": "BASE_MAINNET", "address": CATS, "data": {"id": "nonsense"}}, "cannot be read"),
        ({}, "It names no type."),
        (CAT | {"data": {"ids": ["1"] * 100_000}}, "at most 500"),
        ({"type": "ALLOWLIST", "data": {"addresses": ["0x"] * 100_000}}, "at most 20,000"),
        ({"type": "CONTRACT", "chain": "BASE_MAINNET", "address": CATS,
          "data": {"id": "f(address)(uint256)", "params": [1] * 100_000}}, "at most 40"),
        ({"type": "CONTRACT", "chain": "BASE_MAINNET", "address": CATS,
          "data": {"id": "f(address)(uint256)", "resultMatch": ">", "expected": "²"}}, "not a whole number"),
        (CAT | {"data": {"ids": "5"}}, "token IDs cannot be read"),
        (CAT | {"data": {"ids": {"0": "5"}}}, "token IDs cannot be read"),
        (CAT | {"data": {"attributes": FUR}}, "traits cannot be read"),
        (CAT | {"data": {"attribute": [FUR]}}, "traits cannot be read"),
        (CAT | {"data": {"attribute": FUR | {"interval": [5, 9]}}}, "traits cannot be read"),
        (CAT | {"data": {"attribute": {"trait_type": "Rank", "minValue": 5, "interval": {"min": 9}}}}, "two things"),
        (CAT | {"data": "minAmount: 5"}, "cannot be read"),
        (COIN | {"data": {"minAmount": 1, "ids": ["5"]}}, "which has none"),
        (COIN | {"data": {"minAmount": 1, "attributes": [FUR]}}, "which has none"),
    ],
)  # fmt: skip
def test_nothing_of_a_guild_is_guessed(requirement: dict[str, Any], why: str) -> None:
    found = one_role(requirement)
    assert isinstance(found, SkippedEntry), found
    assert why in found.why


def test_a_guilds_contract_query_is_a_view_call() -> None:
    data = {
        "id": "stakedOf(address,uint256)(uint256,bool)", "params": [{"value": "USER_ADDRESS"}, 5], "resultIndex": 0,
        "resultMatch": ">", "expected": "99",
    }  # fmt: skip
    found = one_role({"type": "CONTRACT", "chain": "BASE_MAINNET", "address": CATS, "data": data})
    assert isinstance(found, ParsedRule), found
    assert found.expression == {
        "type": "call", "chain": "base", "contract": CATS, "args": ["{wallet}", "5"], "path": "0",
        "function": "stakedOf(address,uint256) view returns (uint256,bool)", "compare": ">=", "value": "100",
    }  # fmt: skip


def test_the_part_of_a_single_answer_is_not_left_out() -> None:
    data = {"id": "f(address)(uint256)", "params": ["USER_ADDRESS"], "resultIndex": 2, "expected": "1"}
    found = one_role({"type": "CONTRACT", "chain": "BASE_MAINNET", "address": CATS, "data": data})
    assert isinstance(found, ParsedRule), found
    assert found.expression["path"] == "2"  # there is none, and the rule's own check says so


@pytest.mark.parametrize("logic", [{"NOT": 1}, ["OR"], True])
def test_a_guilds_logic_that_is_no_text_is_not_taken_for_and(logic: object) -> None:
    found = one_role(CAT, logic=logic)
    assert isinstance(found, SkippedEntry), found
    assert "whose meaning is not known" in found.why


def test_what_a_guild_says_beside_a_condition_or_a_reward_is_named() -> None:
    reward = {"id": 1, "platformRoleId": "5", "visibility": "PUBLIC", "startTime": "2030-01-01", "endTime": None}
    found = one_role(CAT | {"data": {"minAmount": 2, "addresses": [ONE]}}, rolePlatforms=[reward])
    assert isinstance(found, ParsedRule), found
    assert found.notes == (
        "Not used, because their meaning is not known: “addresses”.",
        "Not used, because their meaning is not known: “startTime”.",
    )


@pytest.mark.parametrize(("given", "negated"), [(True, True), ("true", True), (False, False), ("false", False)])
def test_a_guilds_negation_in_quotes_is_one_too(given: object, negated: bool) -> None:
    found = one_role(CAT | {"isNegated": given})
    assert isinstance(found, ParsedRule), found
    assert ("not" in found.expression) == negated


@pytest.mark.parametrize("none", [0, "0", "0.0", None, ""])
def test_a_guilds_maximum_of_0_is_none_however_it_is_written(none: object) -> None:
    found = one_role({"type": "ERC20", "address": USDC, "chain": "ETHEREUM", "data": {"maxAmount": none}})
    assert isinstance(found, ParsedRule), found
    coin = {"type": "token", "chain": "ethereum", "contract": USDC}
    assert found.expression == {"not": coin | {"max": "0"}}


def test_the_amount_of_guilds_first_api_is_the_minimum() -> None:
    found = one_role({"type": "ERC20", "address": USDC, "value": "1", "chain": "ETHEREUM"}, logic="AND")
    assert isinstance(found, ParsedRule)
    assert found.expression == {"type": "token", "chain": "ethereum", "contract": USDC, "min": "1"}


@pytest.mark.parametrize(
    ("rewards", "ids"),
    [
        ([], [""]),
        ([{"guildPlatformId": 9, "platformRoleId": "5"}, {"guildPlatformId": 9, "platformRoleId": "6"}], ["5", "6"]),
        ([{"guildPlatformId": 9, "platformRoleId": "5"}, {"guildPlatformId": 8, "platformRoleId": "7"}], ["5"]),
        ([{"guildPlatformId": 8, "platformRoleId": "7"}], []),
        ([{"guildPlatform": {"platformName": "DISCORD"}, "platformRoleId": "5"}], ["5"]),
        ([{"guildPlatformId": 9}], [""]),
    ],
)
def test_a_role_of_a_guild_is_a_rule_for_each_discord_role_that_it_gives(rewards: object, ids: list[str]) -> None:
    platforms = [{"id": 9, "platformId": 1}, {"id": 8, "platformId": 2}]
    role = {"name": "R", "requirements": [CAT], "rolePlatforms": rewards}
    found = guild_xyz.read({"guildPlatforms": platforms, "roles": [role]}, "1")
    assert [one.role_id for one in found if isinstance(one, ParsedRule)] == ids
    assert ids or "no Discord role" in reasons(found)["R"]


def test_a_document_without_requirements_is_not_a_guilds() -> None:
    for document in ({}, [], {"roles": ["Holder", "Whale"]}, {"roles": [{"name": "R"}]}, 5, None):
        with pytest.raises(DocumentRefused):
            guild_xyz.read(document, "1")


def test_an_export_of_another_version_is_refused() -> None:
    for document, message in (
        ({"format": "holdfast-rules", "version": 2, "rules": []}, "version “2”"),
        ({"version": 1, "rules": []}, "not an export"),
        ([], "not an export"),
    ):
        with pytest.raises(DocumentRefused, match=message):
            own_format.read(document, "1")


def exported(**fields: Any) -> ParsedEntry:
    rule = {"ruleName": "R", "roleId": "1", "expression": {"type": "basic", "chain": "base", "contract": CATS}}
    (found,) = own_format.read({"format": "holdfast-rules", "version": 1, "rules": [rule | fields]}, "1")
    return found


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"removal": "grace"}, "“removal” cannot be read"),
        ({"removal": {"mode": ["grace"], "hours": 24}}, "“removal” cannot be read"),
        ({"removal": {"hours": 24}}, "“removal” cannot be read"),
        ({"takesOver": 1}, "“takesOver” is neither true nor false"),
        ({"delegated": "yes"}, "“delegated” is neither true nor false"),
    ],
)
def test_nothing_of_an_export_is_guessed(fields: dict[str, Any], why: str) -> None:
    found = exported(**fields)
    assert isinstance(found, SkippedEntry), found
    assert why in found.why


def test_a_grace_time_without_hours_is_not_taken_for_none() -> None:
    for given, hours in (
        ({"mode": "grace"}, None), ({"mode": "grace", "hours": None}, None), ({"mode": "grace", "hours": 24}, 24),
        ({"mode": "now"}, 0), ({"mode": "now", "hours": None}, 0),
    ):  # fmt: skip
        found = exported(removal=given)
        assert isinstance(found, ParsedRule), found
        assert (found.removal_mode, found.removal_hours) == (given["mode"], hours)
        draft = RuleDraft("R", "", "", "basic", "1", 1, removal_mode=found.removal_mode, removal_hours=hours)
        if hours is None:
            with pytest.raises(FieldRefused, match="from 1 to"):
                check(replace(draft, expression=found.expression))
    found = exported(removal={"mode": "grace", "hours": 24, "days": 3}, delegated="true")
    assert isinstance(found, ParsedRule), found
    assert (found.delegated, found.takes_over) == (True, False)
    assert found.notes == ("Not used, because their meaning is not known: “days”.",)
