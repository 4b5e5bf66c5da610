"""Write the client's calls and shapes from the OpenAPI document: `python clients/python/generate.py`.

With `--check` nothing is written, and the exit code says whether the files are up to date.
"""

import keyword
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "holdfast_client"
WIDTH = 120
_SIMPLE = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
_JSON, _CSV = "application/json", "text/csv"


class Writer:
    """Writes the two modules from one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._paths = document["paths"]
        self._webhooks = document["webhooks"]
        self._schemas: dict[str, Any] = dict(document["components"]["schemas"])
        self._used: dict[str, Any] = {}

    def modules(self) -> dict[str, str]:
        """Return the text of each generated file by its name."""
        calls = sorted(self._call(name, operation) for name, operation in self._operations())
        events = [self._type(one["post"]["requestBody"]["content"][_JSON]["schema"]) for one in self._webhooks.values()]
        shapes = self._shapes()
        union = f"WebhookEvent: TypeAlias = {' | '.join(sorted(events))}\n" + _doc("What is posted to a webhook.", "")
        head = '"""{what}; generate.py writes this file from the OpenAPI document."""\n\n'
        return {
            "calls.py": head.format(what="The calls of the API") + _CALLS + "\n".join(calls),
            "shapes.py": head.format(what="The shapes of JSON that the API takes and answers with")
            + "from __future__ import annotations\n\n"
            + "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n\n"
            + "\n\n".join(shapes)
            + "\n\n"
            + union,
        }

    def _operations(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for path, methods in self._paths.items():
            for method, operation in methods.items():
                if "x-scopes" in operation:
                    yield f"{method.upper()} {path}", operation

    def _call(self, call: str, operation: Mapping[str, Any]) -> str:
        method, _, path = call.partition(" ")
        name = operation["operationId"]
        places = {"path": list[str](), "query": list[str](), "header": list[str]()}
        needed, optional = list[str](), list[str]()
        for one in operation.get("parameters", []):
            argument = _snake(one["name"])
            kind = self._type(one["schema"], "shapes.")
            places[one["in"]].append(f'"{one["name"]}": {argument}')
            if one.get("required"):
                needed.append(f"{argument}: {kind}")
            else:
                optional.append(f"{argument}: {' | '.join(dict.fromkeys([*kind.split(' | '), 'None']))} = None")
        given = operation.get("requestBody", {}).get("content", {})
        extra = ""
        if _JSON in given:
            kind = self._type(given[_JSON]["schema"], "shapes.")
            if operation["requestBody"].get("required"):
                needed.append(f"body: {kind}")
            else:
                needed.append(f"body: {kind} = None")
            extra = ", body=body"
        elif _CSV in given:
            needed.append("csv: str")
            extra = ", csv=csv"
        for place, pairs in places.items():
            if pairs:
                extra += f", {'places' if place == 'path' else place}={{{', '.join(pairs)}}}"
        answer = self._answer(operation)
        arguments = ", ".join(["self", *needed, *(["*", *optional] if optional else [])])
        said = f"{operation['description']}\n\nNeeds the {_scopes(operation['x-scopes'])}."
        asked = f'self._call("{method}", "{path}"{extra})'
        last = f"return {asked}" if answer != "None" else asked
        return f"    def {name}({arguments}) -> {answer}:\n{_doc(said, '        ')}        {last}\n"

    def _answer(self, operation: Mapping[str, Any]) -> str:
        good = next(body for status, body in operation["responses"].items() if status.startswith("2"))
        content = good.get("content", {})
        if _CSV in content:
            return "str"
        return self._type(content[_JSON]["schema"], "shapes.") if _JSON in content else "None"

    def _type(self, schema: Mapping[str, Any], module: str = "") -> str:
        """Return the type of a value; `module` is put before the names of shapes."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return module + self._named(name, self._schemas[name])
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self._type(one, module) for one in schema["anyOf"]))
        if "const" in schema or "enum" in schema:
            return f"Literal[{', '.join(repr(one) for one in schema.get('enum', [schema.get('const')]))}]"
        match schema.get("type"):
            case "array":
                return f"list[{self._type(schema.get('items', {}), module)}]"
            case "object" if "properties" in schema and "title" in schema:
                return module + self._named(schema["title"], schema)
            case "object":
                return "dict[str, Any]"
            case None:
                return "Any"
            case kind:
                return _SIMPLE[kind]

    def _named(self, name: str, schema: Mapping[str, Any]) -> str:
        if name not in self._used:
            self._used[name] = schema
            for one in schema.get("properties", {}).values():
                self._type(one)
        return name

    def _shapes(self) -> list[str]:
        """Return each shape by name; one with all fields of an earlier shape is written as a subclass of that one."""
        written: dict[str, dict[str, str]] = {}
        classes: list[str] = []
        for name, schema in sorted(self._used.items()):
            fields = self._fields(name, schema)
            # A few fields that are the same by chance make no subclass.
            within = [(len(its), one) for one, its in written.items() if len(its) > 3 and its.items() <= fields.items()]
            base = max(within, default=(0, "TypedDict"))[1]
            own = [f"    {field}: {kind}" for field, kind in fields.items() if field not in written.get(base, {})]
            classes.append("\n".join([f"class {name}({base}):", _doc(schema.get("description", name), "    "), *own]))
            written[name] = fields
        return classes

    def _fields(self, name: str, schema: Mapping[str, Any]) -> dict[str, str]:
        required, fields = schema.get("required", ()), dict[str, str]()
        for field, one in schema.get("properties", {}).items():
            if not field.isidentifier() or keyword.iskeyword(field):
                raise ValueError(f"{name}.{field} cannot be a field of a TypedDict")
            kind = self._type(one)
            fields[field] = kind if field in required else f"NotRequired[{kind}]"
        return fields


