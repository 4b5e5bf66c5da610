"""The animation in the README is one that browsers show, and small enough for a page."""

import struct
from collections.abc import Iterator
from itertools import pairwise

from docs.pictures.draw_demo import BAR, HEIGHT, MADE, MOST_BYTES, WIDTH, animated


def chunks(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the names and contents of the chunks in a RIFF body."""
    at = 0
    while at < len(body):
        name, length = struct.unpack_from("<4sI", body, at)
        yield name, body[at + 8 : at + 8 + length]
        at += 8 + length + length % 2
    assert at == len(body)


def still(pixels: bytes) -> bytes:
    """Return a WebP of one picture, with a chunk before its pixels that an animation leaves out."""
    body = b"WEBP" + b"ICCP" + struct.pack("<I", 3) + b"abc\0" + b"VP8 " + struct.pack("<I", len(pixels)) + pixels
    body += b"\0" * (len(pixels) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def test_pictures_become_frames_of_one_animation_that_repeats() -> None:
    file = animated([still(b"first"), still(b"second")], [500, 70_000], 300, 2)
    assert struct.unpack_from("<4sI4s", file) == (b"RIFF", len(file) - 8, b"WEBP")
    (head, header), (loop, looping), *frames = chunks(file[12:])
    assert (head, header[0], header[4:]) == (b"VP8X", 2, b"\x2b\x01\x00\x01\x00\x00")
    assert (loop, looping[4:]) == (b"ANIM", b"\x00\x00")
    assert [name for name, _ in frames] == [b"ANMF", b"ANMF"]
    assert [int.from_bytes(frame[12:15], "little") for _, frame in frames] == [500, 70_000]
    assert [list(chunks(frame[16:])) for _, frame in frames] == [[(b"VP8 ", b"first")], [(b"VP8 ", b"second")]]


def test_the_picture_in_the_readme_is_a_film_of_a_few_hundred_kilobytes() -> None:
    film = MADE.read_bytes()
    assert len(film) <= MOST_BYTES
    (_, header), _, *frames = chunks(film[12:])
    assert int.from_bytes(header[4:7], "little") + 1 == WIDTH
    assert int.from_bytes(header[7:10], "little") + 1 == HEIGHT + BAR
    assert len(frames) > 5
    assert all(one != other for one, other in pairwise(frames))
