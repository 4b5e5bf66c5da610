"""Accounts as bytes: the layouts of mints and token accounts, and the filters and slices of getProgramAccounts.

See docs/facts.md#solana-coins.
"""

from base64 import b64encode
from collections.abc import Sequence, Set
from typing import Any

from sandbox.base.people import base58
from sandbox.solana.coins import TOKEN, TOKEN_2022, SplCoin
from sandbox.solana.keys import decoded, is_address

MOST_FILTERS, MOST_FILTER_BYTES, MOST_BASE58 = 4, 128, 128
INDEXED = (0, 32)
"""The offsets of the mint and the owner in a token account; nodes have an index of these two alone."""
ACCOUNT_SIZE, EXTENDED_SIZE, MINT_SIZE = 165, 170, 82
"""Bytes. A Token-2022 account that was made for a wallet has one extension: its owner cannot change."""
ACCOUNT_TYPE = 2
WRAPPED_SOL = "So11111111111111111111111111111111111111112"
SCANS_A_SECOND = 5
"""How many getProgramAccounts a plan answers each second, beside its other calls, when the sandbox is strict."""


class FilterRefused(Exception):
    """A node's refusal of filters or an encoding, with its JSON-RPC code."""

    def __init__(self, message: str, code: int = -32602) -> None:
        super().__init__(message)
        self.code = code


def mint_bytes(coin: SplCoin, authority: str, supply: int) -> bytes:
    """Return a coin's mint: its authority, the supply, the decimals, and no freeze authority."""
    has_authority = (1).to_bytes(4, "little") + (decoded(authority) or b"")
    return has_authority + supply.to_bytes(8, "little") + bytes([coin.decimals, 1]) + bytes(36)


def account_bytes(mint: str, owner: str, units: int, program: str, *, frozen: bool = False) -> bytes:
    """Return a token account: mint, owner, amount, no delegate, its state."""
    start = (decoded(mint) or b"") + (decoded(owner) or b"") + units.to_bytes(8, "little")
    plain = start + bytes(36) + bytes([2 if frozen else 1]) + bytes(12 + 8 + 36)
    return plain + bytes([ACCOUNT_TYPE, 7, 0, 0, 0]) if program == TOKEN_2022 else plain


def shown(content: bytes, config: dict[str, Any], program: str, lamports: int) -> dict[str, Any]:
    """Return an account with its data in the requested encoding and slice. Raises FilterRefused."""
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
    bounds = [part.get(name, -1) if isinstance(part, dict) else -1 for name in ("offset", "length")]
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in bounds):
        raise FilterRefused("Invalid params: dataSlice is an offset and a length.")
    return content[bounds[0] : sum(bounds)]


def _encoded(content: bytes, encoding: Any) -> Any:
    if encoding == "base64":
        return [b64encode(content).decode(), "base64"]
    if encoding in (None, "base58", "binary"):
        if len(content) > MOST_BASE58:
            raise FilterRefused(
                "Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.", -32600
            )
        text = base58(content) if content else ""
        return [text, "base58"] if encoding == "base58" else text
    raise FilterRefused(f"Invalid params: unknown variant `{encoding}`, expected a known encoding.")


def mint_or_program(asked: Any, mints: Set[str]) -> tuple[str | None, str | None]:
    """Return the mint or the token program for which an owner's token accounts are asked. Raises FilterRefused.

    `mints` are the addresses of all mints but that of wrapped SOL, which every node knows.
    """
    [(kind, address)] = asked.items() if isinstance(asked, dict) and len(asked) == 1 else [("", None)]
    if kind not in ("mint", "programId"):
        raise FilterRefused("Invalid params: either `mint` or `programId` is expected.")
    if not isinstance(address, str) or not is_address(address):
        raise FilterRefused("Invalid param: Invalid")
    if kind == "programId" and address not in (TOKEN, TOKEN_2022):
        raise FilterRefused("Invalid param: unrecognized Token program id")
    if kind == "mint" and address != WRAPPED_SOL and address not in mints:
        raise FilterRefused("Invalid param: could not find mint")
    return (address, None) if kind == "mint" else (None, address)


def filters_of(program: str, given: Any) -> list[tuple[int | None, bytes | int]]:
    """Return each filter as an offset and the bytes there, or as None and a size.

    Raises FilterRefused for what a node does not take. For the token programs this includes what no index answers,
    since such a scan goes through hundreds of millions of accounts.
    """
    listed = [] if given is None else given
    if not isinstance(listed, list) or not all(isinstance(one, dict) and len(one) == 1 for one in listed):
        raise FilterRefused("Invalid params: filters is a list of memcmp and dataSize.")
    if len(listed) > MOST_FILTERS:
        raise FilterRefused(f"Too many filters provided; max {MOST_FILTERS}")
    found = [_filter(one) for one in listed]
    if program in (TOKEN, TOKEN_2022) and not _has_index(program, found):
        raise FilterRefused(
            f"{program} excluded from account secondary indexes; this RPC method unavailable for key", -32010
        )
    return found


def _filter(one: dict[str, Any]) -> tuple[int | None, bytes | int]:
    ((kind, value),) = one.items()
    if kind == "dataSize" and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return None, value
    if kind == "memcmp" and isinstance(value, dict):
        offset, text = value.get("offset"), value.get("bytes")
        content = decoded(text) if isinstance(text, str) and value.get("encoding", "base58") == "base58" else None
        if isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0 and content:
            if len(content) > MOST_FILTER_BYTES:
                raise FilterRefused("Invalid param: data too large")
            return offset, content
    raise FilterRefused("Invalid params: a filter is memcmp with offset and bytes in base58, or dataSize.")


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
