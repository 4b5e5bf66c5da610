"""Transport compression of the gateway: one stream for a whole connection, flushed after each frame."""

import struct
import zlib
from typing import Protocol

ZLIB, ZSTD = "zlib-stream", "zstd-stream"
KINDS = (ZLIB, ZSTD)

_MAGIC = 0xFD2FB528
_LARGEST_BLOCK = 1 << 17
_WINDOW_OF_128_KIB = 7 << 3


class Packer(Protocol):
    """A stream to one client."""

    def pack(self, text: str) -> bytes:
        """Return the next piece of the stream, from which the client can read all of the text."""
        ...


def packer(kind: str) -> Packer | None:
    """Return a new stream of this kind; None for plain text."""
    return {ZLIB: Zlib, ZSTD: Zstd}[kind]() if kind in KINDS else None


class Zlib:
    """`zlib-stream`: each piece ends with a sync flush."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj()

    def pack(self, text: str) -> bytes:
        """Return the text, compressed and flushed."""
        return self._deflate.compress(text.encode()) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


class Zstd:
    """`zstd-stream`: one endless frame of raw blocks (RFC 8878 §3.1.1), which saves no bytes and needs no library."""

    def __init__(self) -> None:
        self._begun = False

    def pack(self, text: str) -> bytes:
        """Return blocks that end with the text; the first piece begins with the frame's header."""
        data = text.encode()
        blocks = [_block(data[at : at + _LARGEST_BLOCK]) for at in range(0, len(data), _LARGEST_BLOCK)]
        # The header has no checksum, dictionary or content size, so only a window follows its descriptor.
        header = b"" if self._begun else struct.pack("<IBB", _MAGIC, 0, _WINDOW_OF_128_KIB)
        self._begun = True
        return header + b"".join(blocks)


def _block(data: bytes) -> bytes:
    """Return a raw block that is not the last: its size above three zero bits, then the data."""
    return struct.pack("<I", len(data) << 3)[:3] + data
