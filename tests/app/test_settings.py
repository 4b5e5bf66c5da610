"""Settings: the environment overrides `.env`, and a half-configured set is refused."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import settings as module
from gateways.chains.catalogue import CHAINS
from settings import ROOT, SettingsError, load, settings

LIVE = {"DISCORD_CLIENT_ID": "1", "DISCORD_CLIENT_SECRET": "s", "DISCORD_BOT_TOKEN": "t", "SECRET_KEY": "k" * 40}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without our variables."""
    for name in (*LIVE, "SESSION_SECRET", "DATABASE_URL", "REDIS_URL", "PORT", "PUBLIC_URL", "SANDBOX_PORT"):
        monkeypatch.delenv(name, raising=False)


def live(monkeypatch: pytest.MonkeyPatch, **changed: str | None) -> None:
    """Set everything that a live start needs, with these changes."""
    for name, value in (LIVE | changed).items():
        if value is not None:
            monkeypatch.setenv(name, value)


def _copy_settings(to: Path) -> None:
    """Copy the modules of the settings, which read the `.env` beside them."""
    for name in ("settings.py", "setting_checks.py"):
        shutil.copy2(ROOT / name, to / name)


def test_without_credentials_it_is_the_sandbox():
    found = load()
    assert found.sandbox
    assert found.public_url == "http://localhost:3000"
    assert found.rpc["base"] == ("http://localhost:3210/rpc/base", "http://localhost:3210/rpc2/base")


def test_a_chain_that_the_sandbox_adds_has_its_nodes_there_unless_others_are_set(monkeypatch: pytest.MonkeyPatch):
    """The table of chains decides whether there is such a chain."""
    monkeypatch.setenv("SANDBOX_EXTRA_CHAINS", "ninth:424242, tenth:7")
    monkeypatch.setenv("RPC_TENTH", "https://a.example")
    nodes = load().rpc
    assert nodes["ninth"] == ("http://localhost:3210/rpc/ninth", "http://localhost:3210/rpc2/ninth")
    assert nodes["tenth"] == ("https://a.example",)
    evm = {key for key, chain in CHAINS.items() if chain.family == "evm"}
    assert nodes.keys() == {*evm, "solana", "ninth", "tenth"}


def test_equal_addresses_are_one_node(monkeypatch: pytest.MonkeyPatch):
    live(
        monkeypatch, RPC_BASE="https://a.example/key https://A.example:443/key/ https://a.example/KEY https://b.example"
    )
    found = load()
    assert found.rpc["base"] == ("https://a.example/key", "https://a.example/KEY", "https://b.example")
    assert found.rpc_repeated == {"base": 1}


def test_with_all_credentials_it_is_live(monkeypatch: pytest.MonkeyPatch):
    live(monkeypatch)
    assert not load().sandbox


@pytest.mark.parametrize(
    "given",
    [
        "HTTPS://Roles.Example.com", " https://roles.example.com ", "https://roles.example.com:443",
        "https://roles.example.com:0443", "https://roles.example.com:", "https://roles.example.com/",
    ],
)  # fmt: skip
def test_the_public_url_is_read_as_browsers_write_it(monkeypatch: pytest.MonkeyPatch, given: str):
    live(monkeypatch, PUBLIC_URL=given)
    found = load()
    assert found.https, "cookies would not be Secure"
    assert (found.public_url, found.public_host) == ("https://roles.example.com", "roles.example.com")


@pytest.mark.parametrize(
    ("given", "port"), [("http://[::1]:80", ""), ("http://[::1]:080/", ""), ("http://[::1]:8080", ":8080")]
)
def test_a_port_is_part_of_the_public_url_only_where_browsers_name_it(
    monkeypatch: pytest.MonkeyPatch, given: str, port: str
):
    monkeypatch.setenv("PUBLIC_URL", given)
    assert load().public_url == f"http://[::1]{port}"


@pytest.mark.parametrize(
    "given",
    [
        "https://münchen.example", "https://roles.example.com?a=1", "https://roles.example.com#a",
        "https://me:secret@roles.example.com", "https://roles.example.com:99999", "https://[::1",
        "https://roles .example.com", "https:///", "https://roles.example.com/a", "roles.example.com",
    ],
)  # fmt: skip
def test_a_public_url_that_no_browser_would_send_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, given: str):
    live(monkeypatch, PUBLIC_URL=given)
    with pytest.raises(SettingsError, match=r"^PUBLIC_URL must be http"):
        load()


