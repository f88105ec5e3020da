"""The OpenAPI document as one HTML page that needs no network, script or other file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tollkeeper.api.html import Html, element, inline_markdown, join_html, markdown

Json = Mapping[str, Any]

_STYLE = Path(__file__).with_name("schema_page.css").read_text()


def schema_page(document: Json) -> str:
    """Return the whole page."""
    info = document["info"]
    head = element(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        Html('<meta name="color-scheme" content="light dark">'),
        element("title", f"{info['title']}: interface"),
        element("style", Html(_STYLE)),
    )
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        _navigation(document),
        element("main", *_content(document), id="content"),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en")


def _navigation(document: Json) -> Html:
    groups = [
        element(
            "details",
            element("summary", tag["name"]),
            _list(
                element(
                    "a", _method(method), operation["summary"], href=f"#{operation['operationId']}"
                )
                for method, _, operation in _operations(document, tag["name"])
            ),
            open="",
        )
        for tag in document["tags"]
    ]
    schemas = element(
        "details",
        element("summary", "Schemas"),
        _list(_reference(name) for name in document["components"]["schemas"]),
    )
    title = element("a", document["info"]["title"], href="#content", class_="title")
    return element("nav", title, *groups, schemas, aria_label="Operations")


def _content(document: Json) -> Iterator[Html]:
    info = document["info"]
    yield element(
        "header",
        element("h1", info["title"], element("small", info["version"])),
        element("p", info["summary"]),
        element(
            "p",
            "For tools: ",
            element("a", "openapi.json", href="/schema/openapi.json"),
            ", ",
            element("a", "openapi.yaml", href="/schema/openapi.yaml"),
        ),
    )
    yield element("section", markdown(info["description"]))
    for tag in document["tags"]:
        operations = [
            _operation(method, path, operation, document)
            for method, path, operation in _operations(document, tag["name"])
        ]
        head = (element("h2", tag["name"]), element("p", tag["description"]))
        yield element("section", *head, *operations)
    answers = document["components"]["responses"]
    shared = [_shared_answer(name, answer) for name, answer in answers.items()]
    yield element("section", element("h2", "Error answers"), *shared)
    schemas = document["components"]["schemas"]
    named = [_named_schema(name, schema) for name, schema in schemas.items()]
    yield element("section", element("h2", "Schemas"), *named)


def _operations(document: Json, tag: str) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation["tags"]:
                yield method, path, operation


def _operation(method: str, path: str, operation: Json, document: Json) -> Html:
    name = operation["operationId"]
    parts = [
        element("h3", element("a", operation["summary"], href=f"#{name}")),
        element("p", _method(method), element("code", path), class_="path"),
        markdown(operation["description"]),
    ]
    if "parameters" in operation:
        named = document["components"]["parameters"]
        parameters = [
            named[_last(each["$ref"])] if "$ref" in each else each
            for each in operation["parameters"]
        ]
        parts += [element("h4", "Parameters"), _parameters(parameters)]
    if "requestBody" in operation:
        parts += [element("h4", "Request body"), *_media(operation["requestBody"]["content"])]
    parts.append(element("h4", "Answers"))
    answers = operation["responses"].items()
    parts += [_answer(status, found) for status, found in answers if "$ref" not in found]
    shared = [
        element("a", _status(status), href=f"#{_last(found['$ref'])}")
        for status, found in answers
        if "$ref" in found
    ]
    parts.append(element("p", "Errors that mean the same everywhere: ", _join_parts(" ", shared)))
    return element("article", *parts, id=name)


def _answer(status: str, answer: Json) -> Html:
    summary = element("summary", _status(status), inline_markdown(answer["description"]))
    return element("details", summary, *_media(answer["content"]))


def _shared_answer(name: str, answer: Json) -> Html:
    title = element("h3", element("a", name, href=f"#{name}"))
    words = markdown(answer["description"])
    return element("article", title, words, *_media(answer["content"]), id=name)


def _parameters(parameters: list[Json]) -> Html:
    rows = [
        _row(
            element("code", each["name"]),
            join_html(each["in"], _required_mark(each["required"])),
            _type(each["schema"]),
            inline_markdown(each["description"]),
        )
        for each in parameters
    ]
    return _table(("name", "in", "type", "meaning"), rows)


def _media(content: Json) -> Iterator[Html]:
    for media_type, described in content.items():
        schema = described["schema"]
        yield element("p", element("code", media_type), " ", _type(schema), class_="media")
        if "properties" in schema:
            yield _properties(schema)
        for example in described.get("examples", {}).values():
            value = example["value"]
            text = value if isinstance(value, str) else json.dumps(value, indent=2)
            yield element(
                "details",
                element("summary", f"Example: {example['summary']}"),
                element("pre", element("code", text), tabindex="0"),
                class_="example",
            )


def _named_schema(name: str, schema: Json) -> Html:
    parts = [element("h3", element("a", name, href=f"#schema-{name}"))]
    if "description" in schema:
        parts.append(markdown(schema["description"]))
    if "properties" in schema:
        parts.append(_properties(schema))
    return element("article", *parts, id=f"schema-{name}")


def _properties(schema: Json) -> Html:
    required = schema.get("required", ())
    rows = [
        _row(
            element("code", name),
            join_html(_type(described), _required_mark(name in required)),
            inline_markdown(described.get("description", "")),
        )
        for name, described in schema["properties"].items()
    ]
    return _table(("member", "type", "meaning"), rows)


def _type(schema: Json) -> Html:
    """Return a value's type in a few words."""
    match schema:
        case {"$ref": reference}:
            return _reference(_last(reference))
        case {"anyOf": choices} | {"oneOf": choices}:
            return _join_parts(" or ", map(_type, choices))
        case {"const": value}:
            return element("code", json.dumps(value))
        case {"enum": values}:
            return _join_parts(" ", (element("code", json.dumps(value)) for value in values))
        case {"type": "array", "items": dict(items)}:
            return join_html("array of ", _type(items), _bounds(schema))
        case {"type": "array", "prefixItems": items}:
            return join_html("array of ", _join_parts(" and ", map(_type, items)))
        case {"type": "object", "additionalProperties": dict(values)}:
            return join_html("object of ", _type(values), _bounds(schema))
        case {"type": list(kinds)}:
            return _join_parts(" or ", (element("code", kind) for kind in kinds))
        case {"type": kind}:
            return join_html(kind, _bounds(schema))
        case _:
            return Html("anything")


