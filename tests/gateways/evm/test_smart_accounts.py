"""What a transaction shows about a contract account's calls: only what is certain, and a doubt otherwise."""

from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from gateways.evm.smart_accounts import (
    ENTRY_POINTS,
    LONGEST_CALL,
    OPERATION_DONE,
    SAFE_DONE,
    SAFE_FAILED,
    AccountCall,
    Doubt,
    ReceiptLog,
    calls_of,
    took_a_forgery,
)

MINE, OTHER, NOBODY = ("0x" + digits * 20 for digits in ("a1", "b2", "00"))
OLD, NEW, NEWER, NEWEST = ENTRY_POINTS
UNPACKED = "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
PACKED = "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"
VALUE = 123_456_789


def called(form: str, types: list[str], *values: Any) -> bytes:
    return keccak(text=form)[:4] + encode(types, values)


def safe(to: str = MINE, value: int = VALUE, data: bytes = b"", operation: int = 0) -> bytes:
    types = ["address", "uint256", "bytes", "uint8", *["uint256"] * 3, "address", "address", "bytes"]
    form = f"execTransaction({','.join(types)})"
    return called(form, types, to, value, data, operation, 0, 0, 0, NOBODY, NOBODY, b"\1" * 65)


def execute(to: str = MINE, value: int = VALUE, data: bytes = b"") -> bytes:
    return called("execute(address,uint256,bytes)", ["address", "uint256", "bytes"], to, value, data)


def operation(sender: str = MINE, nonce: int = 7, call: bytes | None = None, form: str = PACKED) -> tuple[Any, ...]:
    call = execute() if call is None else call
    if form == UNPACKED:
        return (sender, nonce, b"", call, 1, 2, 3, 4, 5, b"", b"signed")
    return (sender, nonce, b"", call, bytes(32), 3, bytes(32), b"", b"signed")


def bundle(*operations: tuple[Any, ...], form: str = PACKED) -> bytes:
    return called(f"handleOps({form}[],address)", [f"{form}[]", "address"], list(operations), OTHER)


def told(topic: str, address: str = MINE) -> ReceiptLog:
    return ReceiptLog(address, (topic, "0x" + "77" * 32), bytes(32))


def done(nonce: int = 7, succeeded: int = 1, sender: str = MINE, place: str = NEW) -> ReceiptLog:
    topics = (OPERATION_DONE, "0x" + "77" * 32, "0x" + "00" * 12 + sender[2:], "0x" + "00" * 32)
    return ReceiptLog(place, topics, encode(["uint256", "bool", "uint256", "uint256"], [nonce, bool(succeeded), 1, 1]))


def seen(to: str | None, data: bytes, *logs: ReceiptLog) -> list[tuple[str, int, Doubt | None]]:
    """Return the receiver, value and doubt of each call of our account."""
    return [(one.to, one.value, one.doubt) for one in calls_of(to, data, logs, MINE)]


def test_a_safe_that_says_so_called_what_its_transaction_says() -> None:
    assert seen(MINE, safe(), told(SAFE_DONE)) == [(MINE, VALUE, None)]
    assert seen(MINE, safe(OTHER, 5), told(SAFE_DONE)) == [(OTHER, 5, None)]
    (found,) = calls_of(MINE, safe(value=0, data=b"holdfast-code"), [told(SAFE_DONE)], MINE)
    assert (found.value, found.data) == (0, b"holdfast-code")


@pytest.mark.parametrize(
    ("data", "logs", "doubt"),
    [
        (safe(), [], Doubt.UNSAID),
        (safe(), [told(SAFE_DONE, OTHER)], Doubt.UNSAID),
        (safe(), [told(SAFE_DONE), told(SAFE_DONE)], Doubt.UNSAID),
        (safe(), [told(SAFE_FAILED)], Doubt.FAILED),
        (safe(), [told(SAFE_DONE), told(SAFE_FAILED)], Doubt.FAILED),
        (safe(operation=1), [told(SAFE_DONE)], Doubt.DELEGATED),
        (safe()[:100], [told(SAFE_DONE)], Doubt.UNREADABLE),
    ],
    ids=["silent", "another's word", "twice", "failed", "both", "delegatecall", "cut off"],
)
def test_a_safe_proves_nothing_where_this_is_not_sure(data: bytes, logs: list[ReceiptLog], doubt: Doubt) -> None:
    assert [one for _, _, one in seen(MINE, data, *logs)] == [doubt]