@pytest.mark.parametrize("missing", ["DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET", "DISCORD_BOT_TOKEN"])
@pytest.mark.parametrize("value", [None, ""])
def test_half_set_credentials_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, missing: str, value: str | None):
    live(monkeypatch, **{missing: value})
    with pytest.raises(SettingsError, match=f"Missing: {missing}\\.$"):
        load()


@pytest.mark.parametrize("key", [None, "", "   "])
def test_a_live_start_needs_a_secret_key_that_is_not_empty(monkeypatch: pytest.MonkeyPatch, key: str | None):
    live(monkeypatch, SECRET_KEY=key)
    with pytest.raises(SettingsError, match="SECRET_KEY is missing"):
        load()


def test_the_session_secret_is_the_secret_key_by_its_other_name(monkeypatch: pytest.MonkeyPatch):
    live(monkeypatch, SECRET_KEY="", SESSION_SECRET="s" * 40)
    secret = load().secret_key
    assert secret is not None
    assert secret.get_secret_value() == "s" * 40


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch):
    for name in ("PORT", "DATABASE_URL", "REDIS_URL", "PUBLIC_URL", "SANDBOX_PORT", "SWEEP_SECONDS"):
        monkeypatch.setenv(name, "")
    found = load()
    assert (found.port, found.database_url, found.redis_url, found.sandbox_port) == (3000, None, None, 3210)
    assert found.public_url == "http://localhost:3000"


def test_a_value_of_the_wrong_kind_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWEEP_SECONDS", "daily")
    with pytest.raises(SettingsError, match=r"^SWEEP_SECONDS: ") as refused:
        load()
    assert "daily" not in str(refused.value)


@pytest.mark.parametrize("name", ["PORT", "SANDBOX_PORT"])
@pytest.mark.parametrize("port", ["0", "65536", "-1", "x"])
def test_a_port_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, port: str):
    monkeypatch.setenv(name, port)
    with pytest.raises(SettingsError, match=f"{name}: "):
        load()


def test_the_sandbox_is_never_served_under_a_public_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PUBLIC_URL", "https://holdfast.example")
    with pytest.raises(SettingsError, match="never serves beyond this machine"):
        load()


