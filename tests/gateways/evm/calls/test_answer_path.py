"""The value at a path of an answer: as the ABI defines it, whatever a hostile contract answers."""

from typing import Any

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from gateways.evm.calls.answer_path import FIRST_BYTES, LARGEST, NotAllThere, PathRefused, WrongAnswer, parse
from gateways.evm.calls.signature import parse as signature
from locales import stored_texts

WORD = 32


def path(outputs: str, text: str = "") -> Any:
    return parse(text, signature(f"f(address) view returns ({outputs})").outputs)


def said(outputs: str, values: list[Any], text: str = "") -> Any:
    found = path(outputs, text)
    answer = encode([one.name for one in found.outputs], values)
    return found.value(answer, len(answer))


@pytest.mark.parametrize(
    ("outputs", "values", "text", "value"),
    [
        ("uint256", [7], "", 7),
        ("uint256", [7], "0", 7),
        ("int24", [-7], "", -7),
        ("bool", [True], "", 1),
        ("bool", [False], "", 0),
        ("address", ["0x" + "ab" * 20], "", "0x" + "ab" * 20),
        ("bytes4", [b"\x01\x02\x03\x04"], "", "0x01020304"),
        ("string", ["hello"], "", "hello"),
        ("bytes", [b"\xff"], "", "0xff"),
        ("uint256[]", [[5, 6, 7]], "length", 3),
        ("uint256[]", [[]], "length", 0),
        ("uint256[]", [[5, 6, 7]], "2", 7),
        ("uint256[3]", [[5, 6, 7]], "length", 3),
        ("uint256[3]", [[5, 6, 7]], "1", 6),
        ("(uint256,uint64,bool)", [(9, 8, True)], "0", 9),
        ("(uint256,uint64,bool)", [(9, 8, True)], "2", 1),
        ("uint256,string,bool", [9, "x", True], "0", 9),
        ("uint256,string,bool", [9, "x", True], "1", "x"),
        ("uint256,uint256[]", [9, [1, 2]], "1.length", 2),
        ("(uint256,string)[]", [[(1, "a"), (2, "b")]], "1.1", "b"),
        ("(uint256,(bool,uint8[])[2])[]", [[(1, [(True, [3]), (False, [4, 5])])]], "0.1.1.1.length", 2),
        ("(uint256,(bool,uint8[])[2])[]", [[(1, [(True, [3]), (False, [4, 5])])]], "0.1.1.1.1", 5),
    ],
)
def test_a_path_leads_to_the_value(outputs: str, values: list[Any], text: str, value: object) -> None:
    assert said(outputs, values, text) == value


@pytest.mark.parametrize(
    ("outputs", "text", "wrong"),
    [
        ("uint256[]", "", 'Write "length"'),
        ("(uint256,bool)", "", "Choose one of its parts, 0 to 1"),
        ("uint256,bool", "", "all 2 results"),
        ("uint256", "length", "Only an array has a length"),
        ("uint256", "1", "which has no parts"),
        ("uint256,bool", "2", "no part 2"),
        ("uint256[2]", "2", "no part 2"),
        ("uint256[]", "x", "made of numbers and dots"),
        ("uint256[]", "-1", "made of numbers and dots"),
        ("uint256[]", "length.0", "made of numbers and dots"),
        ("uint256[]", "0.", "made of numbers and dots"),
        ("uint256[]", "9999999", "made of numbers and dots"),
        ("uint256[]", ".".join("0" * 9), "at most 8 steps"),
    ],
)
def test_a_path_that_does_not_fit_is_refused(outputs: str, text: str, wrong: str) -> None:
    with pytest.raises(PathRefused, match=wrong):
        path(outputs, text)


@pytest.mark.parametrize("text", ["0.1.1.1.length", "1.length", "length"])
def test_a_path_is_stored_as_it_is_written(text: str) -> None:
    outputs = {"length": "uint8[]", "1.length": "bool,uint8[]"}.get(text, "(uint256,(bool,uint8[])[2])[]")
    assert path(outputs, text).text == text


def word(number: int) -> bytes:
    return number.to_bytes(WORD, "big")


@pytest.mark.parametrize(
    ("outputs", "text", "answer"),
    [
        ("uint256", "", b""),
        ("uint256", "", bytes(31)),
        ("uint256", "", bytes(64)),
        ("uint256", "", word(32) + word(1) + word(7)),
        ("uint256,uint256", "0", bytes(32)),
        ("uint8", "", word(256)),
        ("int8", "", word(128)),
        ("bool", "", word(2)),
        ("address", "", word(2**160)),
        ("bytes4", "", word(1)),
        ("uint256[]", "length", word(32)),
        ("uint256[]", "length", word(64) + word(1)),
        ("uint256[]", "length", word(2**255) + word(1)),
        ("uint256[]", "length", word(32) + word(2) + word(1)),
        ("uint256[]", "length", word(32) + word(2**255)),
        ("uint256[]", "0", word(32) + word(0)),
        ("string", "", word(32) + word(1) + b"\xff" + bytes(31)),
        ("string", "", word(32) + word(5_000) + bytes(5_024)),
        ("(uint256,string)[]", "0.1", word(32) + word(1) + word(2**200) + bytes(64)),
    ],
)
def test_another_answer_than_the_signatures_is_no_value(outputs: str, text: str, answer: bytes) -> None:
    with pytest.raises(WrongAnswer):
        path(outputs, text).value(answer, len(answer))


def test_an_answer_over_the_size_is_no_value_and_not_copied_first() -> None:
    with pytest.raises(WrongAnswer) as wrong:
        path("uint256[]", "length").value(word(32) + word(32_768), 1_048_640)
    assert stored_texts.said(str(wrong.value)) == "the contract's answer is larger than 65,536 bytes"


def test_a_length_needs_only_the_beginning_and_a_later_part_asks_for_more() -> None:
    answer = encode(["uint256[]"], [list(range(500))])
    assert path("uint256[]", "length").value(answer[:FIRST_BYTES], len(answer)) == 500
    with pytest.raises(NotAllThere):
        path("uint256[]", "400").value(answer[:FIRST_BYTES], len(answer))
    assert path("uint256[]", "400").value(answer, len(answer)) == 400


TYPES = ("uint256", "int64", "bool", "address", "bytes8", "string", "bytes")


@given(
    st.lists(st.sampled_from([*TYPES, "uint8[]", "(uint16,string)[]", "(bool,address)"]), min_size=1, max_size=4),
    st.binary(max_size=LARGEST // 64),
    st.data(),
)
def test_no_bytes_make_anything_but_a_value_of_the_type_or_no_value(
    outputs: list[str], answer: bytes, data: st.DataObject
) -> None:
    step = data.draw(st.integers(0, len(outputs) - 1))
    inner = {"uint8[]": ".length", "(uint16,string)[]": ".0.1", "(bool,address)": ".1"}.get(outputs[step], "")
    text = f"{step}{inner}" if len(outputs) > 1 else inner.removeprefix(".")
    found = path(",".join(outputs), text)
    copied = data.draw(st.integers(0, len(answer)))
    try:
        value = found.value(answer[:copied], len(answer))
    except (WrongAnswer, NotAllThere):
        return
    assert isinstance(value, int) == (found.sort != "text")
