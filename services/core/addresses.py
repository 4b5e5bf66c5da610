"""Parse wallet and contract addresses as people write them, and normalise them."""

import re

from eth_utils.address import is_checksum_address

from gateways.transport import base58
from locales import _

EVM_LENGTH = 42
SOLANA_SHORTEST, SOLANA_LONGEST = 32, 44
LONGEST_LINK = 500


_SPACES = "".join(one for one in map(chr, range(0x3001)) if one.isspace())
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
"""Marks of the direction of text, joiners, and spaces without a width."""


class AddressRefused(Exception):
    """The text is not a usable address; the message says what is wrong with it."""


def pasted(text: str) -> str:
    """Return the text without the spaces and invisible characters around it, which chat apps add to what is copied."""
    return text.strip(_SPACES + _INVISIBLE)


def parse(text: str) -> tuple[str, str]:
    """Return `(family, address)` of a wallet: `evm` in lower case or `solana` as given. Raises AddressRefused."""
    given = pasted(text)
    if given[:2].lower() == "0x":
        return "evm", parse_evm(given)
    if "." in given and re.fullmatch(r"[^\s/]+\.[^\s/.]+", given):
        raise AddressRefused(
            _("{given} is a name. Names cannot be looked up here: paste the address (0x…) instead.").format(
                given=given[:80]
            )
        )
    if is_solana(given):
        return "solana", given
    raise AddressRefused(
        _("That is not a wallet address. Paste one that starts with 0x and has 42 characters, or a Solana address.")
    )


def parse_evm(text: str) -> str:
    """Return an EVM address in lower case; mixed case must have a valid checksum (EIP-55). Raises AddressRefused."""
    given = pasted(text)
    if not re.fullmatch(r"0[xX][0-9a-fA-F]{40}", given):
        raise AddressRefused(
            _("An address that starts with 0x has {length} characters: 0x and 40 of 0-9 and a-f.").format(
                length=EVM_LENGTH
            )
        )
    digits = given[2:]
    mixed = digits != digits.lower() and digits != digits.upper()
    if mixed and not is_checksum_address("0x" + digits):
        raise AddressRefused(_("The capital letters of this address don't fit: check it for a mistyped character."))
    return "0x" + digits.lower()


def is_solana(text: str) -> bool:
    """Return whether the text is the base58 form of exactly 32 bytes."""
    return base58.is_address(text)


def is_whole(text: str) -> bool:
    """Return whether the text is as long as an address, valid or not; shorter ones are still being typed."""
    given = pasted(text)
    if given[:2].lower() == "0x":
        return len(given) >= EVM_LENGTH
    return is_solana(given) or len(given) > SOLANA_LONGEST


def solana_signature(text: str) -> str | None:
    """Return the transaction signature (64 bytes in base58) in a pasted text or explorer link, or None."""
    parts = re.findall(r"[1-9A-HJ-NP-Za-km-z]{64,}", text[:LONGEST_LINK])
    return next((part for part in parts if base58.is_signature(part)), None)


def shorten(address: str) -> str:
    """Return the first 6 and the last 4 characters."""
    return f"{address[:6]}...{address[-4:]}"