def test_the_file_counts_where_the_environment_says_nothing_or_is_empty(tmp_path: Path):
    """The settings module is copied, because `.env` lies beside it."""
    _copy_settings(tmp_path)
    (tmp_path / "sandbox").mkdir()
    (tmp_path / "sandbox" / "product.env").write_text((ROOT / "sandbox" / "product.env").read_text())
    (tmp_path / "gateways" / "chains").mkdir(parents=True)
    shutil.copy2(ROOT / "gateways" / "chains" / "chains.toml", tmp_path / "gateways" / "chains")

    def said(lines: str, **environment: str) -> str:
        (tmp_path / ".env").write_text(lines)
        show = (
            "import settings\n"
            "try: print('live', settings.load().discord_bot_token.get_secret_value(), settings.load().sandbox)\n"
            "except settings.SettingsError as fault: print(fault)"
        )
        return subprocess.run(
            [sys.executable, "-c", show], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    full = "".join(f"{name}={value}\n" for name, value in LIVE.items())
    assert said(full) == "live t False"
    assert said(full, DISCORD_BOT_TOKEN="") == "live t False"
    assert said(full, DISCORD_BOT_TOKEN="other") == "live other False"
    assert said("DISCORD_CLIENT_ID=1\n").endswith("Missing: DISCORD_CLIENT_SECRET, DISCORD_BOT_TOKEN.")
    assert said("# nothing\n").endswith("True")


def test_the_file_may_set_nodes_of_any_chain(tmp_path: Path) -> None:
    """The table of chains decides which keys are chains, so the settings keep all of them."""
    _copy_settings(tmp_path)
    lines = [f"{name}={value}" for name, value in LIVE.items()]
    lines += ["RPC_NINTH='https://a.example https://b.example' # two", "RPC_WS_NINTH=wss://c.example", "RPC_POLYGON="]
    lines += ["FOLLOW_SECONDS_NINTH=7", "RPC_BASE=https://d.example", "CHAINS_FILE=more.toml # ours"]
    (tmp_path / ".env").write_text("\n".join(lines))
    show = (
        "import settings\n"
        "found = settings.load()\n"
        "print(dict(sorted(found.rpc.items())), found.rpc_ws, found.follow_pace('ninth'), settings.chains_file().name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", show], cwd=tmp_path, env={"RPC_BASE": "https://e.example"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    nodes = {"base": ("https://e.example",), "ninth": ("https://a.example", "https://b.example")}
    assert done.stdout.strip() == f"{nodes} {{'ninth': 'wss://c.example'}} 7.0 more.toml"


@pytest.mark.parametrize("installed", [False, True])
def test_a_path_of_chains_starts_where_the_file_of_settings_is(tmp_path: Path, installed: bool) -> None:
    code, home = tmp_path / "product", tmp_path / "home"
    for made in (code, home):
        made.mkdir()
    _copy_settings(code)
    beside = home if installed else code
    (beside / ".env").write_text("CHAINS_FILE=more.toml\n")
    done = subprocess.run(
        [sys.executable, "-c", "import settings; print(settings.chains_file())"], cwd=code,
        env={"HOLDFAST_HOME": str(home)} if installed else {}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(beside / "more.toml")


def test_a_resolver_of_solanas_names_says_where_the_name_goes_and_is_trusted_up_to_there(
    monkeypatch: pytest.MonkeyPatch,
):
    live(monkeypatch)
    assert load().solana_names_url == ""
    monkeypatch.setenv("SOLANA_NAMES_URL", "http://resolver.lan:8080/resolve/{name}")
    assert "http://resolver.lan:8080/resolve/" in load().own_links
    monkeypatch.setenv("SOLANA_NAMES_URL", "http://resolver.lan:8080/resolve/")
    with pytest.raises(SettingsError, match="where the name goes"):
        load()


def test_strangers_links_lead_to_this_machine_only_beside_the_sandbox(monkeypatch: pytest.MonkeyPatch):
    beside = load()
    assert beside.sandbox_url in beside.own_links
    live(monkeypatch)
    assert load().own_links == ("https://ipfs.io/ipfs", "https://arweave.net")


def test_a_short_secret_key_is_refused_for_a_live_start(monkeypatch: pytest.MonkeyPatch) -> None:
    live(monkeypatch, SECRET_KEY="k" * 31)
    with pytest.raises(SettingsError, match="SECRET_KEY is too short"):
        load()
    live(monkeypatch, SECRET_KEY="k" * 32)
    assert load().bind == "127.0.0.1", "a live start serves this machine alone until BIND says otherwise"


@pytest.mark.parametrize("bind", ["everywhere", "localhost", "0.0.0.0:80"])
def test_what_is_no_interface_is_refused(monkeypatch: pytest.MonkeyPatch, bind: str) -> None:
    live(monkeypatch, BIND=bind)
    with pytest.raises(SettingsError, match="BIND takes the address"):
        load()


def test_each_chain_may_be_followed_at_a_pace_of_its_own_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    live(monkeypatch, FOLLOW_SECONDS="60", FOLLOW_SECONDS_ARBITRUM="0", FOLLOW_SECONDS_BASE="2.5")
    found = load()
    paces = {"ethereum": 60, "arbitrum": 0, "base": 2.5}
    assert {chain: found.follow_pace(chain) for chain in paces} == paces
    assert found.pause_between_looks("arbitrum") is None
    assert found.pause_between_looks("solana") == 60
    live(monkeypatch, FOLLOW_SECONDS_BASE="0.01")
    with pytest.raises(SettingsError, match=r"FOLLOW_SECONDS_BASE must be 0, or at least 0\.1 seconds"):
        load()


def test_blanks_and_line_breaks_around_a_value_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch):
    """A file that a secret is mounted from ends with a line break, and what is copied from a page with a blank."""
    live(
        monkeypatch,
        DISCORD_CLIENT_ID=" 123456789012345678\n", PORT=" 3111 ", BIND="0.0.0.0 ", MEMBERS_INTENT="off\r\n",
        MONITOR_TOKEN="sesame\n", DATABASE_URL="postgresql://localhost/holdfast\n", RPC_WS_BASE=" wss://a.example\n",
        OPENSEA_API_URL="https://os.example\n", SECRET_KEY="k" * 40 + "\n",
    )  # fmt: skip
    found, told = load(), module.environment()
    assert (found.discord_client_id, told["DISCORD_CLIENT_ID"]) == ("123456789012345678", "123456789012345678")
    assert (found.port, found.public_url, found.bind, found.members_intent) == (
        3111, "http://localhost:3111", "0.0.0.0", "off",
    )  # fmt: skip
    assert found.monitor_token is not None
    assert found.monitor_token.get_secret_value() == "sesame"
    assert (found.database_url, told["DATABASE_URL"]) == ("postgresql://localhost/holdfast",) * 2
    assert (found.rpc_ws["base"], found.opensea_api_url) == ("wss://a.example", "https://os.example")
    assert found.secret_key is not None
    # What it has encrypted stays readable.
    assert found.secret_key.get_secret_value() == told["SECRET_KEY"] == "k" * 40 + "\n"


@pytest.mark.parametrize("name", ["DISCORD_BOT_TOKEN", "SECRET_KEY"])
def test_a_value_of_blanks_alone_is_none(monkeypatch: pytest.MonkeyPatch, name: str):
    live(monkeypatch, **{name: " \n"})
    with pytest.raises(SettingsError, match=rf"Missing: {name}|{name} is missing"):
        load()
    monkeypatch.setenv(name, LIVE[name])
    monkeypatch.setenv("MONITOR_TOKEN", " ")
    assert load().monitor_token is None


def test_a_comment_after_a_quoted_value_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("PORT=\"3111\"  # behind Caddy\nCHAINS_FILE='chains.toml' # ours\n")
    monkeypatch.setattr(module, "ENV_FILE", file)
    for name in ("PORT", "CHAINS_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert module.environment()["PORT"] == "3111"
    assert module.chains_file() == tmp_path / "chains.toml"


@pytest.mark.parametrize(
    ("written", "line"),
    [("LOG_DAYS=7\nPRODUCT_NAME=Löwe\n".encode("latin-1"), 2), ("LOG_DAYS=7\n".encode("utf-16"), 1)],
)
def test_an_env_file_in_another_encoding_is_refused_by_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: bytes, line: int
) -> None:
    (tmp_path / ".env").write_bytes(written)
    monkeypatch.setattr(module, "ENV_FILE", tmp_path / ".env")
    with pytest.raises(SettingsError, match=rf"\.env is not UTF-8 text \(line {line}\)"):
        load()


@pytest.mark.parametrize("written", ["LOG_DAYS: 0", 'SECRET_KEY="s3cret', "BRAND='Bob's s3cret'"])
def test_a_line_of_the_env_file_that_cannot_be_read_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: str
) -> None:
    """It was left out, and the product ran with the default: the log of more than a year would be deleted."""
    (tmp_path / ".env").write_text(f"# ours\nexport PORT=3111\nALONE\n\n{written}\nBRAND_YEAR=2024\n")
    monkeypatch.setattr(module, "ENV_FILE", tmp_path / ".env")
    with pytest.raises(SettingsError, match=r"\.env has a line that is not NAME=value, .*\(line 5\)\.$") as refused:
        load()
    assert "s3cret" not in str(refused.value)


def test_an_env_file_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(_: Path) -> dict[str, str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "ENV_FILE", tmp_path / ".env")
    monkeypatch.setattr(module, "dotenv_values", refused)
    with pytest.raises(SettingsError, match=r"\.env cannot be read: Permission denied\.$"):
        load()


@pytest.mark.parametrize(
    ("name", "value"), [("LOG_DAYS", "99999999"), ("SWEEP_SECONDS", "99999999999999"), ("FOLLOW_SECONDS", "inf")]
)
def test_a_time_beyond_the_databases_calendar_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """`now() - 99999999 days` fails in PostgreSQL, so nothing expired would ever be deleted."""
    live(monkeypatch, **{name: value})
    with pytest.raises(SettingsError, match=f"^{name}: "):
        load()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("REDIS_URL", "localhost:6379"), ("REDIS_URL", "http://localhost:6379"), ("REDIS_URL", "redis://[me:s3cret@x"),
        ("DATABASE_URL", "mysql://me:s3cret@db/x"), ("DATABASE_URL", "host=db password=s3cret"),
        ("DATABASE_URL", "postgresql+asyncpg://me:s3cret@db/x"), ("DATABASE_URL", "postgresql://me@db:s3cret/x"),
        ("DATABASE_URL", "postgresql://me:s3cret%x@db/x"), ("DATABASE_URL", "postgresql://me:s3cret/b@db/x"),
        ("DATABASE_URL", "postgresql://me:s3cret?b@db/x"), ("DATABASE_URL", "postgresql://[s3cret/x"),
        ("DATABASE_URL", "postgresql://me:a@s3cret@db/x"), ("DATABASE_URL", "postgresql://me:a s3cret@db/x"),
        ("RPC_BASE", "https://[s3cret https://b.example"),
        ("RPC_BASE", "https://a.example:s3cret/"), ("RPC_WS_BASE", "wss://[s3cret"),
        ("RPC_BASE", "a.example/s3cret"), ("RPC_BASE", "https://a.example htps://b.example/s3cret"),
        ("RPC_BASE", "https://a.example/s3cret,https://b.example"), ("RPC_SOLANA", "https://a.example,https://s3cret"),
        ("RPC_BASE", "https:///s3cret"), ("RPC_WS_BASE", "https://a.example/s3cret"), ("RPC_WS_BASE", "wss://…"),
        ("DISCORD_API_URL", "discord.com/s3cret"), ("OPENSEA_API_URL", "api.opensea.io"),
        ("IPFS_GATEWAY_URL", "ipfs.io"), ("ALCHEMY_NFT_URL", "{network}.g.alchemy.com/nft/v3"),
        ("SOLANA_NAMES_URL", "a.example/{name}"), ("SUPPORT_INVITE", "discord.gg/s3cret"),
        ("DISCORD_CDN_URL", "https://cdn.discordapp.com\n/s3cret"), ("HOSTING_DASHBOARD", "dashboard.example"),
    ],
)  # fmt: skip
def test_an_address_that_no_process_could_use_is_refused_by_name_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str
) -> None:
    live(monkeypatch, **{name: given})
    with pytest.raises(SettingsError, match=f"^{name} ") as refused:
        load()
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("REDIS_URL", "redis://:s3cret@redis:6379/0"), ("REDIS_URL", "unix:///run/redis.sock"),
        ("DATABASE_URL", "postgres://me@db/x"), ("DATABASE_URL", "postgresql:///x?host=/run/postgresql"),
        ("DATABASE_URL", "postgresql+psycopg://me@a,b/x"), ("DATABASE_URL", "postgresql://me:a%25b#c@db:5432/x?a=b@c"),
        ("DATABASE_URL", "postgresql://me:a%40b@[::1]:5432/x"), ("DATABASE_URL", "postgresql://"),
        ("RPC_BASE", "https://[::1]:8545 http://a.example"), ("RPC_BASE", "https://me:s3cret@my_node.local:8545/a,b?c"),
        ("RPC_WS_BASE", "ws://10.0.0.1:8546"), ("RPC_BASE", "http://bücher.example HTTPS://A.EXAMPLE"),
        ("ALCHEMY_NFT_URL", "https://{network}.g.alchemy.com/nft/v3"), ("SUPPORT_INVITE", "/sandbox-console"),
        ("SOLANA_NAMES_URL", "https://a.example/{name}/b"), ("SUPPORT_INVITE", "https://discord.gg/a"),
    ],
)  # fmt: skip
def test_every_usual_address_is_taken(monkeypatch: pytest.MonkeyPatch, name: str, given: str) -> None:
    live(monkeypatch, **{name: given})
    assert load()


