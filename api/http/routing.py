"""Which path of the interface a request names: byte for byte, with nothing added or dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Route:
    """A path as it is described, the methods it has, and how the header `Allow` lists them."""

    path: str
    methods: frozenset[str]
    allow: str


Find: TypeAlias = Callable[[str], Route | None]

_ANY = "{}"
"""Stands in the tree for a parameter: a brace is never sent unescaped."""
_HERE = ""
"""Leads in the tree to the route that ends there: no part of a path that is found is empty."""


def routes_of(operations: Iterable[tuple[str, str]]) -> Find:
    """Finds the route of a raw path among operations, given as (path, method)."""
    methods: dict[str, set[str]] = {}
    for path, method in operations:
        methods.setdefault(path, {"OPTIONS"}).add(method.upper())
    routes = [_route(path, found) for path, found in methods.items()]
    plain = {route.path: route for route in routes if "{" not in route.path}
    tree: dict[str, Any] = {}
    for route in routes:
        node = tree
        for part in route.path.split("/")[1:]:
            node = node.setdefault(_ANY if part.startswith("{") else part, {})
        node[_HERE] = route

    def find(path: str) -> Route | None:
        return plain.get(path) or _walk(tree, path)

    return find


def plain(path: str) -> str:
    """A path as it is described, without the types of its parameters."""
    return path.replace(":str}", "}")


def _walk(tree: dict[str, Any], path: str) -> Route | None:
    node = tree
    for part in path.split("/")[1:]:
        if not part:
            return None
        found = node.get(part) or node.get(_ANY)
        if found is None:
            return None
        node = found
    return node.get(_HERE)


def _route(path: str, methods: set[str]) -> Route:
    """`HEAD` is wherever `GET` is."""
    if "GET" in methods:
        methods = methods | {"HEAD"}
    return Route(path, frozenset(methods), ", ".join(sorted(methods)))
