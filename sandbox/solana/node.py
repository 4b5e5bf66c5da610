"""The read methods of a Solana node: slots, balances, signatures, transactions.

See docs/facts.md#solana-transactions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sandbox.base.people import base58
from sandbox.solana import program_accounts
from sandbox.solana.assets import AUTHORITY, Asset, Holdings, Transaction
from sandbox.solana.coins import (
    ACCOUNT_RENT,
    MINT_RENT,
    SplCoin,
    account_of,
    mint_account,
    token_account,
    token_amount,
)
from sandbox.solana.keys import is_address, is_signature
from sandbox.solana.ledger import TO_FINAL, Ledger
from sandbox.solana.program_accounts import FilterRefused
from sandbox.solana.transactions import MEMO, MEMO_V1, SYSTEM, TOKEN, shown

GENESIS = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
VERSION = {"solana-core": "2.3.6", "feature-set": 3640012085}
BEHIND = 24_000_000
"""How much less a block's height is than its slot: many slots were skipped over the years."""
INVALID = -32602
MOST_ACCOUNTS, MOST_LARGEST = 100, 20
COMMITMENTS = ("processed", "confirmed", "finalized")
ENCODINGS = ("binary", "base58", "base64", "base64+zstd", "json", "jsonParsed")


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class View:
    """What one request sees: the ledger as of its newest slot, and what the fault `zero` hides."""

    ledger: Ledger
    slot: int
    holdings: Holdings
    url: str
    zero: bool = False

    def head(self, config: dict[str, Any]) -> int:
        """Return the newest slot of a commitment (`finalized` is the default). Raises RpcError before a minimum."""
        newest = self.slot - (TO_FINAL - 1 if config.get("commitment", "finalized") == "finalized" else 0)
        if newest < (config.get("minContextSlot") or 0):
            raise RpcError(-32016, "Minimum context slot has not been reached")
        return newest


Method = Callable[[View, list[Any]], Any]


def _config(params: list[Any], at: int) -> dict[str, Any]:
    given = params[at] if len(params) > at else None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise RpcError(INVALID, "Invalid params: invalid type: expected a configuration object.")
    for name, known in (("commitment", COMMITMENTS), ("encoding", ENCODINGS)):
        if given.get(name) not in (None, *known):
            raise RpcError(INVALID, f"Invalid params: unknown variant of {name}.")
    if not isinstance(given.get("minContextSlot"), int | None):
        raise RpcError(INVALID, "Invalid params: invalid type: expected u64.")
    return given


def _address(params: list[Any]) -> str:
    given = params[0] if params else None
    if not isinstance(given, str) or not is_address(given):
        raise RpcError(INVALID, "Invalid param: Invalid")
    return given


def get_slot(view: View, params: list[Any]) -> int:
    """Return the newest slot of a commitment."""
    return view.head(_config(params, 0))


def get_block_height(view: View, params: list[Any]) -> int:
    """Return the number of blocks, which is smaller than that of slots."""
    return view.head(_config(params, 0)) - BEHIND


def get_block_time(view: View, params: list[Any]) -> int:
    """Return a slot's time in Unix seconds."""
    slot = params[0] if params else None
    if not isinstance(slot, int) or isinstance(slot, bool):
        raise RpcError(INVALID, "Invalid params: invalid type: expected u64.")
    if not 0 <= slot <= view.slot:
        raise RpcError(-32004, f"Block not available for slot {slot}")
    return view.ledger.slots.time_of(slot)


def get_latest_blockhash(view: View, params: list[Any]) -> Any:
    """Return the latest blockhash, for a client that wants to send something."""
    slot = view.head(_config(params, 0))
    value = {"blockhash": blockhash(slot), "lastValidBlockHeight": slot - BEHIND + 150}
    return _contextual(slot, value)


def get_balance(view: View, params: list[Any]) -> Any:
    """Return a balance in lamports."""
    address, slot = _address(params), view.head(_config(params, 1))
    return _contextual(slot, 0 if view.zero else view.ledger.balance(address, slot))


def get_account_info(view: View, params: list[Any]) -> Any:
    """Return an account's owner program and lamports, or null.

    Its data are left out, except those of a coin's accounts.
    """
    address, config = _address(params), _config(params, 1)
    slot = view.head(config)
    if (coin := view.ledger.holdings(slot).coins.get(address)) is not None:
        return _contextual(slot, _mint(view, coin, config))
    if (found := _token_account_at(view, slot, address)) is not None:
        return _contextual(slot, _coins_of(view, *found, config))
    if address in (MEMO, MEMO_V1):
        return _contextual(slot, _account("BPFLoader2111111111111111111111111111111111", 1_141_440, executable=True))
    asset = view.holdings.assets.get(address)
    if asset is not None:
        if asset.compressed or asset.burnt:
            return _contextual(slot, None)
        core = asset.interface.startswith("MplCore")
        return _contextual(slot, _account("CoREENxT6tW1HoK8ypY1SxRMZTcVPm7R94rH4PZNhX7d" if core else TOKEN, 1_461_600))
    return _contextual(slot, _account(SYSTEM, 0 if view.zero else view.ledger.balance(address, slot)))