def _bounds(schema: Json) -> Html:
    least, most = schema.get("minimum"), schema.get("maximum")
    bounds = [
        f"{word} {schema[name]:,}{unit}"
        for name, word, unit in (
            ("minLength", "at least", " long"),
            ("maxLength", "at most", " long"),
            ("minItems", "at least", " items"),
            ("maxItems", "at most", " items"),
            ("maxProperties", "at most", " members"),
        )
        if name in schema
    ]
    if least is not None:
        bounds.append(f"from {least:,}")
    if most is not None:
        bounds.append(f"to {most:,}")
    bounds += [str(schema[name]) for name in ("format", "pattern") if name in schema]
    return element("small", ", ".join(bounds)) if bounds else Html("")


def _reference(name: str) -> Html:
    return element("a", name, href=f"#schema-{name}")


def _required_mark(required: bool) -> Html:
    return element("strong", "required", class_="required") if required else Html("")


def _method(method: str) -> Html:
    return element("span", method.upper(), class_=f"method {method}")


def _status(status: str) -> Html:
    return element("span", status, class_=f"status s{status[0]}")


def _list(items: Iterable[Html]) -> Html:
    return element("ul", *(element("li", item) for item in items))


def _table(heads: tuple[str, ...], rows: list[Html]) -> Html:
    head = element("tr", *(element("th", name, scope="col") for name in heads))
    table = element("table", element("thead", head), element("tbody", *rows))
    return element("div", table, class_="wide", tabindex="0")


def _row(*cells: Html) -> Html:
    return element("tr", *(element("td", cell) for cell in cells))


def _join_parts(by: str, parts: Iterable[Html]) -> Html:
    return Html(by.join(parts))


def _last(reference: str) -> str:
    return reference.rpartition("/")[2]
