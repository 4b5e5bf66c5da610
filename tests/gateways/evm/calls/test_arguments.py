"""Arguments as people write them, and the call data made from them for a wallet."""

from typing import Any

import pytest
from eth_abi.abi import encode

from gateways.evm.calls.arguments import WALLET, ArgumentsRefused, call_data, normal
from gateways.evm.calls.signature import parse

OWNER = "0x" + "ab" * 20
CHECKSUMMED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def test_the_wallet_takes_its_places_and_constants_stay() -> None:
    function = parse("f(uint256,address,(address,int8)[],string,bytes4,bool) view returns (bool)")
    args = normal(function, ["0x10", WALLET, f'[["{WALLET}", -3], ["{OWNER.upper().replace("0X", "0x")}", "4"]]',
                             "a, b", "0xDEADBEEF", True])  # fmt: skip
    assert args == ("16", WALLET, f'[["{WALLET}","-3"],["{OWNER}","4"]]', "a, b", "0xdeadbeef", "true")
    assert normal(function, args) == args, "what is stored is read back the same"
    data = call_data(function, args)
    mine = "0x" + "01" * 20
    kinds = [one.name for one in function.inputs]
    values = [16, mine, [(mine, -3), (OWNER, 4)], "a, b", bytes.fromhex("deadbeef"), True]
    assert data.of(bytes.fromhex(mine[2:])) == function.selector + encode(kinds, values)
    assert len(data.places) == 2


def test_a_constant_like_the_wallets_stand_ins_is_no_place() -> None:
    function = parse("f(address,address,address) view returns (bool)")
    data = call_data(function, normal(function, ["0x" + "11" * 20, WALLET, "0x" + "ee" * 20]))
    assert data.places == (36,)
    assert data.of(bytes(20))[4:36] == bytes(12) + b"\x11" * 20


@pytest.mark.parametrize(
    ("signature", "given", "said"),
    [
        ("f(address)", [], "f takes 1 argument, and none is given"),
        ("f(address)", [WALLET, "5"], "f takes 1 argument; the number given is 2"),
        ("f(address,uint256)", [WALLET], "f takes 2 arguments; the number given is 1"),
        ("f()", [WALLET], "f takes no arguments"),
        ("f(address)", [OWNER], "must be {wallet}"),
        ("f(string)", [WALLET], "must be {wallet}"),
        ("f()", [], "must be {wallet}"),
        ("f(uint256)", [WALLET], "Argument 1 \\(uint256\\) is a whole number"),
        ("f(address,uint8)", [WALLET, "256"], "from 0 to 255"),
        ("f(address,uint8)", [WALLET, "-1"], "from 0 to 255"),
        ("f(address,int8)", [WALLET, "-129"], "from -128 to 127"),
        ("f(address,uint256)", [WALLET, "1e18"], "is a whole number, not 1e18"),
        ("f(address,uint256)", [WALLET, ""], "is empty: write a whole number"),
        ("f(address,uint256)", [WALLET, 1.5], "must be a text or a number"),
        ("f(address,uint256)", [WALLET, None], "must be a text or a number"),
        ("f(address,uint256)", [WALLET, "9" * 79], "is a whole number"),
        ("f(address,bool)", [WALLET, "yes"], "is true or false"),
        ("f(address,address)", [WALLET, "0x12"], "is {wallet}, or an address"),
        ("f(address,address)", [WALLET, CHECKSUMMED.replace("aA", "AA")], "capital letters"),
        ("f(address,bytes4)", [WALLET, "0x12"], "has 8 digits after 0x"),
        ("f(address,bytes)", [WALLET, "hello"], "is hexadecimal"),
        ("f(address,uint256[])", [WALLET, "1, 2"], "is a list in brackets"),
        ("f(address,uint256[])", [WALLET, "[" * 100_000], "more than 2,000 characters"),
        ("f(address,uint256[])", [WALLET, "[" * 1_999], "is a list in brackets"),
        ("f(address,uint256[])", [WALLET, '{"a": 1}'], "is a list in brackets"),
        ("f(address,uint256[])", [WALLET, [1] * 201], "more than 200 values"),
        ("f(address,uint256[2])", [WALLET, "[1]"], "has 2 values; the number given is 1"),
        ("f(address,(uint256,bool))", [WALLET, "[1]"], "has 2 values"),
        ("f(address,string)", [WALLET, "x" * 2_001], "more than 2,000 characters"),
        ("f(address,uint256[][])", [WALLET, [[1] * 100, [2] * 100]], "more than 4,096 bytes"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said(signature: str, given: list[Any], said: str) -> None:
    with pytest.raises(ArgumentsRefused, match=said):
        normal(parse(f"{signature} view returns (bool)"), given)


def test_a_checksummed_address_is_taken() -> None:
    function = parse("f(address,address) view returns (bool)")
    assert normal(function, [WALLET, CHECKSUMMED])[1] == CHECKSUMMED.lower()