def get_multiple_accounts(view: View, params: list[Any]) -> Any:
    """Return up to 100 accounts in their order, each as a coin's mint or as a wallet."""
    asked, slot = params[0] if params else None, view.head(_config(params, 1))
    if not isinstance(asked, list) or not all(isinstance(one, str) and is_address(one) for one in asked):
        raise RpcError(INVALID, "Invalid params: a list of addresses is expected.")
    if len(asked) > MOST_ACCOUNTS:
        raise RpcError(INVALID, f"Too many inputs provided; max {MOST_ACCOUNTS}")
    config, coins = _config(params, 1), view.ledger.holdings(slot).coins
    return _contextual(slot, [_wallet_or_mint(view, slot, coins.get(one), one, config) for one in asked])


def _wallet_or_mint(view: View, slot: int, coin: SplCoin | None, address: str, config: dict[str, Any]) -> Any:
    """Return an account of a list: a coin's mint with its data, otherwise a wallet."""
    if coin is None:
        return _account(SYSTEM, 0 if view.zero else view.ledger.balance(address, slot))
    return _mint(view, coin, {"encoding": "base64", **config})


def _mint(view: View, coin: SplCoin, config: dict[str, Any]) -> Any:
    """Return a coin's mint with its data in the encoding that was asked for."""
    if config.get("encoding") == "jsonParsed":
        return mint_account(coin, AUTHORITY)
    content = program_accounts.mint_bytes(coin, AUTHORITY, 0 if view.zero else coin.supply)
    return _stored(content, config, coin.program, MINT_RENT)


def _coins_of(view: View, coin: SplCoin, owner: str, config: dict[str, Any]) -> Any:
    """Return an owner's account of a coin in the same way."""
    if config.get("encoding") == "jsonParsed":
        return token_account(coin, owner)
    units = 0 if view.zero else coin.accounts[owner]
    content = program_accounts.account_bytes(coin.contract, owner, units, coin.program)
    return _stored(content, config, coin.program, ACCOUNT_RENT)


def _stored(content: bytes, config: dict[str, Any], program: str, lamports: int) -> Any:
    try:
        return program_accounts.shown(content, config, program, lamports)
    except FilterRefused as refused:
        raise RpcError(refused.code, str(refused)) from None


def get_program_accounts(view: View, params: list[Any]) -> Any:
    """Return a token program's accounts that match the filters; with their slot only if `withContext` asks for it."""
    program, config = _address(params), _config(params, 1)
    slot = view.head(config)
    try:
        filters = program_accounts.filters_of(program, config.get("filters"))
        found = [
            {"pubkey": address, "account": program_accounts.shown(content, config, program, ACCOUNT_RENT)}
            for address, content in _token_accounts_of(view, slot, program)
            if program_accounts.passes(content, filters)
        ]
    except FilterRefused as refused:
        raise RpcError(refused.code, str(refused)) from None
    return _contextual(slot, found) if config.get("withContext") is True else found


def _token_accounts_of(view: View, slot: int, program: str) -> Iterator[tuple[str, bytes]]:
    """Yield a program's token accounts: those of coins, and of assets that are neither compressed nor Core."""
    then = view.ledger.holdings(slot)
    for coin in then.coins.values():
        for owner, units in coin.accounts.items() if coin.program == program else ():
            content = program_accounts.account_bytes(coin.contract, owner, 0 if view.zero else units, program)
            yield account_of(owner, coin.contract), content
    for asset in then.assets.values() if program == TOKEN else ():
        if asset.id not in then.coins and asset.has_account:
            units = 0 if view.zero else 1
            content = program_accounts.account_bytes(asset.id, asset.owner, units, program, frozen=asset.frozen)
            yield account_of(asset.owner, asset.id), content


def get_token_largest_accounts(view: View, params: list[Any]) -> Any:
    """Return the 20 largest accounts of a coin."""
    mint, slot = _address(params), view.head(_config(params, 1))
    coin = view.ledger.holdings(slot).coins.get(mint)
    if coin is None:
        raise RpcError(INVALID, "Invalid param: not a Token mint")
    largest = sorted(coin.accounts.items(), key=lambda held: -held[1])[:MOST_LARGEST]
    if view.zero:
        largest = [(owner, 0) for owner, _ in largest]
    return _contextual(
        slot, [{"address": account_of(owner, mint), **token_amount(coin, units)} for owner, units in largest]
    )