_CALLS = '''from holdfast_client import shapes
from holdfast_client.client import Client


class Holdfast(Client):
    """The calls of one server, made with its API token. Use it as a context manager, or call `close`."""

'''


def _doc(text: str, indent: str) -> str:
    """Return a docstring, its lines wrapped."""
    wrapper = TextWrapper(WIDTH - 6 - len(indent), break_long_words=False, break_on_hyphens=False)
    lines = list[str]()
    for paragraph in text.replace("\\", "\\\\").replace('"""', "'''").split("\n\n"):
        lines += ["", *wrapper.wrap(paragraph)] if lines else wrapper.wrap(paragraph)
    whole = "\n".join(f"{indent}{line}".rstrip() for line in lines)[len(indent) :]
    return f'{indent}"""{whole}"""\n' if len(lines) == 1 else f'{indent}"""{whole}\n{indent}"""\n'


def _scopes(names: list[str]) -> str:
    return f"scope {names[0]}" if len(names) == 1 else f"scopes {', '.join(names[:-1])} and {names[-1]}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("-", "_").lower()


def formatted(name: str, text: str) -> str:
    """Return a module as ruff writes it, with its imports in order."""
    for work in (["check", "--quiet", "--fix", "--select", "I"], ["format"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *work, "--stdin-filename", str(PACKAGE / name), "-"],
            input=text, capture_output=True, text=True, check=True, cwd=HERE.parents[1],
        )  # fmt: skip
        text = done.stdout
    return text


def written() -> dict[Path, str]:
    """Return what the generated files have to be, by their paths."""
    from app.api import api

    modules = Writer(api.openapi()).modules()
    return {PACKAGE / name: formatted(name, text) for name, text in modules.items()}


def stale(files: Mapping[Path, str]) -> list[str]:
    """Return the names of the generated files that are not as they have to be."""
    return [path.name for path, text in files.items() if not path.exists() or path.read_text() != text]


def main() -> int:
    """Write the files, or check them. Return the exit code."""
    sys.path.insert(0, str(HERE.parents[1]))
    files = written()
    if "--check" in sys.argv[1:]:
        for name in stale(files):
            print(f"{name} is not up to date: run clients/python/generate.py")
        return int(bool(stale(files)))
    for path, text in files.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
