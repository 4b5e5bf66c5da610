"""Proof transactions: what to send, how to read a pasted reference to one, and pure functions that judge one."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from urllib.parse import urlsplit

from gateways.chains.catalogue import CHAINS
from gateways.evm.smart_accounts import AccountCall, Doubt
from gateways.evm.transactions import Transaction
from gateways.solana.transactions import SolanaTransaction
from locales import N_
from locales.stored_texts import said, storable, storable_count
from services.core.addresses import shorten
from services.core.json_view import Internal, json_view
from setting_checks import is_readable

CLOCKS_DIFFER = timedelta(seconds=60)
"""By how much a block's time may be earlier than the time at which its transactions were sent."""
WEI_DIGITS = 18
_AMOUNTS = _AMOUNT_UNIT = 10**6
_HASH = re.compile(r"(?<![0-9a-zA-Z])0x[0-9a-fA-F]{64}(?![0-9a-zA-Z])")


class TransactionOutcome(Enum):
    """The result of judging a transaction for a challenge."""

    PROVES = "proves"
    WAITS = "waits"
    """It is the right one, but not confirmed yet."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class WantedTransaction:
    """What one challenge asks for; `first_blocks` has the head of each chain, if known, when the challenge was made."""

    address: str
    code: str
    amount_wei: int
    created_at: datetime
    first_blocks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Judgement:
    """An outcome and its sentence to store; `marker` is what matched: `amount`, `code` or empty."""

    outcome: TransactionOutcome
    note: str
    marker: str = ""
    confirmations: int = 0
    needed: int = 0

    @property
    def message(self) -> str:
        """The sentence in the reader's language."""
        return said(self.note)


@dataclass(frozen=True, slots=True)
class TransactionReference:
    """A transaction that somebody named; `chain` is set if the link contains it."""

    hash: str
    chain: str | None


@json_view
class ChainAsk:
    """What to send on one chain: from `to` to itself, either exactly this value or exactly this data."""

    chain: str
    title: Internal[str]
    coin: Internal[str]
    to: str
    value_wei: str
    amount: Internal[str]
    data: str


def new_amount() -> int:
    """Return a random amount in wei, a millionth of a coin or less, by which a transaction names its challenge."""
    return (1 + secrets.randbelow(_AMOUNTS)) * _AMOUNT_UNIT + secrets.randbelow(_AMOUNT_UNIT)


def ask(chain: str, address: str, amount_wei: int, code: str) -> ChainAsk:
    """Return what the challenge asks for on this chain; `amount` is the value in the chain's own coin."""
    facts = CHAINS[chain]
    return ChainAsk(chain, facts.title, facts.coin, address, str(amount_wei), in_coins(amount_wei), data_of(code))


def data_of(code: str) -> str:
    """Return the code as a transaction's data: hexadecimal with 0x."""
    return "0x" + code.encode().hex()


def in_coins(wei: int) -> str:
    """Return an exact amount of the chain's coin, without exponent and trailing zeros."""
    written = f"{Decimal(wei).scaleb(-WEI_DIGITS):f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def read_reference(text: str) -> TransactionReference | None:
    """Return the transaction named by a pasted hash or explorer link, or None."""
    found = _HASH.findall(text)
    if len(found) != 1:
        return None
    given = text.strip()
    link = given if "//" in given else f"https://{given}"
    host = urlsplit(link).hostname if is_readable(link) else None
    return TransactionReference(found[0].lower(), _chain_of_site((host or "").removeprefix("www.")))


def _chain_of_site(host: str) -> str | None:
    return next((key for key, chain in CHAINS.items() if host in chain.explorer_hosts), None)


def marker(transaction: Transaction, wanted: WantedTransaction) -> str:
    """Return which mark of the challenge the transaction carries: `amount`, `code`, or empty.

    For a contract account it is the mark of a call to itself.
    """
    if transaction.calls:
        return next(filter(None, (_mark(call, wanted) for call in _to_itself(transaction, wanted))), "")
    return _mark(transaction, wanted)


def _to_itself(transaction: Transaction, wanted: WantedTransaction) -> list[Transaction | AccountCall]:
    """Return what the wallet sent to itself: the transaction, or a contract account's calls that raise no doubt."""
    sent = [call for call in transaction.calls if call.doubt is None] if transaction.calls else [transaction]
    return [one for one in sent if one.to == wanted.address]


def _mark(sent: Transaction | AccountCall, wanted: WantedTransaction) -> str:
    if sent.value == wanted.amount_wei:
        return "amount"
    return "code" if sent.data == wanted.code.encode() else ""


def is_bound(transaction: Transaction) -> bool:
    """Return whether the transaction proves a contract account, which counts only on its chain."""
    return bool(transaction.calls) or transaction.from_contract


