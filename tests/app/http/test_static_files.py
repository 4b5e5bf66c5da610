"""The only built chunk that contains an address, and the build itself."""

import os
import threading
from pathlib import Path

import pytest

from app import build
from app.http.static_files import BUILT, BuiltAddressMissing, with_page_url
from app.supervisor.single_instance import Lock, Running
from settings import settings


def test_the_built_chunk_learns_the_pages_own_origin() -> None:
    build.ensure_built(lambda _: None)
    (chunk,) = (BUILT / "assets").glob("reflex-env-*.js")
    told = with_page_url(chunk.read_text())
    assert "localhost:3000" not in told
    assert '(location.origin.replace(/^http/,"ws")+"/_event")' in told
    assert '(location.origin+"/ping")' in told


def test_a_chunk_without_the_built_address_is_noticed() -> None:
    with pytest.raises(BuiltAddressMissing):
        with_page_url('var e={EVENT:"wss://elsewhere/_event"};')


def test_what_is_built_is_not_built_again() -> None:
    build.ensure_built(lambda _: None)
    said: list[str] = []
    assert build.ensure_built(said.append) is False
    assert said == []


def test_an_operators_own_name_asks_for_another_build(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.fingerprint()
    renamed = settings().model_copy(update={"product_name": "Anchor"})
    monkeypatch.setattr(build, "settings", lambda: renamed)
    assert build.fingerprint() != before


def test_another_port_needs_no_other_build(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.fingerprint()
    moved = settings().model_copy(update={"port": 4000, "public_url": "http://localhost:4000"})
    monkeypatch.setattr(build, "settings", lambda: moved)
    assert build.fingerprint() == before


def test_of_two_that_start_at_once_one_builds(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("build")
    index = directory / "index.html"
    built: list[int] = []

    def slow_build(say: build.Say) -> None:
        built.append(1)
        index.write_text("<html>")

    monkeypatch.setattr(build, "STAMP", directory / "stamp")
    monkeypatch.setattr(build, "INDEX", index)
    monkeypatch.setattr(build, "LOCK", directory / "lock")
    monkeypatch.setattr(build, "_build", slow_build)
    threads = [threading.Thread(target=build.ensure_built, args=(lambda _: None,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, short_dir: Path) -> Path:
    """The first page of screens that a build writes, which are not there yet."""
    index = short_dir / "index.html"
    monkeypatch.setattr(build, "STAMP", short_dir / "stamp")
    monkeypatch.setattr(build, "INDEX", index)
    monkeypatch.setattr(build, "LOCK", short_dir / "lock")
    monkeypatch.setattr(build, "_build", lambda say: index.write_text("<html>"))
    return index


def test_a_build_that_somebody_else_replaced_is_made_again(index: Path) -> None:
    assert build.ensure_built(print)
    assert not build.ensure_built(print)
    index.write_text("<html hot reload>")
    assert build.ensure_built(print)


def test_nothing_is_built_under_a_product_that_serves_the_screens(
    monkeypatch: pytest.MonkeyPatch, short_dir: Path, index: Path
) -> None:
    """`make test`, `make bench` and `make wheel` replaced the screens of the product that ran in the same folder."""
    monkeypatch.setattr(build, "settings", lambda: settings().model_copy(update={"data_dir": short_dir}))
    lock = Lock(short_dir)
    lock.take(Running(os.getpid(), "an update"))
    assert build.ensure_built(print)
    index.write_text("<html of a former version>")
    lock.say(Running(os.getpid(), "http://localhost:3000"))
    with pytest.raises(build.BuildFailed, match=rf"at http://localhost:3000 \(process {os.getpid()}\)\. Stop it first"):
        build.ensure_built(print)
    assert index.read_text() == "<html of a former version>"
    lock.release()
    assert build.ensure_built(print)
    lock.take(Running(os.getpid(), "http://localhost:3000"))
    assert not build.ensure_built(print), "what is up to date needs no build"
    lock.release()


@pytest.mark.usefixtures("index")
def test_screens_are_built_beside_a_product_without_a_web_process(
    monkeypatch: pytest.MonkeyPatch, short_dir: Path
) -> None:
    """Beside `python -m app --without-web`, the web alone and `python -m app.build` build them."""
    monkeypatch.setattr(build, "settings", lambda: settings().model_copy(update={"data_dir": short_dir}))
    lock = Lock(short_dir)
    lock.take(Running(os.getpid(), "http://localhost:3000", has_web=False))
    assert build.ensure_built(print)
    lock.release()


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("fault", [PermissionError, OSError], ids=["of another account", "unreadable"])
def test_a_data_directory_that_cannot_be_opened_keeps_nobody_from_building(
    fault: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make wheel` needs no data, and `DATA_DIR` may belong to the account of the service."""

    def refuse(_: Path) -> None:
        raise fault

    monkeypatch.setattr(build, "running", refuse)
    assert build.ensure_built(print)


def test_what_is_committed_is_what_npm_writes_so_that_no_build_changes_it() -> None:
    build.ensure_built(lambda _: None)
    made, kept = build.ROOT / ".web" / "package.json", build.PACKAGES
    # With any of its commands, Reflex copies one file over the other when it checks the packages.
    assert made.read_text() == kept.read_text()


def test_a_build_that_is_stopped_puts_the_list_of_packages_back(tmp_path: Path) -> None:
    listed = tmp_path / "package.json"
    listed.write_text('{"a": 1, "b": 2}')

    def stopped() -> None:
        with build._unsettled(listed):
            listed.write_text('{"b":2,"a":1}')
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert listed.read_text() == '{"a": 1, "b": 2}'
    with build._unsettled(listed):
        listed.write_text('{"a": 1, "b": 3}')
    assert listed.read_text() == '{"a": 1, "b": 3}'
