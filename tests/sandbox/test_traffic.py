"""The request log: complete, in order, and preserved after a kill."""

from pathlib import Path

from sandbox.base import traffic
from sandbox.base.traffic import Traffic


def kept(path: Path) -> Traffic:
    log = Traffic()
    log.keep_in(path)
    return log


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    first = kept(tmp_path / "requests.jsonl")
    first.note("discord", "PUT", "/a", 204)
    waiting = first.note("rpc:base", "POST", "/rpc/base", 0, "eth_call")
    first.answered(waiting, 200, 7)
    second = kept(tmp_path / "requests.jsonl")
    second.note("discord", "GET", "/b", 200)
    seen = second.since(0)["requests"]
    assert [(note["n"], note["path"], note["status"], note["bytes"]) for note in seen] == [
        (1, "/a", 204, 0), (2, "/rpc/base", 200, 7), (3, "/b", 200, 0),
    ]  # fmt: skip
    assert [note["n"] for note in second.since(3)["requests"]] == [3]
    assert second.since(4) == {"next": 4, "requests": []}
    assert second.newest(2) == [seen[2], seen[1]]


def test_the_log_stays_bounded_in_memory_and_on_disk(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(traffic, "KEPT", 10)
    log = kept(tmp_path / "requests.jsonl")
    log._notes = type(log._notes)(maxlen=10)
    for number in range(100):
        log.note("discord", "GET", f"/{number}", 200)
    assert [note["n"] for note in log.since(0)["requests"]] == list(range(91, 101))
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) <= 31


def test_secrets_in_addresses_are_not_kept(tmp_path: Path) -> None:
    log = kept(tmp_path / "requests.jsonl")
    log.note("discord", "GET", "/oauth2?code=abc&state=def&x=1", 200)
    assert "abc" not in (tmp_path / "requests.jsonl").read_text()
    assert log.since(0)["requests"][0]["path"] == "/oauth2?code=…&state=…&x=1"
