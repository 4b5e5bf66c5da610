"""Function signatures as people write and paste them, and the errors for invalid ones."""

import pytest
from eth_utils.crypto import keccak

from gateways.evm.calls.abi_types import SignatureRefused
from gateways.evm.calls.signature import LONGEST, parse

SAME = "stakedOf(address,uint256) view returns (uint256)"


@pytest.mark.parametrize(
    "text",
    [
        SAME,
        "stakedOf(address,uint) view returns (uint)",
        "  function stakedOf(address who, uint256 pool) external view returns (uint256 amount);  ",
        "function stakedOf(address _who,uint256 _pool)public view virtual override returns(uint256)",
        "stakedOf(address payable who, uint256) pure returns (uint256)",
    ],
)
def test_many_ways_of_writing_are_one_function(text: str) -> None:
    found = parse(text)
    assert found.text == SAME
    assert found.selector == keccak(text="stakedOf(address,uint256)")[:4]


def test_arrays_and_tuples_of_any_kind_are_read() -> None:
    text = "f((address,(uint8,bytes32)[2])[],string,bytes) view returns ((uint256,bool[]) memory, int24[3][])"
    found = parse(text)
    assert found.text == "f((address,(uint8,bytes32)[2])[],string,bytes) view returns ((uint256,bool[]),int24[3][])"
    assert parse("f(tuple(address who, uint256 id) key) view returns (bool)").inputs[0].name == "(address,uint256)"
    assert [one.dynamic for one in found.outputs] == [True, True]
    assert [one.head for one in parse("f(address) view returns ((uint256,bool)[3],string)").outputs] == [192, 32]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Write the function's signature"),
        ("   ", "Write the function's signature"),
        ("stakedOf", "begins with the function's name"),
        ("stakedOf(address", "ends too early"),
        ("stakedOf(address) view", "Say what the function returns"),
        ("stakedOf(address) view returns ()", "must return something"),
        ("stakedOf(address) returns (uint256)", "write view before returns"),
        ("stakedOf(address) external returns (uint256)", "write view before returns"),
        ("pay(address) payable returns (uint256)", "Only functions that read"),
        ("stakedOf(address) views returns (uint256)", "There is views where view should be"),
        ("stakedOf(IERC20) view returns (uint256)", "IERC20 is not a type of the ABI"),
        ("stakedOf(address) view returns (uint7)", "8 to 256 bits"),
        ("stakedOf(address) view returns (uint264)", "8 to 256 bits"),
        ("stakedOf(address) view returns (bytes33)", "bytes1 to bytes32"),
        ("stakedOf(address) view returns (uint256[0])", "1 to 1,024 elements"),
        ("stakedOf(address) view returns (uint256[99999])", "1 to 1,024 elements"),
        ("stakedOf(address) view returns (uint256[x])", "An array's length is a number"),
        ("stakedOf(address) view returns (uint256[1024][1024])", "more than 32,768 bytes"),
        ("stakedOf(address) view returns (uint256) more", "Nothing can follow"),
        ("stakedOf(address,) view returns (uint256)", "is not a type of the ABI"),
        ("stakedOf(()) view returns (uint256)", "A tuple needs at least one type"),
        ("stakedOf(address) view returns (uint256); drop", "Nothing can follow"),
        ("stakedOf(address) => uint256", "cannot stand in a signature"),
        ("f(" + "(" * 20 + "address" + ")" * 20 + ") view returns (bool)", "nested more than 8 levels"),
        ("f(address) view returns (uint8" + "[]" * 20 + ")", "nested more than 8 levels"),
        (f"f({'address,' * 60}address) view returns (bool)", "more than 40 types"),
        ("f" * LONGEST + "(address) view returns (bool)", "at most 600 characters"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(SignatureRefused, match=said.replace("(", r"\(")):
        parse(text)
