"""The rooms: imports run downwards only, and what decides and what replays is there once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tollkeeper
from tollkeeper.tests.architecture.trees import tree

ROOT = Path(tollkeeper.__path__[0]).resolve()
PRODUCT = ("grammar", "engine", "api")
LAYERS = ("grammar", "engine", "api", "cli")
"""Each imports from those before it."""
ROOMS = (
    "release",
    "instants",
    "log",
    "progress",
    "decision",
    "journal",
    "folder_key",
    "intake",
    "facts",
    "lists",
    "velocity",
    "small_file",
    "amendments_file",
    "lateness",
    "console_address",
    "registry",
    "programs",
    "stored_records",
    "monitors",
    "shadow_queue",
    "record_locks",
    "clock_watch",
    "runtime",
    "webhook_secrets",
    "purge_alerts",
    "enter_alerts",
    "keep",
    "decide",
    "labels",
    "update",
    "events",
    "shadows",
    "filling",
    "make_change",
    "shipped",
    "window_snapshot",
    "open",
    "read_folder",
    "publish",
    "openid",
    "webhooks",
    "key_uses",
    "keep_accesses",
    "watching",
    "explain",
    "search",
    "nodes",
    "privacy",
    "following",
    "backup",
    "columns",
    "offline",
)
"""The engine's rooms in the order of a payment's way; each imports from those before it."""


class Import(NamedTuple):
    file: Path
    line: int
    module: tuple[str, ...]
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {'.'.join(self.module)}"


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        path = ROOT / folder
        yield from [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))


def imports(file: Path) -> Iterator[Import]:
    """What a file imports of the project; modules are named without the package."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tollkeeper"):
            module = tuple(str(node.module).split(".")[1:])
            names = tuple(each.name for each in node.names)
            yield Import(file.relative_to(ROOT), node.lineno, module, names)
        elif isinstance(node, ast.Import):
            for each in node.names:
                if each.name.startswith("tollkeeper."):
                    module = tuple(each.name.split(".")[1:])
                    yield Import(file.relative_to(ROOT), node.lineno, module, ())


def room_of(file: Path) -> str:
    return file.relative_to(ROOT / "engine").parts[0].removesuffix(".py")


def test_the_product_imports_neither_bench_nor_tests() -> None:
    found = [
        str(each)
        for file in files(*PRODUCT, "cli.py")
        for each in imports(file)
        if each.module[:1] in (("bench",), ("tests",))
    ]
    assert found == []


def test_grammar_knows_no_engine_and_the_engine_no_api() -> None:
    upward = [
        str(each)
        for layer in PRODUCT
        for file in files(layer)
        for each in imports(file)
        if each.module and LAYERS.index(each.module[0]) > LAYERS.index(layer)
    ]
    assert upward == []


def test_each_room_of_the_engine_has_its_place_in_the_order() -> None:
    there = {room_of(file) for file in files("engine")} - {"__init__"}
    assert there <= set(ROOMS)


def test_rooms_import_from_those_before_them() -> None:
    upward = []
    for file in files("engine"):
        room = room_of(file)
        for each in imports(file):
            if each.module[:1] != ("engine",):
                continue
            # What is in C has the name of the module that it is a part of.
            above = [name.removeprefix("_") for name in each.module[1:2] or each.names]
            upward += [str(each) for other in above if ROOMS.index(other) > ROOMS.index(room)]
    assert upward == []


def definitions(name: str) -> set[str]:
    """The modules of the engine with a function of this name outside of any class."""
    return {
        str(file.relative_to(ROOT / "engine"))
        for file in files("engine")
        for node in tree(file).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    }


def test_there_is_one_decider() -> None:
    assert definitions("decide") == {"programs/decider.py"}


def test_only_the_decider_looks_at_thresholds_or_makes_an_analysed_decision() -> None:
    """A score becomes an action there, and nowhere else."""
    compared = {
        str(file.relative_to(ROOT / "engine"))
        for file in files("engine")
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and part.attr in {"challenge", "deny"}
    }
    # The second states to a solver what the first decides.
    assert compared == {"programs/decider.py", "offline/prove/questions.py"}
    made = {
        str(file.relative_to(ROOT / "engine"))
        for file in files("engine")
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Decision"
        and {"score", "reads"} <= {each.arg for each in node.keywords}
    }
    assert made == {"programs/decider.py"}


def test_programs_run_in_the_decider_alone() -> None:
    """The compiled functions of rules and scorecards are called by nobody else."""
    calls = {
        str(file.relative_to(ROOT / "engine"))
        for file in files("engine")
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr, getattr(node.func.value, "id", None))
        in {("decide", "rule"), ("score", "scorecard"), ("decide", "loaded"), ("score", "loaded")}
    }
    assert calls == {"programs/decider.py"}


def test_histories_are_replayed_in_one_place() -> None:
    """One loop takes a history in its order; tests, cases, fits and backtests are inputs of it.

    All of them count in the windows of live traffic.
    """
    made = {
        str(file.relative_to(ROOT / "engine"))
        for file in files("engine")
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Windows"
    }
    # A recount fills windows from the journal, as a start does, and reads nothing of them.
    assert made == {
        "open.py",
        "offline/replay.py",
        "backup/recount.py",
    }
    assert definitions("replay") == {"offline/replay.py"}
    replaying = {
        str(file.relative_to(ROOT / "engine"))
        for file in files("engine")
        for each in imports(file)
        if each.module == ("engine", "offline", "replay")
        and {"replay", "replay_live"} & set(each.names)
    }
    assert replaying == {
        "offline/backtest/replay.py",
        "offline/fit/replay.py",
        "offline/testing/cases.py",
        "offline/testing/evaluation.py",
        "offline/testing/event_blocks.py",
        "offline/testing/history.py",
    }


def test_only_the_replay_steps_through_a_history() -> None:
    """Nobody else in `offline/` looks at what kind of happening comes next and counts it."""
    stepping = {
        str(file.relative_to(ROOT / "engine"))
        for file in files("engine/offline")
        for loop in ast.walk(tree(file))
        if isinstance(loop, ast.For | ast.AsyncFor)
        for node in ast.walk(loop)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"observe", "pass_by", "happen"}
    }
    assert stepping == set()
