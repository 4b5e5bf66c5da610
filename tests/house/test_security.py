"""The product's defences stay in place: only listed modules fetch anything, and every promise has a test."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.rules import Module
from tests.house.test_rules import ROOT, product

# Each requests only addresses that an operator set; links chosen by strangers go through `safe_fetch` alone.
FETCHERS = {
    "gateways/discord/rest.py": "Discord's REST API",
    "gateways/discord/oauth.py": "Discord's sign-in",
    "gateways/marketplaces/client.py": "the marketplaces' APIs",
    "gateways/evm/rpc/node.py": "the nodes",
    "gateways/transport/safe_fetch.py": "links that strangers chose",
    # Checks whether a process on this machine listens yet.
    "app/supervisor/probe.py": "this machine",
    "app/supervisor/child_process.py": "this machine",
}
CLIENTS = frozenset(
    {
        "AsyncClient", "Client", "ClientSession", "AsyncConnectionPool", "ConnectionPool", "AsyncHTTPTransport",
        "HTTPTransport", "HTTPConnection", "HTTPSConnection", "urlopen", "urlretrieve", "open_connection",
        "create_connection", "AsyncOAuth2Client", "AsyncHTTPProvider", "HTTPProvider",
    }
)  # fmt: skip
LIBRARIES = frozenset({"httpx", "httpcore", "requests", "urllib.request", "http.client", "aiohttp", "socket"})
VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "request", "stream"})
ROW = re.compile(r"^\|(?!\s*-|\s*Threat)(.*)\|(.*)\|(.*)\|$", re.M)
TEST = re.compile(r"`tests/[\w/]+\.py(?:::test_\w+)?`")


def fetches(module: Module) -> Iterator[str]:
    """Yield each call that creates a client, sends a request without one, or follows redirects."""
    if module.room == "sandbox":
        return
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        owner, _, name = called.rpartition(".")
        plain = name in CLIENTS or (owner in LIBRARIES and name in VERBS)
        if plain and module.path not in FETCHERS:
            yield f"{module.path}:{node.lineno} fetches by {called}"
        follows = [word for word in node.keywords if word.arg in {"follow_redirects", "allow_redirects"}]
        if any(not (isinstance(word.value, ast.Constant) and word.value.value is False) for word in follows):
            yield f"{module.path}:{node.lineno} follows redirects"
        if called == "httpx.AsyncClient" and not follows:
            yield f"{module.path}:{node.lineno} does not say that it follows no redirects"


def promises_without_a_test(page: str) -> Iterator[str]:
    """Yield the rows of a page's tables that name no test."""
    for threat, _, shown_by in ROW.findall(page):
        if TEST.search(shown_by) is None:
            yield threat.strip()


def test_only_one_client_follows_what_strangers_chose() -> None:
    assert [breach for module in product() for breach in fetches(module)] == []


def test_every_fetcher_that_is_named_is_there() -> None:
    assert [path for path in FETCHERS if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("path", "bad"),
    [
        ("services/metadata.py", "import httpx\nhttpx.get(url)"),
        ("gateways/evm/ens.py", "client = httpx.AsyncClient(follow_redirects=False)"),
        ("gateways/evm/ens.py", "from urllib.request import urlopen\nurlopen(url)"),
        ("gateways/evm/ens.py", "async with ClientSession() as session: pass"),
        ("state/server/rules.py", "reader, writer = await asyncio.open_connection(host, 80)"),
        ("gateways/evm/rpc/node.py", "client = httpx.AsyncClient(follow_redirects=True)"),
        ("gateways/evm/rpc/node.py", "client = httpx.AsyncClient()"),
        ("gateways/evm/rpc/node.py", "await client.get(url, follow_redirects=wanted)"),
    ],
)
def test_another_way_out_is_seen(path: str, bad: str) -> None:
    assert list(fetches(Module(path, bad)))


@pytest.mark.parametrize(
    ("path", "good"),
    [
        ("gateways/metadata.py", "await self._fetching.get(link)"),
        ("gateways/evm/rpc/node.py", "client = httpx.AsyncClient(follow_redirects=False)"),
        ("sandbox/server.py", "async with ClientSession() as session: pass"),
    ],
)
def test_what_is_guarded_is_no_breach(path: str, good: str) -> None:
    assert list(fetches(Module(path, good))) == []


@pytest.mark.parametrize("process", ["app/app.py", "bot/__main__.py", "jobs/__main__.py"])
def test_every_process_blacks_secrets_out_of_its_log_from_the_start(process: str) -> None:
    calls = [
        ast.unparse(node) for node in ast.walk(ast.parse((ROOT / process).read_text())) if isinstance(node, ast.Call)
    ]
    assert "logs.set_up()" in calls


def test_every_promise_about_safety_names_a_test() -> None:
    assert list(promises_without_a_test((ROOT / "docs" / "security.md").read_text())) == []


def test_a_promise_without_a_test_is_seen() -> None:
    table = "| Threat | What stops it | Shown by |\n|---|---|---|\n| A | b | none |\n| C | d | `tests/a.py::test_b` |\n"
    assert list(promises_without_a_test(table)) == ["A"]


# Functions that turn a text into markup or a program in the browser.
INTERPRETERS = frozenset({"html", "markdown", "script", "call_script", "iframe"})


def interprets(module: Module) -> Iterator[str]:
    """Yield each place where a screen could interpret a person's text as markup or a program."""
    for node in module.nodes:
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            owner, _, name = called.rpartition(".")
            if owner in {"rx", "rx.el"} and name in INTERPRETERS:
                yield f"{module.path}:{node.lineno} calls {called}"
            if any(word.arg == "dangerously_set_inner_html" for word in node.keywords):
                yield f"{module.path}:{node.lineno} sets inner HTML"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "innerHTML" in node.value:
            yield f"{module.path}:{node.lineno} sets inner HTML"


def test_no_screen_reads_words_as_markup_or_a_program() -> None:
    assert [breach for module in product() for breach in interprets(module)] == []


@pytest.mark.parametrize(
    "bad",
    ["rx.html(State.name)", "rx.markdown(State.bio)", "rx.el.script(State.name)", "rx.call_script(f'x({name})')",
     "rx.el.div(dangerously_set_inner_html={'__html': State.name})", "rx.Var('node.innerHTML = name')"],
)  # fmt: skip
def test_a_screen_that_interprets_is_seen(bad: str) -> None:
    assert list(interprets(Module("components/pages/server/members.py", bad)))
