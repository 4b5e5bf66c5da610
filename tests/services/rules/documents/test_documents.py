"""JSON from strangers: read exactly or refused with a message, without slowing down anybody else."""

import contextlib
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.rules.documents import collabland, entry, guild_xyz, json_documents, own_format
from services.rules.documents.entry import Unmapped
from services.rules.documents.json_documents import DocumentRefused, DocumentTooLarge

READERS = (collabland.read, guild_xyz.read, own_format.read)


async def refused(text: str | bytes) -> str:
    with pytest.raises(DocumentRefused) as fault:
        await json_documents.read(text)
    assert fault.value.field == "document"
    return fault.value.message


async def test_numbers_are_exact_and_texts_stay_as_they_are() -> None:
    assert await json_documents.read(
        '\ufeff{"a": [12345678901234567890123, 0.1, "0.10", true, null, "\\ud83d\\ude00"]}'
    ) == {"a": [12345678901234567890123, Decimal("0.1"), "0.10", True, None, "😀"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "This is not JSON: line 1, character 1"),
        ('{"a":\n 1,}', "This is not JSON: line 2"),
        ("[NaN]", "NaN is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ('{"roleId": "1", "roleId": "2"}', "the field “roleId” twice"),
        (json.dumps({str(at): at for at in range(60_000)})[:-1] + ', "59999": 1}', "the field “59999” twice"),
        ("[" * 40_000 + "]" * 40_000, "levels deep"),
        ("[" * 25 + "]" * 25, "levels deep"),
        ('{"a":' * 30_000 + "1" + "}" * 30_000, "levels deep"),
        ('["\\u0000"]', "cannot be stored"),
        ('{"\\ud800": 1}', "cannot be stored"),
        ("\x00", "cannot be stored"),
        (b"\xff\xfe", "not a text in UTF-8"),
    ],
)
async def test_what_is_no_document_is_refused_with_a_sentence(text: str | bytes, message: str) -> None:
    assert message in await refused(text)


async def test_a_document_that_opens_without_end_is_refused() -> None:
    said = await refused("[" * 40_000)
    # The parser of Python 3.14 nests further, and so finds the end before the depth is judged.
    assert "levels deep" in said or "not JSON" in said


async def test_the_size_is_refused_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("parsed"))
    for text in (
        "x" * (json_documents.LARGEST_DOCUMENT + 1),
        "é" * (json_documents.LARGEST_DOCUMENT // 2 + 1),
        b"x" * (json_documents.LARGEST_DOCUMENT + 1),
    ):
        with pytest.raises(DocumentTooLarge, match="larger than 1024 KiB"):
            await json_documents.read(text)


@pytest.mark.parametrize("unit", ["[],", "{},", "1,", '"",'])
async def test_what_has_far_more_values_than_rules_is_refused_before_anything_is_parsed(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("parsed"))
    assert "far more values" in await refused("[" + unit * 160_000 + "0]")


async def test_a_number_of_any_length_stays_small_and_is_no_amount() -> None:
    for text in ("9" * 5_000, "1e999999999", "1" + "0" * 200 + ".5", "-1e-999999999"):
        (number,) = await json_documents.read(f"[{text}]")
        for read in (entry.count, entry.coins):
            with pytest.raises(Unmapped):
                read(number, "minimum")
        with pytest.raises(Unmapped):
            entry.chain_by_id(number)


@pytest.mark.parametrize(
    ("value", "text"),
    [("1", "1"), (1, "1"), (Decimal("1E-7"), "0.0000001"), ("0.50", "0.5"), (Decimal("1E+3"), "1000"), ("", None)],
)
def test_amounts_are_plain_decimal_texts(value: object, text: str | None) -> None:
    assert entry.coins(value, "minimum") == text


@pytest.mark.parametrize("value", ["1_000", "٣", "NaN", "-1", "1" * 90, True, [], {}, "1e99999"])
def test_what_is_no_amount_is_refused(value: object) -> None:
    for read in (entry.count, entry.coins):
        with pytest.raises(Unmapped):
            read(value, "minimum")


@pytest.mark.parametrize(
    ("reader", "document"),
    [
        (collabland.read, {"rules": [{}] * 10_000}),
        (guild_xyz.read, {"roles": [{"requirements": [{}]}] * 10_000}),
        (guild_xyz.read, {"roles": [{"requirements": [{"type": "ALLOWLIST", "data": {"addresses": ["0x" + "a" * 40]}}],
                                 "rolePlatforms": [{"platformRoleId": str(at)} for at in range(201)]}]}),
        (own_format.read, {"format": "holdfast-rules", "version": 1, "rules": [{}] * 10_000}),
    ],
)  # fmt: skip
def test_too_many_rules_are_refused_at_once(reader: Any, document: object) -> None:
    with pytest.raises(DocumentRefused, match="at most 200"):
        reader(document, "1")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8)
    | st.sampled_from(["ERC721", "ERC20", "ALLOWLIST", "CONTRACT", "AND", "0x" + "a" * 40, "BASE_MAINNET", 8453]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from([
            "rules", "tpcs", "items", "roles", "requirements", "type", "chain", "chainId", "address", "data",
            "contractAddress", "minToken", "maxToken", "tokenId", "attributes", "metadata", "condition", "roleId",
            "logic", "anyOfNum", "minAmount", "maxAmount", "ids", "interval", "value", "trait_type", "addresses", "id",
            "params", "resultMatch", "expected", "rolePlatforms", "guildPlatforms", "platformRoleId", "format",
            "version", "expression", "removal", "ruleName", "addressLists", "list", "isNegated",
        ]), inner, max_size=5),
    max_leaves=30,
)  # fmt: skip


@given(document=_JSON)
def test_a_document_of_any_shape_is_read_or_refused(document: object) -> None:
    shaped = (
        document,
        {"rules": [document]},
        {"roles": [{"requirements": [document]}, document]},
        {"format": "holdfast-rules", "version": 1, "rules": [document], "addressLists": [document]},
    )
    for reader in READERS:
        for one in shaped:
            with contextlib.suppress(DocumentRefused):
                assert len(reader(one, "1")) <= 2 * entry.MOST_RULES
