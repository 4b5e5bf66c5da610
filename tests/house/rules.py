"""The house rules as functions: each takes modules and yields a sentence for each breach."""

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

ROOMS = ("app", "components", "state", "services", "gateways", "models", "bot", "jobs", "locales")
LONGEST = 450

SETTINGS = frozenset({"settings", "setting_checks"})
# The rooms that each room may import. Each may also import itself, and all but the sandbox may import SETTINGS.
ARROWS: Mapping[str, frozenset[str]] = {
    "app": frozenset({"components", "state", "services", "gateways", "models", "bot", "jobs", "locales"}),
    "components": frozenset({"state", "locales"}),
    "state": frozenset({"services", "locales"}),
    "bot": frozenset({"services", "locales"}),
    "jobs": frozenset({"services", "locales"}),
    "services": frozenset({"models", "gateways", "locales"}),
    "models": frozenset(),
    "gateways": frozenset({"locales"}),
    "locales": frozenset(),
    "sandbox": frozenset(),
}
# A front door opens the transaction and passes the gateways to one service function. It may import only these names.
FRONT_DOORS = frozenset({"state", "bot", "jobs"})
HANDED_ON = {
    "models": frozenset({"transaction", "reading", "use", "now"}),
    "models.db.database": frozenset({"transaction", "use"}),
    "models.db.row_ids": frozenset({"row_id"}),  # a text of an address, a form or a button becomes an id at the door
    "gateways": frozenset({"gateways", "Gateways", "close_gateways"}),
}

# Which of the product's rooms (or root modules) may use a library.
ONLY: Mapping[str, frozenset[str]] = {
    "reflex": frozenset({"app", "state", "components", "rxconfig"}),
    "nextcord": frozenset({"bot"}),
    "httpx": frozenset({"gateways"}),
    "httpcore": frozenset({"gateways"}),
    "web3": frozenset({"gateways"}),
    "authlib.integrations.httpx_client": frozenset({"gateways"}),
    "sqlalchemy": frozenset({"models", "services"}),
    "sqlmodel": frozenset({"models", "services"}),
    "apscheduler": frozenset({"jobs"}),
    "babel": frozenset({"locales"}),
}
# A front door may name a database error; that is not SQL.
FAULTS_BY_NAME = frozenset({"sqlalchemy.exc"})
# Modules that manage the database server itself, and so send it plain statements.
SERVER_KEEPERS = frozenset({"app/postgres/server.py"})
SQL = re.compile(r"\s*(SELECT|INSERT\s+INTO|UPDATE\s.+\sSET|DELETE\s+FROM|WITH\s.+\sSELECT|LISTEN|NOTIFY)\s", re.S)
THIS_MACHINES = {
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "time.time",
    "datetime.datetime.now",
}
SQL_CALLS = frozenset({"execute", "exec", "scalars", "scalar"})
SESSIONS = frozenset({"db", "session", "connection", "cursor"})

# The only path of a removal: the ledger intends it once the breaker has counted it, and the outbox carries it out.
INTENDS_REMOVALS, CARRIES_OUT = "services/engine/ledger.py", "services/roles/outbox.py"
TAKES = frozenset({"remove_role", "remove_roles", "remove_member_role"})
SETS_TAKING = re.compile(r"SET\b[^;]*?\bstate\s*=\s*'taking'(?![^;]*\bSET\b)", re.S)

NAMELESS = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})
GUARDS = frozenset({"signed_in", "writes", "public"})
NOT_HANDLERS = frozenset({"property", "staticmethod", "classmethod", "var", "cached_var", "computed_var"})
STATE_ROOTS = frozenset({"rx.State", "State", "reflex.State", "rx.ComponentState", "rx.SharedState", "BaseState"})
DEVELOPMENT_METHOD = re.compile(
    r"\b(?:(?:anvil|hardhat|ganache)_[a-z]\w*"
    r"|evm_(?:mine|snapshot|revert|increaseTime|setNextBlockTimestamp|setAutomine|setIntervalMining|setBlockGasLimit))\b"
)
MACHINE_PATH = re.compile(r"(?<![\w./~-])/(?:work|root|home/\w+)(?:/|\b(?![\w-]))|\.\./shared\b")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield each statement below a node, without the expressions, which are nine nodes of ten."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        inside = getattr(node, field, ())
        for one in inside if isinstance(inside, list) else ():
            yield one
            yield from statements(one)


