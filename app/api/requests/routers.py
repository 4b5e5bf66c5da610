"""Routers whose calls have their full path from the start.

FastAPI builds every call again for each router that includes another one, the last time during the first request.
`app.api` therefore includes no router: it takes these calls as they are.
"""

from fastapi import APIRouter
from fastapi.routing import APIRoute

from app.api.requests.problems import PROBLEMS


def unique_id(route: APIRoute) -> str:
    """Return a call's id in the OpenAPI document, by which clients name their methods: the function's name."""
    return route.name


def calls(prefix: str = "", *, tags: list[str] | None = None, include_in_schema: bool = True) -> APIRouter:
    """Return a router for the calls below `/api` and this prefix, which may give any of the error answers."""
    return APIRouter(
        prefix=f"/api{prefix}",
        tags=[*tags] if tags else None,
        include_in_schema=include_in_schema,
        responses=PROBLEMS,
        generate_unique_id_function=unique_id,
    )
