"""How a node's refusal is classified by its wording."""

import pytest

from gateways.evm.rpc.errors import Halted, Reverted, RpcRefused, TooMuch, rpc_error


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ("invalid jump destination", None),
        ("invalid opcode: INVALID", None),
        ("EVM error InvalidFEOpcode", None),
        ("EVM error: InvalidJump", None),
        ("stack underflow (0 <=> 1)", None),
        ("VM execution error.", "Bad jump destination"),
        ("VM execution error.", "Bad instruction fe"),
    ],
)
def test_a_halt_of_the_evm_is_told_from_a_revert(message: str, data: str | None) -> None:
    assert isinstance(rpc_error("a node", -32000, message, data), Halted)


def test_a_revert_is_the_contracts_no_and_leaves_gas() -> None:
    assert type(rpc_error("a node", -32000, "execution reverted")) is Reverted


@pytest.mark.parametrize(
    ("message", "kind"), [("out of gas", TooMuch), ("something else", RpcRefused), ("jump the queue", RpcRefused)]
)
def test_other_refusals_are_none(message: str, kind: type[Exception]) -> None:
    assert type(rpc_error("a node", -32000, message)) is kind
