"""A view call as a condition: its JSON, its refusals, its description, and how much a wallet counts."""

from dataclasses import replace
from typing import Any

import pytest

from gateways.evm.calls import compiled
from services.core.errors import FieldRefused
from services.rules.expression import Requirement, parse, to_document
from services.rules.types.call_templates import TEMPLATES
from services.rules.types.declaration import ExpressionRefused
from services.rules.types.view_call import ViewCall

CONTRACT = "0x" + "c0" * 20
NUMBER = "stakedOf(address,uint256) view returns (uint256)"


def leaf(**more: Any) -> dict[str, Any]:
    return {"type": "call", "chain": "base", "contract": CONTRACT, **more}


def checked(function: str, args: list[Any] | None = None, **more: Any) -> ViewCall:
    node = {"function": function, "args": args or ["{wallet}"], **more}
    return ViewCall.parse(node).checked("base", CONTRACT)


def test_a_condition_is_read_back_from_what_it_is_written_as() -> None:
    given = leaf(function=NUMBER, args=["{wallet}", "5"], compare=">=", value="3")
    tree = parse(given)
    assert isinstance(tree, Requirement)
    assert tree.details == ViewCall(NUMBER, ("{wallet}", "5"), "", ">=", "3")
    assert to_document(tree) == {**given, "minTokens": 1}
    assert parse(to_document(tree)) == tree


def test_programs_may_send_numbers_truths_and_lists() -> None:
    details = ViewCall.parse({"function": NUMBER, "args": ["{wallet}", 5, True, [1, "2"]], "value": 7})
    assert details.args == ("{wallet}", "5", "true", '[1,"2"]')
    assert details.value == "7"
    assert ViewCall.parse({"function": NUMBER, "value": True}).value == "true"
    assert ViewCall.parse({"function": NUMBER, "value": "1"}).args == ("{wallet}",)


@pytest.mark.parametrize(
    "node",
    [
        {}, {"function": 5}, {"function": " "}, {"function": NUMBER, "args": 5}, {"function": NUMBER, "args": [None]},
        {"function": NUMBER, "args": [1.5]}, {"function": NUMBER, "path": 1}, {"function": NUMBER, "compare": 1.5},
        {"function": NUMBER, "value": []},
    ],
)  # fmt: skip
def test_another_shape_is_refused(node: dict[str, Any]) -> None:
    with pytest.raises(ExpressionRefused):
        ViewCall.parse(node)
    with pytest.raises(ExpressionRefused):
        parse(leaf(**node))


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(ExpressionRefused, match="argz"):
        parse(leaf(function=NUMBER, argz=["{wallet}"]))


def test_many_ways_of_writing_are_stored_in_one() -> None:
    one = checked("function stakedOf(address who, uint pool) external view returns (uint)", ["{wallet}", "0x5"],
                  value="1,000")  # fmt: skip
    assert one == ViewCall(NUMBER, ("{wallet}", "5"), "", ">=", "1000")
    assert one.checked("base", CONTRACT) == one


