"""Control calls on the chains: their effects and their refusals."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from sandbox.chains.control import LONGEST_NAME, MOST_ACTS
from tests.sandbox.chains.nodes import CORNER_SHOP, MELLOW_CATS, STRANGER, Nodes


def test_mint_transfer_and_burn_show_on_the_chain_and_in_the_world(nodes: Nodes):
    huge = str(2**256 - 1)
    minted = nodes.act("mint", contract=MELLOW_CATS, token_id=huge, to=STRANGER)
    assert nodes.rpc("eth_getTransactionReceipt", minted["hash"])["blockNumber"] == hex(minted["block"])
    assert nodes.block() >= minted["block"] + 4
    assert nodes.balance(MELLOW_CATS, STRANGER) == 1
    nodes.act("transfer", contract=MELLOW_CATS, token_id=huge, to=nodes.wallet("bob"))
    assert nodes.owners(MELLOW_CATS, huge) == {nodes.wallet("bob"): "1"}
    nodes.act("burn", contract=MELLOW_CATS, token_id=huge)
    assert nodes.owners(MELLOW_CATS, huge) == {}


def test_several_acts_have_a_block_each_and_their_confirmations_together(nodes: Nodes):
    tokens = ("901", "902", "903")
    mints = [{"action": "mint", "contract": MELLOW_CATS, "token_id": token, "to": STRANGER} for token in tokens]
    traits = {"action": "traits", "contract": MELLOW_CATS, "token_id": "901", "traits": {"Level": 9}}
    *minted, named = nodes.act("several", acts=[*mints, traits])["done"]
    first = minted[0]["block"]
    assert [one["block"] for one in minted] == [first, first + 1, first + 2]
    assert named == {"traits": {"Level": 9}}
    assert nodes.block() >= first + 3 + 4
    assert [nodes.owners(MELLOW_CATS, token) for token in tokens] == [{STRANGER: "1"}] * 3


def test_what_comes_before_a_refused_act_is_done_and_confirmed(nodes: Nodes):
    before = nodes.block()
    mint = {"action": "mint", "contract": MELLOW_CATS, "token_id": "904", "to": STRANGER}
    assert nodes.refused("several", acts=[mint, mint])[0] == 409
    assert nodes.block() >= before + 1 + 4
    assert nodes.owners(MELLOW_CATS, "904") == {STRANGER: "1"}


def test_one_call_does_not_go_on_without_end(nodes: Nodes):
    mine = {"action": "mine", "blocks": 500}
    assert nodes.refused("several", acts=[mine] * (MOST_ACTS + 1)) == (400, f"acts has at most {MOST_ACTS} entries.")
    status, said = nodes.refused("name", "ethereum", name="a." * 200 + "eth", address=STRANGER)
    assert (status, said) == (400, f"name has at most {LONGEST_NAME} bytes.")


def test_a_name_of_several_labels_is_confirmed_once(nodes: Nodes):
    before = nodes.block("ethereum")
    after = nodes.act("name", "ethereum", name="on.deck.eth", address=STRANGER, of=STRANGER)["block"]
    assert after - before < 12 + 20


@pytest.mark.parametrize(
    ("acts", "status"),
    [(None, 400), ("mint", 400), (["mint"], 400), ([{}], 400), ([{"action": "x"}], 404),
     ([{"action": "several", "acts": []}], 400)],
)  # fmt: skip
def test_several_wants_actions(nodes: Nodes, acts: Any, status: int):
    assert nodes.refused("several", acts=acts)[0] == status


def test_amounts_of_an_erc1155_move_and_add_up(nodes: Nodes):
    carol = nodes.wallet("carol")
    nodes.act("transfer", contract=CORNER_SHOP, token_id="1", amount="2", to=STRANGER, **{"from": carol})
    nodes.act("mint", contract=CORNER_SHOP, token_id="1", amount=str(2**200), to=STRANGER)
    assert nodes.owners(CORNER_SHOP, "1")[STRANGER] == str(2**200 + 2)
    assert nodes.owners(CORNER_SHOP, "1")[carol] == "3"
    status, message = nodes.refused("transfer", contract=CORNER_SHOP, token_id="1", to=STRANGER)
    assert (status, "several holders" in message) == (400, True)


def test_an_enumerable_collection_enumerates_after_moves(nodes: Nodes):
    contract, dave = nodes.collection("driftwood-bears")["contract"], nodes.wallet("dave")
    nodes.act("transfer", contract=contract, token_id="1", to=STRANGER)
    owned = nodes.rpc(
        "eth_call", {"to": contract, "data": "0x2f745c59" + dave[2:].rjust(64, "0") + f"{0:064x}"}, "latest"
    )
    assert int(owned, 16) == 3
    assert int(nodes.rpc("eth_call", {"to": contract, "data": "0x18160ddd"}, "latest"), 16) == 6
    for interface, answer in (("780e9d63", 1), ("80ac58cd", 1), ("d9b67a26", 0), ("ffffffff", 0)):
        call = {"to": contract, "data": "0x01ffc9a7" + interface.ljust(64, "0")}
        assert int(nodes.rpc("eth_call", call, "latest"), 16) == answer


def test_a_deployed_collection_is_listed_with_its_traits(nodes: Nodes):
    contract = nodes.act("deploy", standard="ERC721", name="Fresh Figs", slug="fresh-figs")["contract"]
    nodes.act("mint", contract=contract, token_id="0", to=STRANGER)
    nodes.act("traits", contract=contract, token_id="0", traits={"Level": 7, "Skin": "Green"})
    token = nodes.collection("fresh-figs")["tokens"][0]
    assert token == {"id": "0", "owners": {STRANGER: "1"}, "traits": {"Level": 7, "Skin": "Green"}}
    assert nodes.refused("deploy", standard="ERC721", name="Fresh Figs", slug="fresh-figs")[0] == 409


def test_a_reorg_takes_back_what_was_in_the_last_blocks(nodes: Nodes):
    dave = nodes.wallet("dave")
    sold = nodes.act("transfer", contract=MELLOW_CATS, token_id="4", to=STRANGER)
    assert nodes.owners(MELLOW_CATS, "4") == {STRANGER: "1"}
    before = nodes.block()
    head = nodes.act("reorg", depth=str(before - sold["block"] + 1))["block"]
    assert head >= before
    assert nodes.owners(MELLOW_CATS, "4") == {dave: "1"}
    assert nodes.rpc("eth_getTransactionReceipt", sold["hash"]) is None
    stamp = int(nodes.rpc("eth_getBlockByNumber", hex(head), False)["timestamp"], 16)
    before_it = int(nodes.rpc("eth_getBlockByNumber", hex(sold["block"] - 1), False)["timestamp"], 16)
    assert stamp >= before_it


def test_money_moves_from_anybody(nodes: Nodes):
    sent = nodes.act("send", **{"from": STRANGER}, to=STRANGER, value_wei="1234567", data="0xc0de")
    transaction = nodes.rpc("eth_getTransactionByHash", sent["hash"])
    assert (int(transaction["value"], 16), transaction["input"]) == (1234567, "0xc0de")


def test_more_money_than_there_can_be_is_refused(nodes: Nodes):
    most = {"value_wei": str(2**256 - 1)}
    assert nodes.refused("send", **{"from": STRANGER}, to=nodes.wallet("bob"), **most)[0] == 409
    for account in nodes.world()["chains"]["base"]["accounts"]:
        assert nodes.refused("self-transaction", account=account["account"], **most)[0] == 409


def test_a_contract_that_reverts_with_half_an_error_is_refused(nodes: Nodes):
    # Its code copies four bytes, 0x08c379a0, to memory and reverts with them.
    runtime = "6308c379a06000526004601cfd"
    creation = f"6c{runtime}600052600d6013f3"
    nodes.act("send", **{"from": STRANGER}, to=nodes.wallet("carol"), value_wei=str(10**18))
    made = nodes.signed("carol", "", "0x" + creation)
    contract = nodes.rpc("eth_getTransactionReceipt", made)["contractAddress"]
    assert nodes.rpc("eth_getCode", contract, "latest") == "0x" + runtime
    sent = {"from": STRANGER, "to": contract, "value_wei": "0"}
    assert nodes.refused("send", **sent)[0] == 409


def test_a_delegation_is_in_the_registry(nodes: Nodes):
    vault, hot = nodes.wallet("erin"), nodes.wallet("bob")
    nodes.act("delegate", vault=vault, to=hot)
    assert delegates(nodes, hot, vault, rights="") == 1


def test_a_token_is_not_delegated_without_its_contract(nodes: Nodes):
    vault, hot = nodes.wallet("dave"), nodes.wallet("bob")
    assert nodes.refused("delegate", vault=vault, to=hot, token_id="1")[0] == 400
    assert delegates(nodes, hot, vault, rights="") == 0, "nothing else is delegated instead"


@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_a_trait_is_a_text_or_a_number(nodes: Nodes, value: Any):
    assert nodes.refused("traits", contract=MELLOW_CATS, token_id="1", traits={"Mood": value})[0] == 400


@pytest.mark.parametrize("rights", ["holdfast", "0x" + b"holdfast".hex()])
def test_a_delegation_can_be_for_some_rights_alone(nodes: Nodes, rights: str):
    vault, hot = nodes.wallet("carol" if rights == "holdfast" else "ada"), nodes.wallet("bob")
    nodes.act("delegate", vault=vault, to=hot, rights=rights)
    assert delegates(nodes, hot, vault, rights=b"holdfast".hex()) == 1
    assert delegates(nodes, hot, vault, rights="") == 0
    assert nodes.refused("delegate", vault=vault, to=hot, rights="x" * 33)[0] == 400


def delegates(nodes: Nodes, hot: str, vault: str, rights: str) -> int:
    """Return what the registry says about a delegation of everything, 1 or 0."""
    data = "0xe839bd53" + hot[2:].rjust(64, "0") + vault[2:].rjust(64, "0") + rights.ljust(64, "0")
    call = {"to": "0x00000000000000447e69651d841bD8D104Bed493", "data": data}
    return int(nodes.rpc("eth_call", call, "latest"), 16)


def test_what_cannot_be_done_is_refused_with_a_sentence(nodes: Nodes):
    mallory = nodes.wallet("mallory")
    assert nodes.refused("mint", "moonbase", contract=MELLOW_CATS)[0] == 404
    assert nodes.refused("mint", contract="nothing-here", token_id="1", to=STRANGER)[0] == 404
    assert nodes.refused("mint", contract=MELLOW_CATS, token_id="1", to="carol")[0] == 400
    assert nodes.refused("mint", contract=MELLOW_CATS, token_id="one", to=STRANGER)[0] == 400
    assert nodes.refused("mint", contract=MELLOW_CATS, token_id="1", to=STRANGER) == (
        409,
        "The chain refuses this: ERC721: already minted",
    )
    status, message = nodes.refused("transfer", contract=MELLOW_CATS, token_id="1", to=STRANGER, **{"from": mallory})
    assert (status, "not the owner" in message or "not yours" in message) == (409, True)
    assert nodes.refused("mine", blocks="501")[0] == 400
    assert nodes.refused("explode")[0] == 404


def coin_of(nodes: Nodes, slug: str, chain: str = "base") -> dict[str, Any]:
    return nodes.collection(slug, chain)


def called(nodes: Nodes, contract: str, data: str) -> str:
    return nodes.rpc("eth_call", {"to": contract, "data": data}, "latest")


def test_of_two_who_deploy_the_same_slug_at_once_one_is_refused(nodes: Nodes):
    slug = "twice-" + uuid4().hex
    body = {"standard": "ERC721", "name": "Twice", "slug": slug}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: nodes.http.post("/control/chains/base/deploy", json=body), range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    listed = [one for one in nodes.world()["chains"]["base"]["collections"] if one["slug"] == slug]
    assert len(listed) == 1


def test_every_chain_begins_with_three_coins(nodes: Nodes):
    for name, chain in nodes.world()["chains"].items():
        coins = [one for one in chain["collections"] if "decimals" in one]
        if name == "solana":
            assert [(one["standard"], one["decimals"]) for one in coins] == [("SPL", 6)]
        else:
            assert [(one["standard"], one["decimals"]) for one in coins] == [("ERC20", 6), ("ERC20", 18), ("ERC20", 18)]
            assert [one["rebases"] for one in coins] == [False, False, True]
        assert all(one["tokens"] == [] and one["holders"] for one in coins)


def test_amounts_of_a_coin_are_minted_moved_and_burnt(nodes: Nodes):
    contract = coin_of(nodes, "harbour-dollar")["contract"]
    carol = nodes.wallet("carol")
    nodes.act("mint", contract="HUSD", amount="5", to=STRANGER)
    nodes.act("transfer", contract=contract, amount=str(600 * 10**6), to=STRANGER, **{"from": carol})
    nodes.act("burn", contract="harbour-dollar", amount="1", **{"from": STRANGER})
    holders = coin_of(nodes, "harbour-dollar")["holders"]
    assert (holders[carol], holders[STRANGER]) == (str(400 * 10**6), str(600 * 10**6 + 4))
    assert nodes.balance("harbour-dollar", STRANGER) == 600 * 10**6 + 4
    logs = nodes.rpc("eth_getLogs", {"address": contract, "fromBlock": hex(nodes.block() - 30), "toBlock": "latest"})
    assert {len(log["topics"]) for log in logs} == {3}
    for wrong in ({"amount": "0", "to": STRANGER}, {"to": STRANGER}, {"amount": "1"}):
        assert nodes.refused("mint", contract=contract, **wrong)[0] == 400
    too_much = {"contract": contract, "amount": str(10**30), "to": STRANGER, "from": carol}
    assert nodes.refused("transfer", **too_much) == (409, "The chain refuses this: Coin: not enough")
    status, message = nodes.refused("transfer", contract=contract, amount="1", to=STRANGER)
    assert (status, "holders" in message) == (400, True)


def test_a_slug_is_found_before_a_symbol_that_is_the_same(nodes: Nodes):
    symbol = {"standard": "ERC20", "name": MELLOW_CATS, "symbol": MELLOW_CATS}
    coin = nodes.act("deploy", slug="coin-" + uuid4().hex, **symbol)["contract"]
    nodes.act("mint", contract=MELLOW_CATS, token_id="77001", to=STRANGER)
    assert nodes.owners(MELLOW_CATS, "77001") == {STRANGER: "1"}
    nodes.act("mint", contract=coin, amount="1", to=STRANGER)


@pytest.mark.parametrize(
    ("given", "said", "listed"),
    [
        ({}, f"0x{18:064x}", 18),
        ({"decimals": 0}, f"0x{0:064x}", 0),
        ({"decimals": "30"}, f"0x{30:064x}", 30),
        ({"decimals": None}, "0x", None),
        ({"decimals": "nothing"}, "0x", None),
        ({"decimals": "lies"}, f"0x{255:064x}", 255),
        ({"decimals": str(2**255)}, f"0x{2**255:064x}", 2**255),
    ],
)
def test_a_coin_says_of_its_decimals_what_it_was_deployed_with(
    nodes: Nodes, given: dict[str, Any], said: str, listed: int | None
):
    slug = "coin-" + uuid4().hex
    contract = nodes.act("deploy", standard="ERC20", name="Some Coin", slug=slug, **given)["contract"]
    assert called(nodes, contract, "0x313ce567") == said
    assert coin_of(nodes, slug)["decimals"] == listed


def test_a_rebase_changes_what_everybody_has_without_a_log(nodes: Nodes):
    before = coin_of(nodes, "tidal-ether")
    since = nodes.block()
    nodes.act("rebase", contract="tidal-ether", percent="50")
    after = coin_of(nodes, "tidal-ether")
    assert after["holders"] == {holder: str(int(units) // 2) for holder, units in before["holders"].items()}
    assert nodes.rpc("eth_getLogs", {"address": before["contract"], "fromBlock": hex(since), "toBlock": "latest"}) == []
    assert nodes.refused("rebase", contract="harbour-dollar", percent="50")[0] == 404


def test_no_coin_becomes_more_than_can_be_returned(nodes: Nodes):
    """An amount that cannot be returned would make the whole world unreadable."""
    slug = "coin-" + uuid4().hex
    nodes.act("deploy", standard="ERC20", name="Tide", slug=slug, rebases=True)
    nodes.act("mint", contract=slug, amount=str(2**195), to=STRANGER)
    nodes.act("rebase", contract=slug, percent="200")
    refused = (409, "The chain refuses this: Coin: more than there can be")
    assert nodes.refused("rebase", contract=slug, percent="200") == refused
    assert nodes.refused("mint", contract=slug, amount=str(2**195), to=STRANGER) == refused
    assert coin_of(nodes, slug)["holders"] == {STRANGER: str(2**196)}


def test_a_reset_gives_everybody_their_coins_back(nodes: Nodes):
    begin = {slug: coin_of(nodes, slug, "optimism") for slug in ("harbour-dollar", "tidal-ether")}
    nodes.act("rebase", "optimism", contract="tidal-ether", percent="150")
    nodes.act("mint", "optimism", contract="harbour-dollar", amount="7", to=STRANGER)
    slug = "coin-" + uuid4().hex
    later = nodes.act("deploy", "optimism", standard="ERC20", name="Later", slug=slug)["contract"]
    nodes.act("mint", "optimism", contract=later, amount="9", to=STRANGER)
    assert nodes.http.post("/control/reset").status_code == 200
    assert {slug: coin_of(nodes, slug, "optimism") for slug in begin} == begin
    assert nodes.rpc("eth_getCode", later, "latest", chain="optimism") == "0x"
    again = nodes.act("deploy", "optimism", standard="ERC20", name="Later", slug=slug)["contract"]
    assert again == later
    assert coin_of(nodes, slug, "optimism")["holders"] == {}


def test_what_people_have_of_the_own_coin_is_what_they_were_sent(nodes: Nodes):
    pauper = "0x" + uuid4().hex + "00000000"
    nodes.act("send", value_wei=str(5 * 10**18), to=pauper, **{"from": nodes.wallet("bob")})
    nodes.act("send", value_wei=str(4 * 10**18), to=STRANGER, **{"from": pauper})
    assert int(nodes.rpc("eth_getBalance", pauper, "latest"), 16) < 10**18 + 10**17