def get_token_supply(view: View, params: list[Any]) -> Any:
    """Return the total supply of a coin."""
    mint, slot = _address(params), view.head(_config(params, 1))
    coin = view.ledger.holdings(slot).coins.get(mint)
    if coin is None:
        raise RpcError(INVALID, "Invalid param: not a Token mint")
    return _contextual(slot, token_amount(coin, 0 if view.zero else coin.supply))


def get_token_account_balance(view: View, params: list[Any]) -> Any:
    """Return what one token account of a coin has."""
    address, slot = _address(params), view.head(_config(params, 1))
    if (found := _token_account_at(view, slot, address)) is not None:
        coin, owner = found
        return _contextual(slot, token_amount(coin, 0 if view.zero else coin.accounts[owner]))
    raise RpcError(INVALID, "Invalid param: could not find account")


def _token_account_at(view: View, slot: int, address: str) -> tuple[SplCoin, str] | None:
    """Return the coin and the owner of a token account."""
    for coin in view.ledger.holdings(slot).coins.values():
        for owner in coin.accounts:
            if address == account_of(owner, coin.contract):
                return coin, owner
    return None


def get_token_accounts_by_owner(view: View, params: list[Any]) -> Any:
    """Return an owner's token accounts for a mint or a token program; compressed and Core assets have none."""
    owner, config = _address(params), _config(params, 2)
    asked = params[1] if len(params) > 1 else None
    slot = view.head(config)
    coins, assets = view.ledger.holdings(slot).coins, view.ledger.holdings(slot).assets
    mints = {*coins, *(asset.id for asset in assets.values() if asset.has_mint)}
    try:
        mint, program = program_accounts.mint_or_program(asked, mints)
    except FilterRefused as refused:
        raise RpcError(refused.code, str(refused)) from None
    found = [
        _token_account(asset, config)
        for asset in assets.values()
        if asset.owner == owner
        and asset.has_account
        and asset.id not in coins
        and (mint or asset.id, program or TOKEN) == (asset.id, TOKEN)
    ]
    found += [
        {"pubkey": account_of(owner, coin.contract), "account": _coins_of(view, coin, owner, config)}
        for coin in coins.values()
        if owner in coin.accounts and (mint or coin.contract, program or coin.program) == (coin.contract, coin.program)
    ]
    return _contextual(slot, [] if view.zero else found)


def _token_account(asset: Asset, config: dict[str, Any]) -> Any:
    """Return the account with the one token of an asset."""
    address = account_of(asset.owner, asset.id)
    if config.get("encoding") != "jsonParsed":
        content = program_accounts.account_bytes(asset.id, asset.owner, 1, TOKEN, frozen=asset.frozen)
        return {"pubkey": address, "account": _stored(content, config, TOKEN, ACCOUNT_RENT)}
    amount = {"amount": "1", "decimals": 0, "uiAmount": 1.0, "uiAmountString": "1"}
    state = "frozen" if asset.frozen else "initialized"
    info = {"isNative": False, "mint": asset.id, "owner": asset.owner, "state": state, "tokenAmount": amount}
    if asset.delegate:
        info |= {"delegate": asset.delegate, "delegatedAmount": amount}
    data = {"program": "spl-token", "parsed": {"info": info, "type": "account"}, "space": 165}
    return {"pubkey": address, "account": {**_account(TOKEN, ACCOUNT_RENT), "data": data}}


def get_signatures_for_address(view: View, params: list[Any]) -> Any:
    """Return signatures, newest first, from `before` (not included) back to `until` (not included)."""
    address, config = _address(params), _config(params, 1)
    limit = config.get("limit", 1000)
    if not isinstance(limit, int) or not 1 <= limit <= 1000:
        raise RpcError(INVALID, "Invalid limit; max 1000")
    if config.get("commitment") == "processed":
        raise RpcError(INVALID, "Method does not support commitment below `confirmed`")
    head = view.head(config)
    sent = [one for one in reversed(view.ledger.transactions) if one.slot <= head and one.mentions(address)]
    before, until = (_bound(config, name) for name in ("before", "until"))
    if before is not None:
        places = [at for at, one in enumerate(sent) if one.signature == before]
        sent = sent[places[0] + 1 :] if places else []
    for at, one in enumerate(sent):
        if one.signature == until:
            sent = sent[:at]
            break
    return [_listed(view, one) for one in sent[:limit]]


def _listed(view: View, sent: Transaction) -> Any:
    memo = "; ".join(f"[{len(memo.encode())}] {memo}" for memo in sent.memos) or None
    return {
        "signature": sent.signature,
        "slot": sent.slot,
        "err": {"InstructionError": [0, {"Custom": 1}]} if sent.failed else None,
        "memo": memo,
        "blockTime": sent.time,
        "confirmationStatus": _status(view, sent),
    }