_DOUBTS = {
    Doubt.RELAYED: N_(
        "Another contract passed that transaction on, so it does not show for sure what {account} did. Let the account "
        "itself send exactly the amount shown to itself, in a direct call."
    ),
    Doubt.UNREADABLE: N_(
        "That transaction does not show for sure what {account} did. Let the account itself send exactly the amount "
        "shown to itself, in a direct call."
    ),
    Doubt.DELEGATED: N_(
        "In that transaction {account} ran another contract's code as its own, which verifies nothing. Let the account "
        "itself send exactly the amount shown to itself, in a direct call."
    ),
    Doubt.UNSAID: N_(
        "The contract {account} does not say that it did this, as a Safe or an ERC-4337 account does. It cannot be "
        "verified: delegate it at delegate.xyz to a wallet of yours."
    ),
    Doubt.FAILED: N_("That transaction of {account} failed on {chain}, so it verifies nothing. Please send it again."),
    Doubt.OPEN: N_("Anybody can make the contract {account} do this, so it does not show that the contract is yours."),
}
"""The sentence for each doubt about a contract account's transaction."""
_OLDER = N_("That transaction is older than your challenge. Send a new one, exactly as shown.")


def judge(transaction: Transaction, wanted: WantedTransaction) -> Judgement:
    """Judge whether the transaction proves that the person with the challenge controls the wallet."""
    chain = CHAINS[transaction.chain]
    if not transaction.calls and transaction.sender != wanted.address:
        return _refused(
            storable(
                "That transaction was sent from {address}, not from {wallet}. Send it from the wallet that you "
                "want to verify.",
                address=shorten(transaction.sender),
                wallet=shorten(wanted.address),
            )
        )
    doubts = [call.doubt for call in transaction.calls]
    if doubts and doubts[0] is not None and None not in doubts:
        return _refused(storable(_DOUBTS[doubts[0]], account=shorten(wanted.address), chain=chain.title))
    to_itself = _to_itself(transaction, wanted)
    if not to_itself:
        return _refused(N_("That transaction goes to somebody else. Send it from your wallet to the same wallet."))
    if transaction.block is not None and _is_older(transaction, wanted):
        return _refused(_OLDER)
    by = marker(transaction, wanted)
    if not by:
        return _refused(
            storable(
                "That transaction carries {carried} {coin}. It has to carry exactly {amount} {coin}, or your "
                "code {code} as its data.",
                carried=in_coins(to_itself[0].value),
                coin=chain.coin,
                amount=in_coins(wanted.amount_wei),
                code=wanted.code,
            )
        )
    if transaction.block is None:
        return Judgement(TransactionOutcome.WAITS, waits(transaction.chain, 0), by, 0, chain.confirmations)
    if not transaction.succeeded:
        return _refused(
            storable(
                "That transaction failed on {chain}, so it verifies nothing. Please send it again.", chain=chain.title
            )
        )
    if transaction.confirmations < chain.confirmations:
        note = waits(transaction.chain, transaction.confirmations)
        return Judgement(TransactionOutcome.WAITS, note, by, transaction.confirmations, chain.confirmations)
    return Judgement(TransactionOutcome.PROVES, "", by, transaction.confirmations, chain.confirmations)


def waits(chain: str, confirmations: int) -> str:
    """Return the sentence to store about the right transaction while it lacks confirmations."""
    title, needed = CHAINS[chain].title, CHAINS[chain].confirmations
    if confirmations == 0:
        return storable("Your transaction waits to be taken into a block of {title}.", title=title)
    missing = needed - confirmations
    # Translators: the plural is about {count}, the confirmations that are missing.
    return storable_count(
        "Your transaction is on {chain} and has {had} of {needed} confirmations; {count} is missing.",
        "Your transaction is on {chain} and has {had} of {needed} confirmations; {count} are missing.",
        missing,
        chain=title,
        had=confirmations,
        needed=needed,
    )


def judge_memo(transaction: SolanaTransaction, wanted: WantedTransaction) -> Judgement:
    """Judge a finalized transaction on Solana: its memo must be the code, and the wallet must be its only signer.

    A wallet that a transaction only mentions has signed nothing (docs/facts.md#solana-transactions). A wallet that
    signed together with others may only have paid the fee for them, whatever the memo says.
    """
    if wanted.address not in transaction.signers:
        return _refused(
            storable(
                "That transaction was not signed by {address}. Send it from the wallet that you want to verify.",
                address=shorten(wanted.address),
            )
        )
    if transaction.signers != (wanted.address,):
        return _refused(
            storable(
                "That transaction was signed by others too. Send one that {address} signs alone.",
                address=shorten(wanted.address),
            )
        )
    first, time = wanted.first_blocks.get("solana", 0), transaction.time
    if transaction.slot <= first if first else time is not None and time < wanted.created_at - CLOCKS_DIFFER:
        return _refused(_OLDER)
    if wanted.code not in {memo.strip() for memo in transaction.memos}:
        return _refused(storable("That transaction has no memo that reads {code}, and nothing else.", code=wanted.code))
    if not transaction.ok:
        return _refused(N_("That transaction failed on Solana, so it verifies nothing. Please send it again."))
    return Judgement(TransactionOutcome.PROVES, "", "memo")


def _is_older(transaction: Transaction, wanted: WantedTransaction) -> bool:
    first = wanted.first_blocks.get(transaction.chain, 0)
    if first and transaction.block is not None:
        return transaction.block <= first
    return transaction.block_time is not None and transaction.block_time < wanted.created_at - CLOCKS_DIFFER


def _refused(note: str) -> Judgement:
    return Judgement(TransactionOutcome.REFUSED, note)
