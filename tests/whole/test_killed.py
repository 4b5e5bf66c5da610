"""`kill -9` of everything while roles are being written: nothing is lost, nothing is written twice."""

from collections import Counter
from pathlib import Path

from tests.product import Product, running
from tests.whole.people import Person, collection, rule, until

GUILD = "Base Builders"
ROLES = ("Holder", "Collector")
MEMBERS = ("bob", "dave", "erin")
KILLS = 2


def writes(product: Product, since: int) -> Counter[tuple[str, str]]:
    """Role writes that reached Discord, without those that it asked to repeat."""
    log = product.control(f"requests?since={since}")["requests"]
    return Counter(
        (line["method"], line["path"])
        for line in log
        if line["target"] == "discord" and line["method"] in {"PUT", "DELETE"} and line["status"] != 429
    )


def move(product: Product, contract: str, *, away: bool) -> None:
    """Everybody's token goes to a stranger, or comes back."""
    for number, name in enumerate(MEMBERS, 1):
        own, elsewhere = product.wallet(name), f"0x{number:040x}"
        body = {"contract": contract, "token_id": str(number)}
        product.control("chains/base/transfer", {**body, "to": elsewhere if away else own})


def test_every_member_ends_right_and_each_change_is_written_once(short_dir: Path) -> None:
    with running(short_dir, sweep_seconds=3) as machine:
        product = machine.product
        ada = Person(product, "ada")
        server_id = ada.server(GUILD)["internalId"]
        contract = collection(product, "Killed-Cats")
        for number, name in enumerate(MEMBERS, 1):
            body = {"contract": contract, "token_id": str(number), "to": product.wallet(name)}
            product.control("chains/base/mint", body)
        for role in ROLES:
            ada.post("/api/verification-rules", **rule(product, contract, GUILD, role, server_id))
        for name in MEMBERS:
            person = Person(product, name)
            assert person.prove()["success"]
            person.close()
        wanted = {name: set(ROLES) for name in MEMBERS}

        def right() -> bool:
            return all(product.roles_of(GUILD, name) & set(ROLES) == wanted[name] for name in MEMBERS)

        until(right)
        for kill in range(KILLS):
            since = product.control("requests?since=0")["next"]
            away = kill % 2 == 0
            move(product, contract, away=away)
            wanted = {name: set[str]() if away else set(ROLES) for name in MEMBERS}
            # In the middle: some of the writes have gone out, some have not.
            until(lambda start=since, enough=2 + kill: writes(product, start).total() >= enough)
            machine.kill()
            machine.start()
            until(right, 60)
            ada.post(f"/api/servers/{server_id}/recheck")
            rules = ada.get("/api/verification-rules", serverId=server_id)
            assert {one["holders"] for one in rules} == {0 if away else len(MEMBERS)}, "every role has its grant"
            assert set(writes(product, since).values()) == {1}
        ada.close()