def _status(view: View, sent: Transaction) -> str:
    return "finalized" if sent.slot <= view.head({}) else "confirmed"


def get_signature_statuses(view: View, params: list[Any]) -> Any:
    """Return the states of up to 256 transactions; null for an unknown one."""
    signatures = params[0] if params else None
    if not isinstance(signatures, list) or len(signatures) > 256:
        raise RpcError(INVALID, "Invalid params: a list of at most 256 signatures is expected.")
    found: list[Any] = []
    for signature in signatures:
        sent = view.ledger.transaction(_signature(signature))
        if sent is None or sent.slot > view.slot:
            found.append(None)
            continue
        err, status = _listed(view, sent)["err"], _status(view, sent)
        depth = None if status == "finalized" else view.slot - sent.slot
        outcome = {"Ok": None} if err is None else {"Err": err}
        found.append(
            {"slot": sent.slot, "confirmations": depth, "err": err, "status": outcome, "confirmationStatus": status}
        )
    return _contextual(view.slot, found)


def get_transaction(view: View, params: list[Any]) -> Any:
    """Return one transaction, as json or jsonParsed; null for an unknown one."""
    signature = _signature(params[0] if params else None)
    config = {"encoding": params[1]} if len(params) > 1 and isinstance(params[1], str) else _config(params, 1)
    if config.get("commitment") == "processed":
        raise RpcError(INVALID, "Method does not support commitment below `confirmed`")
    encoding = config.get("encoding", "json")
    if encoding not in ("json", "jsonParsed"):
        raise RpcError(INVALID, "Invalid params: this node encodes transactions as json or jsonParsed.")
    sent = view.ledger.transaction(signature)
    if sent is None or sent.slot > view.head(config):
        return None
    if config.get("maxSupportedTransactionVersion") is None:
        raise RpcError(
            -32015,
            "Transaction version (0) is not supported by the requesting client. Please try the request again with the "
            'following configuration parameter: "maxSupportedTransactionVersion": 0',
        )
    return shown(sent, parsed=encoding == "jsonParsed", blockhash=blockhash(sent.slot - 5))


def _signature(given: Any) -> str:
    if not isinstance(given, str) or not is_signature(given):
        raise RpcError(INVALID, "Invalid param: Invalid")
    return given


def _bound(config: dict[str, Any], name: str) -> str | None:
    return None if config.get(name) is None else _signature(config[name])


def _contextual(slot: int, value: Any) -> Any:
    return {"context": {"apiVersion": VERSION["solana-core"], "slot": slot}, "value": value}


def _account(program: str, lamports: int, *, executable: bool = False) -> Any:
    return {
        "data": ["", "base64"],
        "executable": executable,
        "lamports": lamports,
        "owner": program,
        "rentEpoch": 2**64 - 1,
        "space": 0,
    }


def blockhash(slot: int) -> str:
    """Return the hash of a slot's block."""
    return base58(sha256(f"block {slot}".encode()).digest())


HEADS: dict[str, Method] = {
    "getHealth": lambda _view, _params: "ok",
    "getVersion": lambda _view, _params: VERSION,
    "getGenesisHash": lambda _view, _params: GENESIS,
    "getSlot": get_slot,
    "getBlockHeight": get_block_height,
    "getBlockTime": get_block_time,
    "getLatestBlockhash": get_latest_blockhash,
}
"""The methods that a node which has lost its data still answers."""
DATA: dict[str, tuple[Method, Any]] = {
    "getBalance": (get_balance, 0),
    "getAccountInfo": (get_account_info, None),
    "getMultipleAccounts": (get_multiple_accounts, []),
    "getTokenAccountBalance": (get_token_account_balance, None),
    "getTokenLargestAccounts": (get_token_largest_accounts, []),
    "getTokenSupply": (get_token_supply, None),
    "getTokenAccountsByOwner": (get_token_accounts_by_owner, []),
    "getProgramAccounts": (get_program_accounts, []),
    "getSignaturesForAddress": (get_signatures_for_address, []),
    "getSignatureStatuses": (get_signature_statuses, []),
    "getTransaction": (get_transaction, None),
}
"""Each method with its empty answer, inside a context where `CONTEXTUAL` says so."""
CONTEXTUAL = (
    "getBalance",
    "getAccountInfo",
    "getMultipleAccounts",
    "getTokenAccountsByOwner",
    "getTokenAccountBalance",
    "getTokenLargestAccounts",
    "getTokenSupply",
    "getSignatureStatuses",
)


def emptiness(view: View, method: str, params: list[Any]) -> Any:
    """Return the answer of a method of DATA under the fault `empty`."""
    nothing = DATA[method][1]
    if method == "getProgramAccounts" and _config(params, 1).get("withContext") is True:
        return _contextual(view.slot, nothing)
    return _contextual(view.slot, nothing) if method in CONTEXTUAL else nothing