@pytest.mark.parametrize(
    ("function", "more", "field", "said"),
    [
        ("stakedOf(address) returns (uint256)", {}, "function", "write view before returns"),
        ("stakedOf(Pool) view returns (uint256)", {}, "function", "not a type of the ABI"),
        (NUMBER, {}, "args", "takes 2 arguments; the number given is 1"),
        (NUMBER, {"args": ["{wallet}", "-5"]}, "args", "from 0 to"),
        (NUMBER, {"args": [CONTRACT, "5"]}, "args", "must be {wallet}"),
        ("f(address) view returns (uint256[])", {}, "path", 'Write "length"'),
        ("f(address) view returns (uint256)", {"path": "length"}, "path", "Only an array has a length"),
        ("f(address) view returns (uint256)", {"compare": ">"}, "compare", "one of >=, <=, ="),
        ("f(address) view returns (bool)", {"compare": ">=", "value": "1"}, "compare", "only be compared with ="),
        ("f(address) view returns (address)", {"compare": "<=", "value": CONTRACT}, "compare", "of the type address"),
        ("f(address) view returns (bool)", {"compare": "=", "value": "1"}, "value", "true or false"),
        ("f(address) view returns (uint256)", {"value": ""}, "value", "Write the value"),
        ("f(address) view returns (uint256)", {"value": "1.5"}, "value", "a whole number, not 1.5"),
        ("f(address) view returns (uint256)", {"value": "1,5"}, "value", "a whole number, not 1,5"),
        ("f(address) view returns (uint256)", {"value": "0"}, "value", "at least 1"),
        ("f(address) view returns (uint256)", {"value": "-1", "compare": "="}, "value", "never below 0"),
        ("f(address) view returns (address)", {"compare": "=", "value": "{wallet}"}, "value", "is for arguments"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(function: str, more: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(FieldRefused, match=said.replace("(", r"\(")) as refused:
        checked(function, more.pop("args", None), **{"value": "1", **more})
    assert (refused.value.field, refused.value.status) == (field, 400)


def test_solana_and_the_chains_own_addresses_are_refused() -> None:
    details = ViewCall.parse({"function": "f(address) view returns (bool)", "compare": "=", "value": "true"})
    with pytest.raises(FieldRefused, match="needs an EVM chain"):
        details.checked("solana", "So11111111111111111111111111111111111111112")
    with pytest.raises(FieldRefused, match="part of the chain itself"):
        details.checked("base", "0x" + "00" * 19 + "04")


@pytest.mark.parametrize(
    ("details", "value", "share", "bounds"),
    [
        (ViewCall("f(address) view returns (uint256)", value="5"), 7, 7, (5, None)),
        (ViewCall("f(address) view returns (uint256)", compare="<=", value="5"), 7, 7, (0, 5)),
        (ViewCall("f(address) view returns (uint256)", compare="=", value="7"), 7, 1, (1, None)),
        (ViewCall("f(address) view returns (uint256)", compare="=", value="7"), 8, 0, (1, None)),
        (ViewCall("f(address) view returns (int256)", value="-5"), -7, -7, (-5, None)),
        (ViewCall("f(address) view returns (bool)", compare="=", value="true"), 1, 1, (1, None)),
        (ViewCall("f(address) view returns (bool)", compare="=", value="false"), 0, 1, (1, None)),
        (ViewCall("f(address) view returns (bool)", compare="=", value="true"), 0, 0, (1, None)),
        (ViewCall("f(address) view returns (string)", compare="=", value="gold"), "gold", 1, (1, None)),
        (ViewCall("f(address) view returns (address)", compare="=", value=CONTRACT), CONTRACT, 1, (1, None)),
    ],
)
def test_what_a_wallet_counts_for(
    details: ViewCall, value: int | str, share: int, bounds: tuple[int, int | None]
) -> None:
    assert details.checked("base", CONTRACT) == details
    assert (details.share(value), details.bounds()) == (share, bounds)


def test_only_a_sum_of_signed_numbers_may_fall() -> None:
    signed = ViewCall("f(address) view returns (int256)", value="5")
    assert (signed.may_fall, replace(signed, compare="=").may_fall) == (True, False)
    assert replace(signed, compare="<=").bounds()[0] < -(2**200)
    assert not ViewCall("f(address) view returns (uint256)", value="5").may_fall
    assert not ViewCall("f(address) view returns (int256[])", path="length", value="5").may_fall


def test_the_words_and_the_name_say_what_is_asked() -> None:
    number = ViewCall(NUMBER, ("{wallet}", "5"), "", ">=", "1000")
    assert number.words("Moss on Base") == "stakedOf(wallet, 5) of Moss on Base is at least 1,000"
    assert number.words("Moss on Base", holds=False) == "stakedOf(wallet, 5) of Moss on Base is less than 1,000"
    most = replace(number, compare="<=")
    assert (most.words("M")[-13:], most.words("M", holds=False)[-15:]) == ("at most 1,000", "more than 1,000")
    truth = ViewCall("isIn(address) view returns (bool)", compare="=", value="true")
    assert truth.words("Moss on Base") == "isIn of Moss on Base is true for one of the wallets"
    assert truth.words("Moss on Base", holds=False) == "isIn of Moss on Base is true for none of the wallets"
    listed = ViewCall("staked(address) view returns (uint256[])", path="length", value="2")
    assert listed.words("Moss on Base") == "length of staked of Moss on Base is at least 2"
    assert (number.name("base", "Moss"), number.name("base", "")) == (
        "Moss - stakedOf(wallet, 5) ≥ 1,000",
        "stakedOf(wallet, 5) ≥ 1,000 on Base",
    )
    assert replace(number, value="").name("base", "Moss") == ""
    assert (number.shown(1_000), truth.shown(1), truth.shown(0)) == ("1,000", "yes", "no")


@pytest.mark.parametrize("row", TEMPLATES, ids=lambda row: row.key)
def test_every_template_is_a_condition(row: Any) -> None:
    details = ViewCall(row.function, row.args, row.path, row.compare, row.value)
    assert details.checked(row.chain or "base", row.contract or CONTRACT) == details
    assert compiled.compiled(details.question(row.contract or CONTRACT)).data.places
