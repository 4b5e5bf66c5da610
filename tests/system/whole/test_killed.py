"""`kill -9` of every process while roles are being written: nothing is lost, nothing is written twice."""

import time
from collections import Counter
from pathlib import Path

from tests.support.product import Product, running
from tests.system.whole.people import Person, collection, rule, until

GUILD = "Base Builders"
ROLES = ("Holder", "Collector")
HOLDERS, NEWCOMERS = ("bob", "dave"), ("erin",)


def writes(product: Product, since: int) -> Counter[tuple[str, str]]:
    """Return the role writes that reached Discord, without those that it asked to repeat."""
    log = product.control(f"requests?since={since}")["requests"]
    return Counter(
        (line["method"], line["path"])
        for line in log
        if line["target"] == "discord" and line["method"] in {"PUT", "DELETE"} and line["status"] != 429
    )


def test_every_member_ends_right_and_each_change_is_written_once(short_dir: Path) -> None:
    with running(short_dir, sweep_seconds=3) as machine:
        product = machine.product
        ada = Person(product, "ada")
        server_id = ada.server(GUILD)["internalId"]
        contract = collection(product, "Killed-Cats")
        tokens = {name: str(number) for number, name in enumerate((*HOLDERS, *NEWCOMERS), 1)}
        for name, token in tokens.items():
            owner = product.wallet(name) if name in HOLDERS else f"0x{int(token):040x}"
            product.control("chains/base/mint", {"contract": contract, "token_id": token, "to": owner})
        for role in ROLES:
            ada.post("/api/verification-rules", **rule(product, contract, GUILD, role, server_id))
        for name in tokens:
            person = Person(product, name)
            assert person.prove()["success"]
            person.close()

        def right(holders: tuple[str, ...]) -> bool:
            return all(
                product.roles_of(GUILD, name) & set(ROLES) == (set(ROLES) if name in holders else set[str]())
                for name in tokens
            )

        until(lambda: right(HOLDERS))
        since = product.control("requests?since=0")["next"]
        for name, token in tokens.items():
            to = product.wallet(name) if name in NEWCOMERS else f"0x{int(token):040x}"
            product.control("chains/base/transfer", {"contract": contract, "token_id": token, "to": to})
        # In the middle: some of the six writes have been sent, some have not.
        until(lambda: writes(product, since).total() >= len(tokens))
        machine.kill()
        machine.start()
        until(lambda: right(NEWCOMERS))
        ada.post(f"/api/servers/{server_id}/recheck")

        def holders() -> set[int]:
            time.sleep(0.5)  # a person is limited in reads a minute
            return {one["holders"] for one in ada.get("/api/verification-rules", serverId=server_id)}

        # A write whose answer was lost is in Discord before the ledger records it.
        until(lambda: holders() == {len(NEWCOMERS)}, seconds=150)
        done = writes(product, since)
        assert Counter(method for method, path in done if "/roles/" in path) == {"DELETE": 4, "PUT": 2}
        assert set(done.values()) == {1}
        ada.close()