def test_another_safes_transaction_is_not_ours() -> None:
    assert seen(OTHER, safe(MINE), told(SAFE_DONE, OTHER)) == []
    assert seen(None, safe(MINE)) == []
    assert seen(OTHER, safe(MINE), told(SAFE_DONE)) == [("", 0, Doubt.RELAYED)]


@pytest.mark.parametrize(("place", "form"), ENTRY_POINTS.items())
def test_an_operation_of_every_entry_point_is_read(place: str, form: str) -> None:
    data = bundle(operation(form=form), form=form)
    assert seen(place, data, done(place=place)) == [(MINE, VALUE, None)]


def test_among_many_operations_ours_are_found_each_with_its_outcome() -> None:
    data = bundle(
        operation(OTHER, 7),
        operation(MINE, 7, execute(value=1)),
        operation(MINE, 8, execute(value=2)),
        operation(OTHER),
    )
    logs = [done(7, 1, OTHER), done(7, 0), done(8, 1)]
    assert seen(NEW, data, *logs) == [(MINE, 1, Doubt.FAILED), (MINE, 2, None)]
    assert seen(NEW, bundle(operation(OTHER)), done(sender=OTHER)) == []


@pytest.mark.parametrize(
    ("logs", "doubt"),
    [
        ([], Doubt.UNSAID),
        ([done(place=OTHER)], Doubt.UNSAID),
        ([done(place=OLD)], Doubt.UNSAID),
        ([done(sender=OTHER)], Doubt.UNSAID),
        ([done(nonce=8)], Doubt.UNSAID),
        ([done(succeeded=0)], Doubt.FAILED),
    ],
    ids=["silent", "a stranger's event", "another entry point's", "another account's", "another operation's", "failed"],
)
def test_an_operation_proves_nothing_without_its_entry_points_word(logs: list[ReceiptLog], doubt: Doubt) -> None:
    assert [one for _, _, one in seen(NEW, bundle(operation()), *logs)] == [doubt]


def test_what_looks_like_an_entry_point_is_none() -> None:
    assert seen(OTHER, bundle(operation()), done(place=OTHER)) == []
    assert seen(OTHER, bundle(operation()), done()) == [("", 0, Doubt.RELAYED)]


MODE = bytes(32)
CALLS = [(OTHER, 1, b""), (MINE, VALUE, b"")]
SINGLE = bytes.fromhex(MINE[2:]) + VALUE.to_bytes(32, "big")


@pytest.mark.parametrize(
    "call",
    [
        called("execute(address,uint256,bytes,uint8)", ["address", "uint256", "bytes", "uint8"], MINE, VALUE, b"", 0),
        called(
            "executeUserOp(address,uint256,bytes,uint8)", ["address", "uint256", "bytes", "uint8"], MINE, VALUE, b"", 0
        ),
        called(
            "executeBatch(address[],uint256[],bytes[])",
            ["address[]", "uint256[]", "bytes[]"],
            *map(list, zip(*CALLS, strict=True)),
        ),
        called("executeBatch((address,uint256,bytes)[])", ["(address,uint256,bytes)[]"], CALLS),
        called("execute(bytes32,bytes)", ["bytes32", "bytes"], MODE, SINGLE),
        called(
            "execute(bytes32,bytes)",
            ["bytes32", "bytes"],
            b"\1" + MODE[1:],
            encode(["(address,uint256,bytes)[]"], [CALLS]),
        ),
    ],
)
def test_what_common_accounts_execute_is_read(call: bytes) -> None:
    assert (MINE, VALUE, None) in seen(NEW, bundle(operation(call=call)), done())


