"""The accounts on Solana: their bytes, and the methods of a node that show them or go through them.

See docs/facts.md#solana-coins.
"""

import struct
from base64 import b64encode
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from sandbox.base.json_rpc import INVALID
from sandbox.base.people import base58
from sandbox.solana.assets import AUTHORITY, Holdings
from sandbox.solana.coins import (
    ACCOUNT_RENT,
    MINT_RENT,
    TOKEN,
    TOKEN_2022,
    SplCoin,
    account_of,
    mint_account,
    token_account,
    token_amount,
)
from sandbox.solana.keys import decoded, is_address
from sandbox.solana.node import RpcError, View, config_at, contextual, first_address, is_u64
from sandbox.solana.transactions import BUDGET, MEMO, MEMO_V1, SYSTEM

MOST_ACCOUNTS, MOST_LARGEST = 100, 20
COMPRESSED = "base64+zstd"
MOST_FILTERS, MOST_BASE58 = 4, 128
MOST_FILTER_LETTERS = 175
"""The letters of 128 bytes in base58."""
INDEXED = (0, 32)
"""The offsets of the mint and the owner in a token account; nodes have an index of these two alone."""
ACCOUNT_SIZE, EXTENDED_SIZE, MINT_SIZE = 165, 170, 82
"""Bytes. A Token-2022 account that was made for a wallet has one extension: its owner cannot change."""
ACCOUNT_TYPE = 2
WRAPPED_SOL = "So11111111111111111111111111111111111111112"
SCANS_A_SECOND = 5
"""How many getProgramAccounts a plan answers each second, beside its other calls, when the sandbox is strict."""
CORE = "CoREENxT6tW1HoK8ypY1SxRMZTcVPm7R94rH4PZNhX7d"
LOADER, NATIVE_LOADER = "BPFLoader2111111111111111111111111111111111", "NativeLoader1111111111111111111111111111111"
PROGRAMS = {
    SYSTEM: (NATIVE_LOADER, 1),
    BUDGET: (NATIVE_LOADER, 1),
    **dict.fromkeys((TOKEN, TOKEN_2022, CORE, MEMO, MEMO_V1), (LOADER, 1_141_440)),
}
"""Program → its loader and its lamports. The bytes of programs are left out, and those of Core's assets."""


@dataclass(frozen=True)
class AccountsAt:
    """The accounts as of a slot, for a request with this configuration."""

    slot: int
    holdings: Holdings
    config: dict[str, Any]
    zero: bool

    @classmethod
    def seen(cls, view: View, config: dict[str, Any]) -> Self:
        """Return what a request sees. Raises RpcError for a slot that the node has not reached."""
        slot = view.head(config)
        return cls(slot, view.ledger.holdings(slot), config, view.zero)

    @cached_property
    def of_tokens(self) -> dict[str, tuple[SplCoin, str]]:
        """Address → mint and owner of every token account; those of NFTs come first."""
        mints = self.holdings.mints()
        return {account_of(owner, mint.contract): (mint, owner) for mint in mints for owner in mint.accounts}

    def shown(self, address: str) -> dict[str, Any] | None:
        """Return an account, None where there is none. Raises RpcError for an encoding that the node does not take."""
        if (mint := self.holdings.mint(address)) is not None:
            return self.mint(mint)
        if address in PROGRAMS:
            loader, lamports = PROGRAMS[address]
            return {**self._stored(b"", loader, lamports), "executable": True}
        if (lamports := self.holdings.lamports.get(address, 0)) > 0:
            return self._stored(b"", SYSTEM, lamports)
        asset = self.holdings.assets.get(address)
        if asset is not None and not (asset.compressed or asset.burnt):
            return self._stored(b"", CORE, MINT_RENT)
        return self.token(*self.of_tokens[address]) if address in self.of_tokens else None

    def mint(self, coin: SplCoin) -> dict[str, Any]:
        """Return a mint."""
        if self.config.get("encoding") == "jsonParsed":
            return mint_account(replace(coin, accounts={}) if self.zero else coin, AUTHORITY)
        return self._stored(mint_bytes(coin, AUTHORITY, 0 if self.zero else coin.supply), coin.program, MINT_RENT)

    def token(self, coin: SplCoin, owner: str) -> dict[str, Any]:
        """Return an owner's account of a mint."""
        asset = self.holdings.assets[coin.contract]
        if self.config.get("encoding") == "jsonParsed":
            coin = replace(coin, accounts={owner: 0}) if self.zero else coin
            return token_account(coin, owner, frozen=asset.frozen, delegate=asset.delegate)
        return self._stored(self.content(coin, owner), coin.program, ACCOUNT_RENT)

    def content(self, coin: SplCoin, owner: str) -> bytes:
        """Return the bytes of an owner's account of a mint."""
        asset, units = self.holdings.assets[coin.contract], 0 if self.zero else coin.accounts[owner]
        return account_bytes(coin, owner, units, frozen=asset.frozen, delegate=asset.delegate)

    def _stored(self, content: bytes, program: str, lamports: int) -> dict[str, Any]:
        return shown(content, self.config, program, 0 if self.zero else lamports)