@dataclass(frozen=True)
class Module:
    """One Python file of the repository: its path from the root, with slashes, and its text."""

    path: str
    source: str

    @property
    def room(self) -> str:
        """The root package that contains the module, or the module's own name if it is at the root."""
        return PurePosixPath(self.path).parts[0].removesuffix(".py")

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed module.

        The garbage collector is off meanwhile: it finds none, and looking for it takes as long as the parsing.
        """
        collects = gc.isenabled()
        gc.disable()
        try:
            return ast.parse(self.source)
        finally:
            if collects:
                gc.enable()

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, kept because two dozen rules read them and walking the tree is slow."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """Every imported module with the names taken from it (none for a plain import)."""
        found: list[tuple[str, frozenset[str]]] = []
        for node in statements(self.tree):
            if isinstance(node, ast.Import):
                found += ((alias.name, frozenset[str]()) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                package = PurePosixPath(self.path).parts[: -node.level] if node.level else ()
                name = ".".join([*package, *([node.module] if node.module else [])])
                found.append((name, frozenset(alias.name for alias in node.names)))
        return tuple(found)

    def classes(self) -> Iterator[str]:
        """Yield the name of every class at the top level."""
        yield from (node.name for node in self.tree.body if isinstance(node, ast.ClassDef))

    def texts(self) -> Iterator[str]:
        """Yield every string of the module, including docstrings and the fixed parts of f-strings."""
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def imports_against_the_arrows(module: Module) -> Iterator[str]:
    """Yield each import against ARROWS: components → state → services → {models, gateways}; bot, jobs → services."""
    if module.room not in ARROWS:
        return
    for name, taken in module.imports:
        target = name.partition(".")[0]
        if target == module.room or target not in {*ROOMS, *SETTINGS, "sandbox", "tests", "benchmarks", "rxconfig"}:
            continue
        if target in SETTINGS and module.room != "sandbox":
            continue
        if target in ARROWS[module.room]:
            continue
        if module.room in FRONT_DOORS and taken and taken <= HANDED_ON.get(name, frozenset()):
            continue
        yield f"{module.path} imports {name} {' '.join(sorted(taken))}".rstrip()


def libraries_out_of_place(module: Module) -> Iterator[str]:
    """Yield each import of a library outside of the rooms that may use it."""
    for name, _ in module.imports:
        for library, rooms in ONLY.items():
            within = name == library or name.startswith(f"{library}.")
            if within and module.room not in rooms and name not in FAULTS_BY_NAME:
                yield f"{module.path} imports {name}: only {', '.join(sorted(rooms))} may"


def sql_out_of_place(module: Module) -> Iterator[str]:
    """Yield each use of SQL outside of models and services."""
    if module.room in {"models", "services"} or module.path in SERVER_KEEPERS:
        return
    for text in module.texts():
        if SQL.match(text):
            yield f"{module.path} writes SQL: {text.strip()[:60]!r}"
    for node in module.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id in SESSIONS and node.func.attr in SQL_CALLS:
            yield f"{module.path}:{node.lineno} calls {owner.id}.{node.func.attr}"


def clocks_of_this_machine(module: Module) -> Iterator[str]:
    """Yield each read of this machine's clock: stored times come from the database's clock alone (`models.now`)."""
    if module.room not in {"models", "services", "state", "jobs", "components"} or module.path == "models/db/clock.py":
        return
    for node in module.nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in THIS_MACHINES:
            yield f"{module.path}:{node.lineno} calls {ast.unparse(node.func)}: models.now is every machine's time"


def removals_past_the_breaker(module: Module) -> Iterator[str]:
    """Yield each removal of a role outside of the one module that intends it and the one that carries it out."""
    for node in module.nodes:
        if module.path != CARRIES_OUT and _called(node) in TAKES:
            yield f"{module.path} takes a role by itself: {_called(node)}"
        if isinstance(node, ast.Dict) and module.path != INTENDS_REMOVALS:
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "state" and _says_taking(value):
                    yield f"{module.path}:{node.lineno} intends a removal past the breaker"
        if isinstance(node, ast.keyword) and node.arg == "state" and _says_taking(node.value):
            yield f"{module.path}:{node.value.lineno} intends a removal past the breaker"
    for text in module.texts():
        if (found := SETS_TAKING.search(text)) and "WHERE" not in found[0]:
            yield f"{module.path} intends a removal past the breaker, in SQL"


def _called(node: ast.AST) -> str | None:
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def _says_taking(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == "taking"


def names_that_say_nothing(module: Module) -> Iterator[str]:
    """Yield each part of a module's path that does not say what the module contains."""
    for part in PurePosixPath(module.path).with_suffix("").parts:
        if part.strip("_") in NAMELESS:
            yield f"{module.path}: {part!r} does not say what lives there"


def too_long(module: Module) -> Iterator[str]:
    """Yield the module if it has more than LONGEST lines."""
    lines = module.source.count("\n")
    if lines > LONGEST and not module.path.startswith("models/migrations/versions/"):
        yield f"{module.path} has {lines} lines, more than {LONGEST}"


