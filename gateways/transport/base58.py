"""Base58 with Bitcoin's alphabet, which Solana uses for addresses and signatures (docs/facts.md#solana-addresses)."""

from collections.abc import Sequence

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
ADDRESS_BYTES, SIGNATURE_BYTES = 32, 64
ADDRESS_LONGEST, SIGNATURE_LONGEST = 44, 88
LONGEST = 2_000
"""Characters of a text that is decoded: more than a whole transaction has. Decoding takes the square of the length."""
_PLACES = {letter: place for place, letter in enumerate(ALPHABET)}


def decode(text: str) -> bytes | None:
    """Return the bytes that a text encodes; None when it is too long or has a character outside this alphabet."""
    if len(text) > LONGEST:
        return None
    number = 0
    for letter in text:
        place = _PLACES.get(letter)
        if place is None:
            return None
        number = number * 58 + place
    zeros = len(text) - len(text.lstrip(ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def encode(content: bytes) -> str:
    """Return the bytes encoded in this alphabet."""
    number, digits = int.from_bytes(content, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        digits = ALPHABET[digit] + digits
    return ALPHABET[0] * (len(content) - len(content.lstrip(b"\0"))) + digits


def is_address(text: str) -> bool:
    """Return whether the text encodes exactly 32 bytes."""
    return len(text) <= ADDRESS_LONGEST and len(decode(text) or b"") == ADDRESS_BYTES


def is_signature(text: str) -> bool:
    """Return whether the text encodes exactly 64 bytes."""
    return len(text) <= SIGNATURE_LONGEST and len(decode(text) or b"") == SIGNATURE_BYTES


def addresses(texts: Sequence[str]) -> list[str]:
    """Return the addresses without repetition. Raises ValueError for a text that is not an address."""
    for text in texts:
        if not is_address(text):
            raise ValueError(f"{text[:50]!r} is not a Solana address")
    return list(dict.fromkeys(texts))