def get_balance(view: View, params: list[Any]) -> Any:
    """Return a balance in lamports."""
    address, config = first_address(params), config_at(params, 1)
    accounts = AccountsAt.seen(view, {**config, "encoding": "base64"})
    return contextual(accounts.slot, (accounts.shown(address) or {"lamports": 0})["lamports"])


def get_account_info(view: View, params: list[Any]) -> Any:
    """Return an account, or null."""
    address, accounts = first_address(params), AccountsAt.seen(view, config_at(params, 1))
    return contextual(accounts.slot, accounts.shown(address))


def get_multiple_accounts(view: View, params: list[Any]) -> Any:
    """Return up to 100 accounts in their order."""
    asked, config = params[0] if params else None, {"encoding": "base64", **config_at(params, 1)}
    accounts = AccountsAt.seen(view, config)
    if not isinstance(asked, list) or not all(isinstance(one, str) and is_address(one) for one in asked):
        raise RpcError(INVALID, "Invalid params: a list of addresses is expected.")
    if len(asked) > MOST_ACCOUNTS:
        raise RpcError(INVALID, f"Too many inputs provided; max {MOST_ACCOUNTS}")
    return contextual(accounts.slot, [accounts.shown(one) for one in asked])


def get_program_accounts(view: View, params: list[Any]) -> Any:
    """Return a token program's accounts that match the filters; with their slot only if `withContext` asks for it."""
    program, config = first_address(params), config_at(params, 1)
    accounts, filters = AccountsAt.seen(view, config), filters_of(program, config.get("filters"))
    found = [
        {"pubkey": address, "account": accounts.token(coin, owner)}
        for address, (coin, owner) in accounts.of_tokens.items()
        if coin.program == program and passes(accounts.content(coin, owner), filters)
    ]
    return contextual(accounts.slot, found) if config.get("withContext") is True else found


def _mint_of(view: View, params: list[Any]) -> tuple[int, SplCoin]:
    """Return the newest slot and the mint that a request names; nodes read no earliest slot here."""
    address, slot = first_address(params), view.newest(config_at(params, 1))
    coin = view.ledger.holdings(slot).mint(address)
    if coin is None:
        raise RpcError(INVALID, "Invalid param: not a Token mint")
    return slot, coin


def get_token_largest_accounts(view: View, params: list[Any]) -> Any:
    """Return the 20 largest accounts of a mint."""
    slot, coin = _mint_of(view, params)
    largest = sorted(coin.accounts.items(), key=lambda held: -held[1])[:MOST_LARGEST]
    return contextual(
        slot,
        [
            {"address": account_of(owner, coin.contract), **token_amount(coin, 0 if view.zero else units)}
            for owner, units in largest
        ],
    )


