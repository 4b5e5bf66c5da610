"""The console: what people see and the forms they use."""

from tests.sandbox.conftest import BASE, Outside


async def test_it_shows_who_is_where_and_its_forms_do_what_control_does(discord: Outside):
    page = (await discord.http.get("/console")).text
    for name in ("Cool Holders Club", "Base Builders", "Quiet Corner", "mallory", "/opensea/0x1403Fd2f"):
        assert name in page
    form = {"guild": "Base Builders", "user": "carol", "action": "add_role", "role": "Whale"}
    done = await discord.http.post("/console/do/members", data=form)
    assert (done.status_code, done.headers["location"]) == (303, "/console?said=Done.")
    assert len((await discord.member(BASE, "carol"))["roles"]) == 1
    await discord.http.post("/console/do/faults", data={"target": "opensea", "kind": "500", "seconds": "60"})
    live = (await discord.http.get("/console/live")).text
    assert "opensea: 500" in live
    assert "gave the role Whale" in live
    await discord.http.post("/console/do/faults", data={})
    assert "No fault is running" in (await discord.http.get("/console/live")).text


async def test_a_form_that_is_refused_says_why(discord: Outside):
    answer = await discord.http.post("/console/do/guilds", data={"guild": "Nowhere", "action": "add_bot"})
    assert "There+is+no+guild" in answer.headers["location"]


async def test_another_site_may_not_steer_it(discord: Outside):
    answer = await discord.http.post("/console/do/reset", data={}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