def raises_in_a_group_handler(module: Module) -> Iterator[str]:
    """Yield each raise in an `except*` block: Python 3.11.2 wraps it in another group, so raise after the block."""
    for node in module.nodes:
        if isinstance(node, ast.TryStar):
            for handler in node.handlers:
                for inner in ast.walk(handler):
                    if isinstance(inner, ast.Raise):
                        yield f"{module.path}:{inner.lineno} raises inside except*"


def sandbox_knowledge(module: Module, ids: Iterable[str]) -> Iterator[str]:
    """Yield each control path, id of the sandbox's and development node's method that the product mentions."""
    ids = frozenset(ids)
    for text in module.texts():
        if "/control" in text:
            yield f"{module.path} knows the sandbox's control path: {text[:60]!r}"
        if found := DEVELOPMENT_METHOD.search(text):
            yield f"{module.path} knows a development node's method: {found[0]}"
        for known in ids:
            if known.lower() in text.lower():
                yield f"{module.path} knows something of the sandbox's: {known}"


def table_rows(module: Module) -> frozenset[str]:
    """Return the names of the table row classes that this module defines."""
    return frozenset(
        node.name
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
        and any(
            keyword.arg == "table" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            for keyword in node.keywords
        )
    )


def state_classes(modules: Iterable[Module]) -> dict[str, list[tuple[Module, ast.ClassDef]]]:
    """Return every Reflex State class, direct or derived, by its name."""
    classes = [(module, node) for module in modules for node in module.nodes if isinstance(node, ast.ClassDef)]
    found: dict[str, list[tuple[Module, ast.ClassDef]]] = {}
    growing = True
    while growing:
        growing = False
        for module, node in classes:
            bases = {ast.unparse(base) for base in node.bases}
            known = STATE_ROOTS | found.keys()
            if (bases & known or {base.rpartition(".")[2] for base in bases} & found.keys()) and not any(
                node is other for _, other in found.get(node.name, [])
            ):
                found.setdefault(node.name, []).append((module, node))
                growing = True
    return found


def unguarded_handlers(modules: Iterable[Module]) -> Iterator[str]:
    """Yield each handler without a guard: any browser can call it with any arguments, so each names its audience."""
    for places in state_classes(modules).values():
        for module, node in places:
            if module.room != "state":
                yield f"{module.path}: {node.name} is a State outside of state/"
            for item in node.body:
                if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) or item.name.startswith("_"):
                    continue
                decorators = {_decorator_name(decorator) for decorator in item.decorator_list}
                if not decorators & (GUARDS | NOT_HANDLERS):
                    yield f"{module.path}:{item.lineno} {node.name}.{item.name} is neither @signed_in nor @public"


def background_without_watcher(modules: Iterable[Module]) -> Iterator[str]:
    """Yield each background handler that waits outside of a Watcher's looks, which bound its waits and repeats.

    Outside of the looks it may only wait for the state's lock.
    """
    for places in state_classes(modules).values():
        for module, node in places:
            for item in node.body:
                if not isinstance(item, ast.AsyncFunctionDef) or not any(map(_is_background, item.decorator_list)):
                    continue
                watched = {
                    id(inner)
                    for loop in ast.walk(item)
                    if isinstance(loop, ast.AsyncFor)
                    and ast.unparse(loop.iter.func if isinstance(loop.iter, ast.Call) else loop.iter).endswith(".looks")
                    for inner in ast.walk(loop)
                }
                waits = [
                    one
                    for one in ast.walk(item)
                    if id(one) not in watched
                    and (
                        isinstance(one, ast.Await | ast.AsyncFor)
                        or (isinstance(one, ast.AsyncWith) and ast.unparse(one.items[0]) != "self")
                    )
                ]
                if waits or not watched:
                    yield f"{module.path}:{item.lineno} {node.name}.{item.name} waits outside of a Watcher's looks"


def _is_background(node: ast.expr) -> bool:
    return _decorator_name(node) == "background" or (
        isinstance(node, ast.Call) and any(keyword.arg == "background" for keyword in node.keywords)
    )


def rows_in_public_state(modules: Iterable[Module], rows: frozenset[str]) -> Iterator[str]:
    """Yield each public State variable that holds a table row: the browser would get all of its columns."""
    for places in state_classes(modules).values():
        for module, node in places:
            for item in node.body:
                if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
                    continue
                names = set(re.findall(r"\w+", ast.unparse(item.annotation)))
                if not item.target.id.startswith("_") and names & rows:
                    yield f"{module.path}:{item.lineno} {node.name}.{item.target.id} holds {', '.join(names & rows)}"


def machine_paths(path: str, text: str) -> Iterator[str]:
    """Yield each path that depends on a particular machine."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := MACHINE_PATH.search(line):
            yield f"{path}:{number} mentions {found[0]}"


def _decorator_name(node: ast.expr) -> str:
    """Return the last name of a decorator: `rx.var(cache=True)` is `var`."""
    target = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(target).rpartition(".")[2]