def get_token_supply(view: View, params: list[Any]) -> Any:
    """Return the total supply of a mint."""
    slot, coin = _mint_of(view, params)
    return contextual(slot, token_amount(coin, 0 if view.zero else coin.supply))


def get_token_account_balance(view: View, params: list[Any]) -> Any:
    """Return what one token account has; nodes read no earliest slot here."""
    address, config = first_address(params), config_at(params, 1)
    slot = view.newest(config)
    found = AccountsAt(slot, view.ledger.holdings(slot), config, view.zero).of_tokens.get(address)
    if found is None:
        raise RpcError(INVALID, "Invalid param: could not find account")
    coin, owner = found
    return contextual(slot, token_amount(coin, 0 if view.zero else coin.accounts[owner]))


def get_token_accounts_by_owner(view: View, params: list[Any]) -> Any:
    """Return an owner's token accounts for a mint or a token program; compressed and Core assets have none."""
    owner, accounts = first_address(params), AccountsAt.seen(view, config_at(params, 2))
    mints = list(accounts.holdings.mints())
    mint, program = mint_or_program(params[1] if len(params) > 1 else None, {one.contract for one in mints})
    found = [
        {"pubkey": account_of(owner, coin.contract), "account": accounts.token(coin, owner)}
        for coin in mints
        if owner in coin.accounts and (mint or coin.contract, program or coin.program) == (coin.contract, coin.program)
    ]
    return contextual(accounts.slot, [] if view.zero else found)


def mint_bytes(coin: SplCoin, authority: str, supply: int) -> bytes:
    """Return a coin's mint: its authority, the supply, the decimals, and no freeze authority."""
    has_authority = (1).to_bytes(4, "little") + (decoded(authority) or b"")
    return has_authority + supply.to_bytes(8, "little") + bytes([coin.decimals, 1]) + bytes(36)


def account_bytes(coin: SplCoin, owner: str, units: int, *, frozen: bool = False, delegate: str | None = None) -> bytes:
    """Return a token account: mint, owner, amount, delegate, its state, and how much the delegate may move."""
    start = (decoded(coin.contract) or b"") + (decoded(owner) or b"") + units.to_bytes(8, "little")
    lent = units if delegate else 0
    to = (1).to_bytes(4, "little") + (decoded(delegate) or b"") if delegate else bytes(36)
    plain = start + to + bytes([2 if frozen else 1]) + bytes(12) + lent.to_bytes(8, "little") + bytes(36)
    return plain + bytes([ACCOUNT_TYPE, 7, 0, 0, 0]) if coin.program == TOKEN_2022 else plain


def shown(content: bytes, config: dict[str, Any], program: str, lamports: int) -> dict[str, Any]:
    """Return an account with its data in the requested encoding and slice. Raises RpcError."""
    return {
        "data": _encoded(_cut(content, config.get("dataSlice")), config.get("encoding")),
        "executable": False,
        "lamports": lamports,
        "owner": program,
        "rentEpoch": 2**64 - 1,
        "space": len(content),
    }


def _cut(content: bytes, part: Any) -> bytes:
    if part is None:
        return content
    start, size = (part.get(name) if isinstance(part, dict) else None for name in ("offset", "length"))
    if not (is_u64(start) and is_u64(size)):
        raise RpcError(INVALID, "Invalid params: dataSlice is an offset and a length.")
    return content[start : start + size]


def _encoded(content: bytes, encoding: Any) -> Any:
    if encoding == "base64" or (encoding == "jsonParsed" and not content):
        return [b64encode(content).decode(), "base64"]
    if encoding == COMPRESSED:
        return [b64encode(_zstd(content)).decode(), COMPRESSED]
    if encoding in (None, "base58", "binary"):
        if len(content) > MOST_BASE58:
            raise RpcError(
                -32600, "Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding."
            )
        text = base58(content) if content else ""
        return [text, "base58"] if encoding == "base58" else text
    raise RpcError(INVALID, f"Invalid params: unknown variant `{encoding}`, expected a known encoding.")