@pytest.mark.parametrize("name", ["DISCORD_CLIENT_SECRET", "DISCORD_BOT_TOKEN", "OPENSEA_API_KEY", "ALCHEMY_API_KEY"])
@pytest.mark.parametrize("given", ["s3cret\u200b", "s3crét", "two s3cret", "s3cret\nOTHER"])
def test_a_key_that_no_request_could_carry_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str
) -> None:
    """A page's invisible character was copied too: no client could be made, and each process ended with a traceback."""
    live(monkeypatch, **{name: given})
    with pytest.raises(SettingsError, match=f"^{name} has a character that no key has") as refused:
        load()
    assert "s3cr" not in str(refused.value)


def test_a_keys_space_at_its_ends_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    live(monkeypatch, DISCORD_BOT_TOKEN=" token\n", DISCORD_CLIENT_ID="1 ")
    found = load()
    assert (found.discord_bot_token.get_secret_value(), found.discord_client_id) == ("token", "1")


def test_a_tilde_is_the_home_directory_unless_data_lie_under_that_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Earlier versions made a directory `~` beside the code. Its data must not vanish."""
    live(monkeypatch)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setenv("HOME", "/homes/somebody")
    monkeypatch.setenv("DATA_DIR", "~/roles")
    assert load().data_dir == Path("/homes/somebody/roles")
    (tmp_path / "~" / "roles").mkdir(parents=True)
    assert load().data_dir == Path("~/roles")
    monkeypatch.setenv("DATA_DIR", "~nobody-of-this-name/roles")
    with pytest.raises(SettingsError, match=r"^DATA_DIR: ~nobody-of-this-name is no home"):
        load()


@pytest.mark.parametrize("turn", ["first", "second"])
def test_no_test_finds_the_settings_of_another_one(monkeypatch: pytest.MonkeyPatch, turn: str) -> None:
    assert settings().support_invite != "https://discord.gg/another", f"on the {turn} turn"
    monkeypatch.setenv("SUPPORT_INVITE", "https://discord.gg/another")
    settings.cache_clear()
    assert settings().support_invite == "https://discord.gg/another"
