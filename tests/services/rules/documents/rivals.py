"""Documents of other bots with twenty rules each, in the format that their public sources describe."""

import json
from typing import Any

from services.rules.documents import json_documents

CATS, DOGS, USDC = "0x" + "c0" * 20, "0x" + "d0" * 20, "0x" + "5d" * 20
ONE, TWO = (f"0x{number:040x}" for number in (10, 11))


def collabland(contract: str = CATS, items: str = DOGS, coin: str = USDC, chain_id: int = 8453) -> list[dict[str, Any]]:
    """Return twenty rules of Collab.Land: eleven with a counterpart here, nine without."""
    nft = {"type": "ERC721", "chainId": chain_id, "contractAddress": contract}
    many = {"type": "ERC1155", "chainId": chain_id, "contractAddress": items}
    money = {"type": "ERC20", "chainId": chain_id, "contractAddress": coin}
    gold, silver = {"trait_type": "Fur", "value": "Gold"}, {"trait_type": "Fur", "value": "Silver"}
    hat = {"trait_type": "Hat", "value": "Crown"}
    rules: list[dict[str, Any]] = [
        nft | {"minToken": "1", "name": "Holder", "sk": "TPC#1", "pk": "DIS#COMM#1", "classifier": "TPC"},
        nft | {"minToken": "5", "maxToken": "9", "name": "Tier two"},
        nft | {"name": "No minimum is one"},
        nft | {"tokenId": "1,2,42-69", "name": "Certain tokens"},
        many | {"tokenId": "7", "minToken": "1", "name": "Pass"},
        nft | {"attributes": [gold], "name": "Gold"},
        nft | {"attributes": [gold, hat], "condition": "AND", "minToken": "2", "name": "Gold with a crown"},
        nft | {"metadata": {"operator": "OR", "attributes": [gold, silver]}, "name": "Gold or silver"},
        money | {"minToken": "100", "name": "A hundred coins"},
        money | {"minToken": "0.5", "maxToken": "100", "name": "Some coins"},
        nft | {"minToken": "3", "name": "With something new", "expiresAt": "2030-01-01"},
        # From here on nothing has a counterpart.
        {"type": "OPEN_SEA", "collectionName": "conanscircle", "chainId": 1, "minToken": "1", "name": "A page"},
        {"type": "POAP", "eventId": "63826", "chainId": 100, "contractAddress": "POAP", "name": "An event"},
        {"type": "staking", "chainId": 1, "contractAddress": contract, "minToken": "0", "name": "Staked"},
        {"scheme": "gnosis", "asset": f"evm:56/gnosis:{contract}", "minToken": "1", "name": "A Safe"},
        {"type": "SOLANA_NFT", "tokenId": "2nPkG7zgW8Edr5eNhbaJ1RqNgx6Ds4ZsRM8qTRBNe2i1", "chainId": 8000000000101,
         "contractAddress": "creators", "minToken": "5", "name": "A creator"},
        nft | {"chainId": 56, "name": "Another chain"},
        many | {"minToken": "1", "name": "Many without an ID"},
        many | {"tokenId": "7", "minToken": "5", "name": "Five of one"},
        nft | {"requiresMetadata": True, "query": "$exists(tokens[x])", "name": "A query"},
    ]  # fmt: skip
    return [{"roleId": "001", "roleName": "Holder", **one} for one in rules]


def guild(
    contract: str = CATS, items: str = DOGS, coin: str = USDC, chain: str = "BASE_MAINNET", role_id: str = "501"
) -> dict[str, Any]:
    """Return a guild with twenty roles: twelve with a counterpart here, eight without."""
    nft = {"type": "ERC721", "chain": chain, "address": contract}
    many = {"type": "ERC1155", "chain": chain, "address": items}
    money = {"type": "ERC20", "chain": chain, "address": coin, "symbol": "USDC", "decimals": 6}
    one_cat = nft | {"data": {"minAmount": 1}}
    roles: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
        ("Holder", {"logic": "AND"}, [one_cat]),
        ("Any amount", {}, [money | {"data": {"minAmount": 0}}]),
        ("Hundred", {}, [money | {"data": {"minAmount": 100, "maxAmount": 2500.5}}]),
        ("Gas", {}, [{"type": "COIN", "chain": chain, "address": "0x" + "0" * 40, "data": {"minAmount": 0.1}}]),
        ("Both", {"logic": "AND"}, [one_cat, money | {"data": {"minAmount": 5}}]),
        ("Either", {"logic": "OR"}, [one_cat, money | {"data": {"minAmount": 5}}]),
        ("Two of three", {"logic": "ANY_OF", "anyOfNum": 2}, [
            one_cat, money | {"data": {"minAmount": 5}}, nft | {"data": {"minAmount": 4}}]),
        ("Not a whale", {"logic": "AND"}, [one_cat, nft | {"data": {"minAmount": 50}, "isNegated": True}]),
        ("Pass", {}, [many | {"data": {"id": "7", "minAmount": 1}}]),
        ("Certain tokens", {}, [nft | {"data": {"ids": ["1", "2", "3"]}}]),
        ("Gold", {}, [nft | {"data": {"attributes": [{"trait_type": "Fur", "value": "Gold"}]}}]),
        ("Friends", {}, [{"type": "ALLOWLIST", "data": {"addresses": [ONE.upper().replace("X", "x"), ONE, TWO]}}]),
        # From here on nothing has a counterpart.
        ("Everybody", {}, [{"type": "FREE", "data": {}}]),
        ("Follower", {}, [{"type": "TWITTER_FOLLOW_V2", "data": {"id": "guildxyz"}}]),
        ("Hidden list", {}, [{"type": "ALLOWLIST", "data": {"hideAllowlist": True}}]),
        ("Another chain", {}, [nft | {"chain": "BSC", "data": {"minAmount": 1}}]),
        ("Half of it", {"logic": "AND"}, [one_cat, {"type": "POAP", "data": {"id": "event"}}]),
        ("Five of one", {}, [many | {"data": {"id": "7", "minAmount": 5}}]),
        ("Two attributes", {}, [nft | {"data": {"attributes": [
            {"trait_type": "Fur", "value": "Gold"}, {"trait_type": "Hat", "value": "Crown"}]}}]),
        ("Strange logic", {"logic": "XOR"}, [one_cat, one_cat]),
    ]  # fmt: skip
    return {
        "id": 1985, "name": "Our guild", "urlName": "our-guild", "guildPlatforms": [
            {"id": 9, "platformId": 1, "platformGuildId": "1", "platformGuildName": "Our server"},
            {"id": 8, "platformId": 2, "platformGuildId": "2"},
        ],
        "roles": [
            {
                "id": number, "name": name, "memberCount": 3, **fields, "requirements": [
                    {"id": number * 10 + at, "roleId": number, **one} for at, one in enumerate(requirements)],
                "rolePlatforms": [
                    {"guildPlatformId": 9, "platformRoleId": role_id}, {"guildPlatformId": 8, "platformRoleId": None}],
            }
            for number, (name, fields, requirements) in enumerate(roles, 1)
        ],
    }  # fmt: skip


async def as_read(document: object) -> Any:
    """Return the document as it is read from a file."""
    return await json_documents.read(json.dumps(document))