def _zstd(content: bytes) -> bytes:
    """Return a frame of one raw block (RFC 8878 section 3.1.1), which saves no bytes and needs no library."""
    # One segment, so that there is no window, and the content's size in four bytes. No account here fills a block.
    header = struct.pack("<IBI", 0xFD2FB528, 0b10100000, len(content))
    return header + struct.pack("<I", len(content) << 3 | 1)[:3] + content


def mint_or_program(asked: Any, mints: Set[str]) -> tuple[str | None, str | None]:
    """Return the mint or the token program for which an owner's token accounts are asked. Raises RpcError.

    `mints` are the addresses of all mints but that of wrapped SOL, which every node knows.
    """
    [(kind, address)] = asked.items() if isinstance(asked, dict) and len(asked) == 1 else [("", None)]
    if kind not in ("mint", "programId"):
        raise RpcError(INVALID, "Invalid params: either `mint` or `programId` is expected.")
    if not isinstance(address, str) or not is_address(address):
        raise RpcError(INVALID, "Invalid param: Invalid")
    if kind == "programId" and address not in (TOKEN, TOKEN_2022):
        raise RpcError(INVALID, "Invalid param: unrecognized Token program id")
    if kind == "mint" and address != WRAPPED_SOL and address not in mints:
        raise RpcError(INVALID, "Invalid param: could not find mint")
    return (address, None) if kind == "mint" else (None, address)


def filters_of(program: str, given: Any) -> list[tuple[int | None, bytes | int]]:
    """Return each filter as an offset and the bytes there, or as None and a size.

    Raises RpcError for what a node does not take. For the token programs this includes what no index answers,
    since such a scan goes through hundreds of millions of accounts.
    """
    listed = [] if given is None else given
    if not isinstance(listed, list) or not all(isinstance(one, dict) and len(one) == 1 for one in listed):
        raise RpcError(INVALID, "Invalid params: filters is a list of memcmp and dataSize.")
    if len(listed) > MOST_FILTERS:
        raise RpcError(INVALID, f"Too many filters provided; max {MOST_FILTERS}")
    found = [_filter(one) for one in listed]
    if program in (TOKEN, TOKEN_2022) and not _has_index(program, found):
        raise RpcError(
            -32010, f"{program} excluded from account secondary indexes; this RPC method unavailable for key"
        )
    return found


def _filter(one: dict[str, Any]) -> tuple[int | None, bytes | int]:
    ((kind, value),) = one.items()
    if kind == "dataSize" and is_u64(value):
        return None, value
    if kind == "memcmp" and isinstance(value, dict):
        offset, text = value.get("offset"), value.get("bytes")
        if isinstance(text, str) and len(text) > MOST_FILTER_LETTERS:
            raise RpcError(INVALID, "Invalid param: data too large")
        content = decoded(text) if isinstance(text, str) and value.get("encoding", "base58") == "base58" else None
        if is_u64(offset) and content:
            return offset, content
    raise RpcError(INVALID, "Invalid params: a filter is memcmp with offset and bytes in base58, or dataSize.")


def _has_index(program: str, filters: Sequence[tuple[int | None, bytes | int]]) -> bool:
    """Return whether the filters select token accounts by their mint or their owner."""
    accounts = (None, ACCOUNT_SIZE) in filters
    accounts = accounts or (program == TOKEN_2022 and (ACCOUNT_SIZE, bytes([ACCOUNT_TYPE])) in filters)
    return accounts and any(at in INDEXED and isinstance(one, bytes) and len(one) == 32 for at, one in filters)


def passes(content: bytes, filters: Sequence[tuple[int | None, bytes | int]]) -> bool:
    """Return whether an account matches all filters."""
    return all(
        len(content) == wanted if isinstance(wanted, int) else content[at or 0 :].startswith(wanted)
        for at, wanted in filters
    )
