"""Encryption of stored secrets: the tokens that Discord granted, and the secrets of webhooks."""

import base64
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


def forget_keys() -> None:
    """Read the keys again next time, after the settings changed."""
    _each_key.cache_clear()


def _keys() -> MultiFernet:
    return MultiFernet(_each_key())


@cache
def _each_key() -> tuple[Fernet, ...]:
    """Return the keys in force; the first one seals."""
    present, previous = settings().secret_key, settings().secret_key_previous
    first = present.get_secret_value() if present is not None else _sandbox_key()
    texts = [first] if previous is None else [first, previous.get_secret_value()]
    return tuple(Fernet(_derived(text)) for text in texts)


def _derived(text: str) -> bytes:
    """Derive a Fernet key from the text that the operator chose."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(text.encode())
    return base64.urlsafe_b64encode(key)


def _sandbox_key() -> str:
    """Return the sandbox's random key, made once beside its data and readable only by its owner.

    Only reached in sandbox mode: settings refuse a live start without SECRET_KEY.
    """
    path = ROOT / settings().data_dir / "sandbox" / "secret.key"
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
