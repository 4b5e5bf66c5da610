"""The supervisor is not ready while another program has the port of the web."""

import asyncio
from dataclasses import replace
from pathlib import Path

from app.supervisor.supervisor import Supervisor
from tests.app.supervisor.test_supervisor import plan, until, web
from tests.conftest import free_port
from tools.fresh.machine import answers


async def test_it_is_not_ready_while_another_program_answers_at_its_port(tmp_path: Path) -> None:
    said = list[str]()
    port = free_port()
    (tmp_path / "other").mkdir()
    supervisor = Supervisor(
        replace(plan(tmp_path, web(port)), health=(port, "/health", "localhost", "localhost"), ready_text="ready!"),
        say=said.append,
    )
    other = await asyncio.create_subprocess_exec(*web(port).command, cwd=tmp_path / "other")
    await until(lambda: answers(port))
    task = asyncio.create_task(supervisor.run())
    await until(lambda: sum("web ended" in line for line in said) > 1)
    assert "ready!" not in said
    other.kill()
    await other.wait()
    await until(lambda: "ready!" in said)
    supervisor.stop()
    await task
