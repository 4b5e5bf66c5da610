"""The layout of the repository as functions: entries in a folder, imports between packages, and circular imports."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath

from tests.house.rules import Module

MOST_ENTRIES = 15
# The root is the first thing people see, and Alembic keeps every migration in one folder.
FULL_FOLDERS = frozenset({".", "models/migrations/versions"})

# The packages of each room from the bottom up: a package imports itself and those before it. Modules directly in
# the room's folder are above all packages.
FLOORS: Mapping[str, Sequence[str]] = {
    "app": (
        "app/postgres",
        "app/http",
        "app/http/sockets",
        "app/supervisor",
        "app/api/requests",
        "app/api/server",
        "app/api",
    ),
    "bot": ("bot/messages", "bot/interaction", "bot/gateway", "bot/commands"),
    "components": (
        "components/ui/effects",
        "components/ui",
        "components/layout",
        "components/pages/public",
        "components/pages/help",
        "components/pages/account",
        "components/pages/dashboard",
        "components/pages/server",
        "components/pages/replacements",
        "components/pages/developers",
        "components/pages/rule_form",
        "components/pages",
    ),
    "gateways": (
        "gateways/transport",
        "gateways/discord",
        "gateways/chains",
        "gateways/marketplaces",
        "gateways/evm/programs",
        "gateways/evm/rpc",
        "gateways/evm/balances",
        "gateways/evm/tokens",
        "gateways/evm/calls",
        "gateways/evm",
        "gateways/solana",
    ),
    "models": ("models/db", "models", "models/migrations/versions", "models/migrations"),
    "sandbox": (
        "sandbox/base",
        "sandbox/tools",
        "sandbox/contracts",
        "sandbox/chains",
        "sandbox/solana",
        "sandbox/marketplaces",
        "sandbox/discord/answers",
        "sandbox/discord/world",
        "sandbox/discord/forms",
        "sandbox/discord/actions",
        "sandbox/discord/gateway",
        "sandbox/discord/interactions",
        "sandbox/discord/rest",
        "sandbox/discord/oauth",
        "sandbox/discord",
        "sandbox/discord/control",
        "sandbox/assembly",
        "sandbox/control",
        "sandbox/console/elements",
        "sandbox/console/panels",
        "sandbox/console",
    ),
    "services": (
        "services/core/event_kinds",
        "services/core",
        "services/core/queue",
        "services/runtime",
        "services/collections",
        "services/wallets",
        "services/accounts",
        "services/guilds/gateway",
        "services/guilds",
        "services/rules/types",
        "services/rules",
        "services/rules/documents",
        "services/rules/replacements",
        "services/triggers",
        "services/holdings",
        "services/roles",
        "services/engine",
        "services/engine/previews",
        "services/servers",
        "services/collections/census",
        "services/roles/moves",
        "services/accounts/developers",
        "services/privacy",
        "services/health",
    ),
    "state": (
        "state/core",
        "state/dashboard",
        "state/account",
        "state/public",
        "state/help",
        "state/rule_form",
        "state/server",
    ),
}


def full_folders(paths: Iterable[str]) -> Iterator[str]:
    """Yield each folder with more entries than MOST_ENTRIES."""
    entries = defaultdict[str, set[str]](set)
    for path in paths:
        parts = PurePosixPath(path).parts
        for depth, name in enumerate(parts):
            entries["/".join(parts[:depth]) or "."].add(name)
    for folder, names in sorted(entries.items()):
        if len(names) > MOST_ENTRIES and folder not in FULL_FOLDERS:
            yield f"{folder} has {len(names)} entries, more than {MOST_ENTRIES}"


def imports_up_the_floors(modules: Sequence[Module]) -> Iterator[str]:
    """Yield each import of a package by one that lies below it, and each package without a floor."""
    graph = edges(modules)
    for module in modules:
        floors = FLOORS.get(module.room)
        if floors is None:
            continue
        own = _package(module.path)
        if own != module.room and own not in floors:
            yield f"{own} has no floor"
            continue
        for other in graph[module.path]:
            theirs = _package(other)
            if other.partition("/")[0] == module.room and _floor(floors, theirs) > _floor(floors, own):
                yield f"{module.path} imports {other}: {theirs} is above {own}"


def circles(modules: Sequence[Module]) -> Iterator[str]:
    """Yield a set of modules that import one another, if there is one."""
    try:
        TopologicalSorter(edges(modules)).prepare()
    except CycleError as fault:
        yield f"a circle: {', '.join(sorted(set(fault.args[1])))}"


def class_names_given_twice(modules: Sequence[Module]) -> Iterator[str]:
    """Yield each class name that the product defines more than once."""
    where = defaultdict[str, list[str]](list)
    for module in modules:
        for name in module.classes():
            where[name].append(module.path)
    for name, paths in sorted(where.items()):
        if len(paths) > 1:
            yield f"{name} is a class in {', '.join(paths)}"


def edges(modules: Sequence[Module]) -> dict[str, set[str]]:
    """Return, by module path, the paths of the given modules that the module imports anywhere in its text."""
    by_name = {_dotted(module.path): module.path for module in modules}
    graph = dict[str, set[str]]()
    for module in modules:
        found = set[str]()
        for name, taken in module.imports:
            for candidate in [f"{name}.{one}" for one in taken] or [name]:
                path = by_name.get(candidate) or by_name.get(name)
                if path is not None and path != module.path:
                    found.add(path)
        graph[module.path] = found
    return graph


def _package(path: str) -> str:
    return PurePosixPath(path).parent.as_posix()


def _floor(floors: Sequence[str], package: str) -> int:
    return floors.index(package) if package in floors else len(floors)


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
