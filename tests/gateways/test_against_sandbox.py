"""The real clients with the sandbox: its Discord, its OpenSea and its chains, under every fault."""

import secrets
import uuid
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from gateways.chains.read_point import ReadPoint
from gateways.discord.oauth import DiscordOAuth, GrantRefused
from gateways.discord.rest import Discord
from gateways.discord.types import MemberGone, MissingAccess, MissingPermissions, RoleGone, TokenRejected
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.marketplaces.opensea import OpenSea
from gateways.transport.errors import NotThere, ProviderError, ProviderRefused, Unauthorized
from settings import settings
from tests.support.balances import balances

# Chains that few other tests use, so that faults disturb no other test.
CHAIN, BARE = "apechain", "abstract"
STANDARDS = {"ERC721", "ERC721Enumerable", "ERC1155"}
KINDS = ["down", "429", "500", "empty", "zero", "malformed", "slow"]


class Sandbox:
    """A test's direct access to the sandbox."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self._session = url, session

    async def world(self) -> dict[str, Any]:
        async with self._session.get(f"{self.url}/control/world") as answer:
            return await answer.json()

    async def control(self, path: str, **body: Any) -> Any:
        async with self._session.post(f"{self.url}/control/{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def approve(self, url: str) -> str:
        """Follow the consent page's address and return the address that it sends the browser to."""
        async with self._session.get(url, allow_redirects=False) as answer:
            assert answer.status in {302, 303, 307}, await answer.text()
            return answer.headers["Location"]


@pytest.fixture
async def sandbox(sandbox_url: str) -> AsyncIterator[Sandbox]:
    async with aiohttp.ClientSession() as session:
        yield Sandbox(sandbox_url, session)


@pytest.fixture
async def discord(sandbox_url: str) -> AsyncIterator[Discord]:
    token = settings().discord_bot_token.get_secret_value()
    client = Discord(f"{sandbox_url}/discord/api/v10", token, "http://localhost:3000")
    yield client
    await client.close()


