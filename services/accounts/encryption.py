"""Encryption of stored secrets (the tokens that Discord granted, the secrets of webhooks), and keyed digests."""

import base64
import hmac
import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from settings import ROOT, settings

_PURPOSE = b"tokens of an OAuth grant, version 1"
_DIGESTS = b"digests of people whose data was deleted, version 1"


class UnreadableToken(Exception):
    """The stored text was sealed with a key that this process does not have."""


def seal(text: str) -> bytes:
    """Return the text encrypted and authenticated with the present key."""
    return _keys().encrypt(text.encode())


def unseal(sealed: bytes) -> str:
    """Return the text sealed under the present key or the previous one. Raises UnreadableToken."""
    try:
        return _keys().decrypt(sealed).decode()
    except InvalidToken:
        raise UnreadableToken("Sealed with another key: was SECRET_KEY changed without SECRET_KEY_PREVIOUS?") from None


def seal_again(sealed: bytes) -> bytes | None:
    """Return the text sealed with the present key if the previous one had sealed it; None if nothing has to change."""
    present, *others = _each_key()
    with suppress(InvalidToken):
        present.decrypt(sealed)
        return None
    for other in others:
        with suppress(InvalidToken):
            return present.encrypt(other.decrypt(sealed))
    return None


def digests(text: str) -> list[str]:
    """Return digests of the text that nobody can compute without a key: by the present one, then by the previous."""
    return [hmac.digest(_derived(secret, _DIGESTS), text.encode(), "sha256").hex() for secret in _secrets()]


def _keys() -> MultiFernet:
    return MultiFernet(_each_key())


def _each_key() -> list[Fernet]:
    """Return the keys in force; the first one seals."""
    return [Fernet(base64.urlsafe_b64encode(_derived(text, _PURPOSE))) for text in _secrets()]


def _secrets() -> list[str]:
    """Return the texts that the operator chose: the present one, then the previous one if there is one."""
    present, previous = settings().secret_key, settings().secret_key_previous
    first = present.get_secret_value() if present is not None else _sandbox_key(ROOT / settings().data_dir)
    return [first] if previous is None else [first, previous.get_secret_value()]


@cache
def _derived(text: str, purpose: bytes) -> bytes:
    """Derive a key from the text that the operator chose."""
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(text.encode())


@cache
def _sandbox_key(data: Path) -> str:
    """Return the sandbox's random key, made once beside its data and readable only by its owner.

    Only reached in sandbox mode: settings refuse a live start without SECRET_KEY.
    """
    path = data / "sandbox" / "secret.key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_once(path, secrets.token_urlsafe(32))
    return path.read_text().strip()


def _write_once(path: Path, text: str) -> None:
    """Write the file atomically and once, even if several processes start together."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first, and its key is as good
    finally:
        draft.unlink()
