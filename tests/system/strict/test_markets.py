"""The strict sandbox's marketplaces and index: the limits of a free key, one address and a free plan."""

import time
from collections.abc import Iterator

import httpx
import pytest

from gateways.marketplaces.alchemy import Alchemy
from gateways.marketplaces.opensea import OpenSea
from gateways.marketplaces.quota import Use
from gateways.transport.errors import ProviderBusy

ADDRESS = "0x" + "5d" * 20
KEY = {"x-api-key": "sandbox-opensea-key"}


@pytest.fixture
def http(sandbox_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sandbox_url, trust_env=False, timeout=20) as client:
        yield client
        told = client.delete("/control/limits").json()
        assert [told[place]["left"] for place in ("opensea", "magiceden", "alchemy")] == [600, 120, 62_500]


def left(http: httpx.Client, target: str, left: int, seconds: float) -> None:
    answer = http.put("/control/limits", json={"target": target, "left": left, "seconds": seconds})
    assert answer.status_code == 200, answer.text


def test_limits_are_told(http: httpx.Client) -> None:
    told = http.get("/control/limits").json()
    assert (told["opensea"]["requests"], told["opensea"]["seconds"]) == (600, 3600)
    assert (told["magiceden"]["requests"], told["magiceden"]["seconds"]) == (120, 60)
    assert told["solana"] == {"lists_a_second": 2, "scans_a_second": 5}
    assert http.put("/control/limits", json={"target": "solana", "left": 1, "seconds": 1}).status_code == 404
    assert http.put("/control/limits", json={"target": "opensea", "left": -1, "seconds": 1}).status_code == 400


def test_opensea_counts_down_in_its_headers_and_then_refuses(http: httpx.Client) -> None:
    left(http, "opensea", 3, 600)
    remaining = list[str]()
    for path in ("accounts/carol", "accounts/nobody-at-all", "chains"):
        answer = http.get(f"/opensea/api/v2/{path}", headers=KEY)
        assert answer.headers["x-ratelimit-limit"] == "600"
        assert 0 < int(answer.headers["x-ratelimit-reset"]) - time.time() <= 601
        remaining.append(answer.headers["x-ratelimit-remaining"])
    assert remaining == ["2", "1", "0"]
    assert http.get("/opensea/api/v2/chains").status_code == 401, "without the key nothing is counted"
    refused = http.get("/opensea/api/v2/chains", headers=KEY)
    assert (refused.status_code, refused.headers["x-ratelimit-remaining"]) == (429, "0")
    assert 0 < int(refused.headers["retry-after"]) <= 600
    assert "throttled" in refused.json()["errors"][0]
    left(http, "opensea", 0, 0.05)
    while (answer := http.get("/opensea/api/v2/chains", headers=KEY)).status_code == 429:
        assert answer.headers["retry-after"] == "1"
    assert answer.headers["x-ratelimit-remaining"] == "599"


def test_magic_eden_gives_so_many_answers_a_minute(http: httpx.Client) -> None:
    left(http, "magiceden", 2, 60)
    asked = [http.get("/magiceden/v2/collections") for _ in range(4)]
    assert [answer.status_code for answer in asked] == [200, 200, 429, 429]
    assert 0 < int(asked[-1].headers["retry-after"]) <= 60


def test_alchemys_plan_is_used_up_with_the_status_of_a_wrong_key(http: httpx.Client) -> None:
    left(http, "alchemy", 1, 60)
    page = f"/alchemy/base-mainnet/nft/v3/sandbox-alchemy-key/getNFTsForOwner?owner={ADDRESS}"
    assert http.get(page).status_code == 200
    refused = http.get(page)
    assert (refused.status_code, "capacity limit" in refused.text) == (403, True)


async def test_the_product_takes_alchemys_used_up_plan_for_what_it_is(http: httpx.Client, sandbox_url: str) -> None:
    left(http, "alchemy", 0, 60)
    client = Alchemy(f"{sandbox_url}/alchemy/{{network}}/nft/v3", "sandbox-alchemy-key", deadline=60.0)
    with pytest.raises(ProviderBusy, match="plan is used up"):
        await client.account_nfts("base", ADDRESS)
    await client.close()


def test_the_index_gives_two_lists_a_second_and_single_assets_beside_them(http: httpx.Client) -> None:
    owner = {"ownerAddress": "11111111111111111111111111111111", "page": 1}

    def ask(method: str, params: object) -> int:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return http.post("/solana", json=body).status_code

    answers = [ask("getAssetsByOwner", owner) for _ in range(20)]
    assert 429 in answers, "twenty in a row take less than ten seconds"
    assert 200 in answers
    assert [ask("getSlot", []) for _ in range(5)] == [200] * 5


async def reads(opensea: OpenSea, use: Use) -> int:
    """Return how many profile reads pass at once."""
    passed = 0
    try:
        while True:
            await opensea.profile(ADDRESS, use=use)
            passed += 1
    except ProviderBusy:
        return passed


async def test_no_more_is_sent_to_opensea_than_it_gives(http: httpx.Client, sandbox_url: str) -> None:
    left(http, "opensea", 41, 900)
    opensea = OpenSea(f"{sandbox_url}/opensea", sandbox_url, "sandbox-opensea-key")
    async with httpx.AsyncClient(base_url=sandbox_url, trust_env=False, timeout=20) as control:
        since = (await control.get("/control/requests")).json()["next"]
        await control.put(f"/control/opensea/accounts/{ADDRESS}", json={"bio": "gm"})
        read = [await reads(opensea, use) for use in (Use.RULES, Use.AGAIN, Use.PROOF)]
        await opensea.close()
        noted = (await control.get("/control/requests", params={"since": since})).json()["requests"]
    sent = [one["status"] for one in noted if one["target"] == "opensea"]
    assert set(sent) == {200}, "nothing was sent to be refused"
    assert sum(read) == len(sent)
    # Of 40 reads, two are reserved for lookups.
    assert 36 <= sum(read) <= 40
    assert read[2] >= 20, "half is for proofs, whatever the others want"
