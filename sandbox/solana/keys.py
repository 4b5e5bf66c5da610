"""Solana's addresses and signatures: reading and writing base58, and values derived from a text."""

from hashlib import sha256, sha512

from sandbox.base.people import BASE58, base58


def decoded(text: str) -> bytes | None:
    """Return the bytes that a base58 text stands for; None when it is not base58."""
    if not text or any(letter not in BASE58 for letter in text):
        return None
    number = 0
    for letter in text:
        number = number * 58 + BASE58.index(letter)
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def is_address(text: str) -> bool:
    """Return whether the text is 32 bytes in base58."""
    return len(text) <= 44 and len(decoded(text) or b"") == 32


def is_signature(text: str) -> bool:
    """Return whether the text is 64 bytes in base58."""
    return len(text) <= 88 and len(decoded(text) or b"") == 64


def address_of(text: str) -> str:
    """Return the address derived from a text, the same in every world."""
    return base58(sha256(f"sandbox solana {text}".encode()).digest())


def signature_of(text: str) -> str:
    """Return the signature derived from a text."""
    return base58(sha512(f"sandbox solana {text}".encode()).digest())