def named(things: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(thing for thing in things if thing.get("name", thing.get("username")) == name)


async def test_the_bot_reads_and_writes_roles_with_discords_own_refusals(discord: Discord, sandbox: Sandbox) -> None:
    world = await sandbox.world()
    guild = named(world["guilds"], "Base Builders")
    dave = named(world["users"], "dave")["id"]
    read = await discord.guild(guild["id"])
    assert {role.name for role in read.roles} >= {"@everyone", "Holder", "Collector", "Founder"}
    ids = {role.name: role.id for role in read.roles}
    await discord.add_role(read.id, dave, ids["Collector"], "for a test")
    assert ids["Collector"] in (await discord.member(read.id, dave)).roles
    await discord.remove_role(read.id, dave, ids["Collector"], "for a test")
    assert ids["Collector"] not in (await discord.member(read.id, dave)).roles
    assert read.id in {one.id for one in await discord.bot_guilds()}
    assert (await discord.me()).bot
    assert (await discord.user(dave)).username == "dave"
    with pytest.raises(MissingPermissions):
        await discord.add_role(read.id, dave, ids["Founder"], "x")
    with pytest.raises(RoleGone):
        await discord.add_role(read.id, dave, "1", "x")
    with pytest.raises(MemberGone):
        await discord.member(read.id, "1")
    quiet = named(world["guilds"], "Quiet Corner")
    with pytest.raises((MissingAccess, NotThere)):
        await discord.guild(quiet["id"])


async def test_a_wrong_token_is_rejected(sandbox_url: str) -> None:
    stranger = Discord(f"{sandbox_url}/discord/api/v10", "nonsense", "http://localhost:3000")
    with pytest.raises(TokenRejected):
        await stranger.me()
    await stranger.close()


async def test_a_person_signs_in_and_out(sandbox: Sandbox) -> None:
    chosen, base = settings(), f"{sandbox.url}/discord"
    oauth = DiscordOAuth(
        client_id=chosen.discord_client_id,
        client_secret=chosen.discord_client_secret.get_secret_value(),
        authorize_url=f"{base}/oauth2/authorize",
        token_url=f"{base}/api/v10/oauth2/token",
        revoke_url=f"{base}/api/v10/oauth2/token/revoke",
        api_url=f"{base}/api/v10",
        public_url="http://localhost:3000",
    )
    verifier, back = secrets.token_urlsafe(48), "http://localhost:3000/api/auth/discord/callback"
    url = oauth.authorize_url("st", verifier, ["identify", "guilds"], back)
    query = parse_qs(urlsplit(await sandbox.approve(f"{url}&as=ada")).query)
    assert query["state"] == ["st"]
    tokens = await oauth.exchange(query["code"][0], verifier, back)
    with pytest.raises(ProviderRefused):
        await oauth.exchange(query["code"][0], verifier, back)
    assert (await oauth.me(tokens.access_token)).username == "ada"
    assert any(
        guild.is_admin and guild.name == "Cool Holders Club" for guild in await oauth.my_guilds(tokens.access_token)
    )
    newer = await oauth.refresh(tokens)
    await oauth.revoke(newer.access_token)
    with pytest.raises(Unauthorized):
        await oauth.me(newer.access_token)
    with pytest.raises(GrantRefused):
        await oauth.refresh(newer)
    await oauth.close()


async def test_a_bio_is_read_as_it_stands(sandbox: Sandbox) -> None:
    address = "0x" + secrets.token_hex(20)
    key = settings().opensea_api_key
    opensea = OpenSea(f"{sandbox.url}/opensea", f"{sandbox.url}/opensea", key.get_secret_value() if key else None)
    async with (
        aiohttp.ClientSession() as session,
        session.put(f"{sandbox.url}/control/opensea/accounts/{address}", json={"bio": "holdfast:dave"}) as answer,
    ):
        assert answer.status == 200
    profile = await opensea.profile(address)
    assert (profile.address, profile.bio) == (address, "holdfast:dave")
    await opensea.close()


@pytest.fixture
async def chains(sandbox: Sandbox) -> AsyncIterator[EvmChains]:
    urls = {chain: [f"{sandbox.url}/{front}/{chain}" for front in ("rpc", "rpc2")] for chain in (CHAIN, BARE)}
    made = EvmChains(NodePool(urls, request_seconds=1.5, deadline=4.0))
    yield made
    await made.close()
    for front in ("rpc", "rpc2"):
        # A momentary fault replaces one that lasts.
        await sandbox.control("faults", target=f"{front}:{CHAIN}", kind="500", seconds=0.000_001)


@pytest.mark.parametrize("chain", [CHAIN, BARE])
async def test_collections_have_their_standards_and_owners(chains: EvmChains, sandbox: Sandbox, chain: str) -> None:
    collections = (await sandbox.world())["chains"][chain]["collections"]
    for collection in collections:
        contract, owned = collection["contract"], dict[str, int]()
        if (named_so := collection["standard"]) not in STANDARDS:
            # Punks are a collection of no standard; a coin is not a collection, though it reports balances like one.
            assert named_so in {"Punks", "ERC20"} or named_so.startswith("Staking:")
            expected = "balanceOf" if named_so == "Punks" else None
            assert await chains.contract_standard(chain, contract) == expected
            continue
        assert await chains.contract_standard(chain, contract) == named_so
        assert await chains.contract_name(chain, contract) == collection["name"]
        for token in collection["tokens"]:
            for owner, amount in token["owners"].items():
                owned[owner] = owned.get(owner, 0) + int(amount)
        sheet = await balances(chains, chain, [contract], [*owned, "0x" + "77" * 20])
        if collection["standard"] == "ERC1155":
            assert sheet.unknown(contract) == len(owned) + 1
        else:
            assert dict(sheet.holders(contract)) == {owner.lower(): amount for owner, amount in owned.items()}
            assert sheet.unknown(contract) == 0


async def test_a_collection_that_names_no_standard_is_known_by_what_it_answers(
    chains: EvmChains, sandbox: Sandbox
) -> None:
    """An unknown call ends at an invalid opcode, as in a contract of an old compiler."""
    made = await sandbox.control(f"chains/{CHAIN}/deploy", standard="Punks", name="Punks", slug=uuid.uuid4().hex)
    assert await chains.contract_standard(CHAIN, made["contract"]) == "balanceOf"
    assert await chains.contract_name(CHAIN, made["contract"]) == "Punks"
    account = (await sandbox.world())["chains"][CHAIN]["accounts"][0]["account"]
    assert await chains.contract_standard(CHAIN, account) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("known", [False, True], ids=["unknown node", "known node"])
async def test_no_fault_of_the_nodes_ever_reads_as_holding_none(
    chains: EvmChains, sandbox: Sandbox, kind: str, known: bool
) -> None:
    collection = (await sandbox.world())["chains"][CHAIN]["collections"][0]
    contract = collection["contract"]
    owner = next(owner for token in collection["tokens"] for owner, amount in token["owners"].items() if int(amount))
    if known and kind == "slow":
        return  # takes long, and differs in nothing from the unknown node
    if known:
        assert (await balances(chains, CHAIN, [contract], [owner])).amount(contract, owner)
    await sandbox.control("faults", target=f"rpc:{CHAIN}", kind=kind, seconds=60)
    with pytest.raises(ProviderError):
        await balances(chains, CHAIN, [contract], [owner], at=ReadPoint(endpoint=0))
    sheet = await balances(chains, CHAIN, [contract], [owner])
    assert (sheet.endpoint, bool(sheet.amount(contract, owner))) == (1, True)
    await sandbox.control("faults", target=f"rpc2:{CHAIN}", kind=kind, seconds=60)
    with pytest.raises(ProviderError):
        await balances(chains, CHAIN, [contract], [owner])
    for ask in (chains.contract_standard, chains.contract_name) if kind != "slow" else ():
        try:
            assert await ask(CHAIN, contract) is None
        except ProviderError:
            continue


async def test_a_stale_node_cannot_confirm_at_a_later_block(chains: EvmChains, sandbox: Sandbox) -> None:
    await sandbox.control("faults", target=f"rpc:{CHAIN}", kind="stale", seconds=60)
    before = await chains.head(CHAIN, endpoint=0)
    await sandbox.control(f"chains/{CHAIN}/mine", blocks=3)
    later = await chains.head(CHAIN, endpoint=1)
    assert later.block > before.block
    contract, owner = "0x" + "88" * 20, "0x" + "77" * 20
    with pytest.raises(ProviderError):
        await balances(chains, CHAIN, [contract], [owner], at=ReadPoint(endpoint=0, not_before_block=later.block))
    sheet = await balances(chains, CHAIN, [contract], [owner], at=ReadPoint(not_before_block=later.block))
    assert sheet.endpoint == 1
