"""The state of the product, for people and monitors: `/health`, `/health/deep`, `/metrics`, `/api/status`."""

import asyncio
import ipaddress
import os
import time
from datetime import datetime
from secrets import compare_digest
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BeforeValidator
from starlette.responses import JSONResponse, Response

from app.api.requests.examples import NOT_READY
from app.api.requests.routers import unique_id
from app.api.requests.shapes import ApiAnswer
from models import now, reading, transaction
from services.core.errors import NotFound
from services.health import metrics, monitoring, public_status, readiness
from services.health.metrics import Metric
from services.health.monitoring import BotHeartbeat, PartHealth, WorkHealth
from services.health.public_status import StatusView
from services.health.views import BAD, LagHealth, SweepHealth
from services.runtime import rate_limits
from services.runtime.database_faults import NO_ANSWER
from settings import settings, version

router = APIRouter(tags=["health"], generate_unique_id_function=unique_id)
_DEEP_PATIENCE = 5.0
"""Seconds that `/health/deep` waits for the database."""


class DeepAnswer(ApiAnswer):
    """The worst state of all parts, and each part: `database` alone if it does not answer, `redis` if it is used."""

    state: str
    checked_at: Annotated[str, BeforeValidator(datetime.isoformat)] | None = None
    database: PartHealth
    redis: PartHealth | None = None
    queue: WorkHealth | None = None
    bot: BotHeartbeat | None = None
    followers: tuple[LagHealth, ...] | None = None
    last_sweep: SweepHealth | None = None
    housekeeping: PartHealth | None = None


_UNSAID = {"followers": {"__all__": {"mend"}}}
"""Fields that the answer leaves out, because they are always empty here."""


@router.get("/health/deep", include_in_schema=False)
async def deep(request: Request) -> Response:
    """Answer 200 while no part is bad, otherwise 503 with the same body."""
    _let_in(request)
    try:
        async with asyncio.timeout(_DEEP_PATIENCE), transaction() as db:
            answer = DeepAnswer.model_validate(await monitoring.view(db))
    except NO_ANSWER as fault:
        answer = DeepAnswer(state=BAD, database=monitoring.without_database(type(fault).__name__))
    if (redis := await rate_limits.redis_answers()) is not None:
        state = answer.state if redis else BAD
        answer = answer.model_copy(update={"redis": monitoring.of_redis(answers=redis), "state": state})
    body = answer.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=_UNSAID)
    return JSONResponse(body, status_code=503 if answer.state == BAD else 200)


@router.get("/metrics", include_in_schema=False)
async def numbers(request: Request) -> Response:
    """Return all metrics in Prometheus' text format."""
    _let_in(request)
    async with transaction() as db:
        found = await metrics.read(db)
    return _written(found)


def _let_in(request: Request) -> None:
    """Raise NotFound unless the caller sends MONITOR_TOKEN or, where none is set, is on this machine in a local start.

    Behind a proxy every request comes from this machine, so under a public name that address proves nothing.
    """
    token = settings().monitor_token
    if token is not None:
        said = request.headers.get("authorization", "")
        # As the bytes that came: headers are read as Latin-1.
        allowed = compare_digest(said.encode("latin-1"), f"Bearer {token.get_secret_value()}".encode())
    else:
        allowed = settings().local and _is_loopback(request.client.host if request.client else "")
    if not allowed:
        raise NotFound


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def _written(found: list[Metric]) -> Response:
    """Return the metrics in Prometheus' text format; Prometheus' library is imported only when they are collected."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.core import Metric as Family
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

    families: list[Family] = []
    for metric in found:
        names = list(metric.samples[0][0]) if metric.samples else []
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(metric.name, metric.help, labels=names)
        for labels, value in metric.samples:
            family.add_metric([labels[name] for name in names], value)
        families.append(family)

    class Collector:
        """Passes the metrics to the library."""

        def collect(self) -> list[Family]:
            """Return all metrics."""
            return families

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())  # pyright: ignore[reportArgumentType]
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/api/status", responses={503: {**NOT_READY, "model": StatusView}})
async def get_status(response: Response) -> StatusView:
    """Return the version, providers, chains and the daily sweep to anybody; the status is 503 without the database."""
    view = await public_status.view()
    if not view.database:
        response.status_code, response.headers["Retry-After"] = 503, "5"
    return view


_PATIENCE = 2.0
"""Seconds that `/health` waits for the database."""


@router.get("/health", responses={503: {**NOT_READY}})
async def check_health() -> Response:
    """Answer `healthy` once the database answers and, where the supervisor runs the bot, the bot knows its servers."""
    if await _ready():
        return JSONResponse({"status": "healthy", "timestamp": now().isoformat(), "version": version()})
    return JSONResponse({"status": "starting", "version": version()}, status_code=503, headers={"Retry-After": "1"})


async def _ready() -> bool:
    try:
        async with asyncio.timeout(_PATIENCE), reading() as db:
            await readiness.database_answers(db)
            return not os.environ.get("HOLDFAST_SUPERVISED") or await readiness.bot_ready(db, _since_start())
    except NO_ANSWER:
        return False


def _since_start() -> float | None:
    """Return the seconds since the supervisor started everything, if there is one."""
    started = os.environ.get("HOLDFAST_STARTED")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - float(started) if started else None
