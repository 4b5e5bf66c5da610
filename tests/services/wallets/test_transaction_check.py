"""Which transactions are accepted as proofs, and what people paste to name one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateways.evm.transactions import Transaction
from gateways.solana.transactions import SolanaTransaction
from services.wallets.transaction_check import (
    TransactionOutcome,
    TransactionReference,
    WantedTransaction,
    ask,
    data_of,
    in_coins,
    judge,
    judge_memo,
    read_reference,
)

MADE = datetime(2026, 1, 1, tzinfo=UTC)
MINE, THEIRS = "0x" + "aa" * 20, "0x" + "bb" * 20
CODE, AMOUNT = "holdfast-abcdefghjk", 123_456_789_012
WANTED = WantedTransaction(MINE, CODE, AMOUNT, MADE, {"base": 100})
GOOD = Transaction(
    "base", "0x" + "11" * 32, MINE, MINE, AMOUNT, b"", 7, block=101, block_time=MADE + timedelta(seconds=4),
    succeeded=True, confirmations=2,
)  # fmt: skip
HASH = "0x" + "Ab" * 32


@pytest.mark.parametrize(
    ("changes", "outcome", "said"),
    [
        ({}, TransactionOutcome.PROVES, ""),
        ({"value": 0, "data": CODE.encode()}, TransactionOutcome.PROVES, ""),
        ({"confirmations": 99}, TransactionOutcome.PROVES, ""),
        ({"sender": THEIRS}, TransactionOutcome.REFUSED, "was sent from 0xbbbb...bbbb, not from 0xaaaa...aaaa"),
        ({"sender": THEIRS, "to": THEIRS}, TransactionOutcome.REFUSED, "was sent from"),
        ({"to": THEIRS}, TransactionOutcome.REFUSED, "goes to somebody else"),
        ({"to": None}, TransactionOutcome.REFUSED, "goes to somebody else"),
        ({"block": 100}, TransactionOutcome.REFUSED, "older than your challenge"),
        ({"chain": "polygon", "block_time": MADE - timedelta(minutes=2)}, TransactionOutcome.REFUSED, "older"),
        ({"succeeded": False}, TransactionOutcome.REFUSED, "failed on Base"),
        ({"value": AMOUNT + 1}, TransactionOutcome.REFUSED, "has to carry exactly 0.000000123456789012 ETH"),
        ({"value": 0}, TransactionOutcome.REFUSED, "carries 0 ETH"),
        (
            {"value": 0, "data": CODE.encode() + b"l"},
            TransactionOutcome.REFUSED,
            "your code holdfast-abcdefghjk as its data",
        ),
        ({"value": 0, "data": b"holdfast-zzzzzzzzzz"}, TransactionOutcome.REFUSED, "has to carry"),
        ({"confirmations": 1}, TransactionOutcome.WAITS, "has 1 of 2 confirmations; 1 is missing"),
        ({"chain": "ethereum", "confirmations": 1}, TransactionOutcome.WAITS, "1 of 3 confirmations; 2 are missing"),
        ({"block": None, "confirmations": 0}, TransactionOutcome.WAITS, "waits to be taken into a block of Base"),
    ],
)  # fmt: skip
def test_only_a_fresh_confirmed_transaction_of_the_wallet_to_itself_with_its_mark_proves(
    changes: dict[str, object], outcome: TransactionOutcome, said: str
) -> None:
    judgement = judge(replace(GOOD, **changes), WANTED)
    assert judgement.outcome is outcome, judgement.message
    assert said in judgement.message


def test_the_mark_that_proved_is_named() -> None:
    assert judge(GOOD, WANTED).marker == "amount"
    assert judge(replace(GOOD, value=1, data=CODE.encode()), WANTED).marker == "code"


MEMO = SolanaTransaction("sig", 51, MADE, True, ("me",), ("hello", CODE))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"signers": ("payer",)}, "was not signed by"),
        ({"signers": ("me", "sender")}, "signed by others too"),
        ({"signers": ("payer", "me")}, "signed by others too"),
        ({"slot": 50}, "older than your challenge"),
        ({"ok": False}, "failed on Solana"),
        ({"memos": ("hello",)}, "no memo that reads holdfast-abcdefghjk"),
        ({"memos": (f"{CODE}x",)}, "no memo that reads"),
        ({"memos": ()}, "no memo that reads"),
    ],
)
def test_on_solana_the_wallet_signs_a_memo_with_the_code(changes: dict[str, object], said: str) -> None:
    wanted = replace(WANTED, address="me", first_blocks={"solana": 50})
    judgement = judge_memo(replace(MEMO, **changes), wanted)
    assert (judgement.outcome is TransactionOutcome.PROVES) == (said == "")
    assert said in judgement.message


def test_a_memo_of_a_trail_that_began_late_is_judged_by_its_time() -> None:
    wanted = replace(WANTED, address="me", first_blocks={})
    assert judge_memo(MEMO, wanted).outcome is TransactionOutcome.PROVES
    assert "older" in judge_memo(replace(MEMO, time=MADE - timedelta(hours=1)), wanted).message


@pytest.mark.parametrize(
    ("pasted", "chain"),
    [
        (HASH, None),
        (f"  {HASH.upper().replace('0X', '0x')}\n", None),
        (f"https://etherscan.io/tx/{HASH}", "ethereum"),
        (f"https://www.polygonscan.com/tx/{HASH}?a=b#eventlog", "polygon"),
        (f"arbiscan.io/tx/{HASH}", "arbitrum"),
        (f"https://optimistic.etherscan.io/tx/{HASH}/advanced", "optimism"),
        (f"https://basescan.org/tx/{HASH}", "base"),
        (f"https://apescan.io/tx/{HASH}", "apechain"),
        (f"https://abscan.org/tx/{HASH}", "abstract"),
        (f"https://eth.blockscout.com/tx/{HASH}", "ethereum"),
        (f"https://polygon.blockscout.com/tx/{HASH}", "polygon"),
        (f"https://arbitrum.blockscout.com/tx/{HASH}", "arbitrum"),
        (f"https://optimism.blockscout.com/tx/{HASH}", "optimism"),
        (f"https://explorer.optimism.io/tx/{HASH}", "optimism"),
        (f"https://base.blockscout.com/tx/{HASH}", "base"),
        (f"https://explorer.example/tx/{HASH}", None),
        (f"my transaction is {HASH}", None),
        (f"https://[{HASH}", None),
    ],
)
def test_a_hash_or_a_link_names_a_transaction_and_perhaps_its_chain(pasted: str, chain: str | None) -> None:
    assert read_reference(pasted) == TransactionReference(HASH.lower(), chain)


@pytest.mark.parametrize(
    "pasted", ["", "0x12", HASH[2:], HASH + "00", MINE, "https://etherscan.io/tx/", f"{HASH} {HASH[:-1]}0", "x" * 9999]
)
def test_what_names_no_transaction_is_none(pasted: str) -> None:
    assert read_reference(pasted) is None


def test_amounts_are_written_exactly() -> None:
    assert [in_coins(wei) for wei in (0, 1, 10**6, 123_456_789_012, 10**18, 25 * 10**17)] == [
        "0", "0.000000000000000001", "0.000000000001", "0.000000123456789012", "1", "2.5",
    ]  # fmt: skip


def test_what_to_send_is_told_in_the_chains_own_coin() -> None:
    told = ask("apechain", MINE, AMOUNT, CODE)
    assert (told.title, told.coin, told.to, told.value_wei) == ("ApeChain", "APE", MINE, str(AMOUNT))
    assert bytes.fromhex(told.data[2:]).decode() == CODE
    assert data_of(CODE) == told.data
