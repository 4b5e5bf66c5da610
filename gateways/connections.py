"""What all our HTTP clients share: one TLS context, since making one takes tens of milliseconds."""

import ssl
from functools import cache

import httpx


@cache
def tls() -> ssl.SSLContext:
    """The usual certificates, checked."""
    return httpx.create_ssl_context()