@pytest.mark.parametrize(
    "call",
    [
        b"",
        b"\x12\x34\x56\x78" + SINGLE,
        execute()[:60],
        called("execute(address,uint256,bytes,uint8)", ["address", "uint256", "bytes", "uint8"], MINE, VALUE, b"", 1),
        called("execute(bytes32,bytes)", ["bytes32", "bytes"], b"\0\1" + MODE[2:], SINGLE),
        called("execute(bytes32,bytes)", ["bytes32", "bytes"], b"\xff" + MODE[1:], SINGLE),
        called("execute(bytes32,bytes)", ["bytes32", "bytes"], MODE, SINGLE[:40]),
        called(
            "executeBatch(address[],uint256[],bytes[])", ["address[]", "uint256[]", "bytes[]"], [MINE], [1, 2], [b""]
        ),
        execute(data=bytes(LONGEST_CALL)),
    ],
    ids=["nothing", "unknown", "cut off", "delegatecall", "tries", "static", "short", "uneven", "long"],
)
def test_what_else_an_operation_does_is_not_sure(call: bytes) -> None:
    assert seen(NEW, bundle(operation(call=call)), done()) == [("", 0, Doubt.UNREADABLE)]


def test_while_it_waits_the_input_alone_counts() -> None:
    for to, data in ((MINE, safe()), (NEW, bundle(operation()))):
        assert [(one.to, one.value, one.doubt) for one in calls_of(to, data, None, MINE)] == [(MINE, VALUE, None)]


def test_a_forgery_is_the_same_call_without_a_signature_of_anybody() -> None:
    ((_, to, data),) = (one.forgery or ("", "", "") for one in calls_of(MINE, safe(), None, MINE))
    assert (to, data[:10], bytes.fromhex(data[2:]) == safe()) == (MINE, "0x6a761202", False)
    ((sender, to, data),) = (one.forgery or ("", "", "") for one in calls_of(NEW, bundle(operation()), None, MINE))
    assert (sender, to, data[:10], b"signed".hex() in data) == (NEW, MINE, "0x19822f7c", False)


@pytest.mark.parametrize(
    ("sender", "said", "taken"),
    [
        (OTHER, b"", True),
        (NEW, bytes(32), True),
        (NEW, b"\1" * 12 + bytes(20), True),
        (NEW, (1).to_bytes(32, "big"), False),
        (NEW, b"", False),
    ],
    ids=["a safe that does not revert", "valid", "valid for a time", "no", "no answer"],
)
def test_who_takes_a_forgery_is_told_from_who_does_not(sender: str, said: bytes, taken: bool) -> None:
    assert took_a_forgery((sender, MINE, "0x"), said) is taken


@given(st.sampled_from([MINE, *ENTRY_POINTS]), st.sampled_from([safe(), bundle(operation())]), st.data())
def test_no_spoiled_input_makes_more_than_a_doubt(to: str, data: bytes, draw: st.DataObject) -> None:
    """Whatever bytes change, the result is a call reported by the entry point or the Safe, or a doubt."""
    at = draw.draw(st.integers(4, len(data) - 1))
    spoiled = data[:at] + draw.draw(st.binary(max_size=40)) + data[at + draw.draw(st.integers(0, 40)) :]
    for found in calls_of(to, spoiled, [], MINE):
        assert isinstance(found, AccountCall)
        assert found.doubt is not None


def test_offsets_that_overlap_cost_no_more_than_the_input() -> None:
    """A thousand operations that are all the same one, and ours: only a few are read."""
    count = 1_000
    one = encode([PACKED], [operation(call=bytes(60_000))])[32:]
    words = [64, 0, count, *[32 * count] * count]
    data = keccak(text=f"handleOps({PACKED}[],address)")[:4]
    data += b"".join(word.to_bytes(32, "big") for word in words) + one
    assert seen(NEW, data, done()) == [("", 0, Doubt.UNREADABLE)] * 20
