"""Output of commands: tables, JSON, messages, exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console, RenderHook

if TYPE_CHECKING:
    from rich.console import (
        ConsoleOptions,
        ConsoleRenderable,
        RenderableType,
        RenderResult,
    )
    from rich.text import Text

    from tollkeeper.engine.intake.violations import Violation

OK, NO, USAGE = 0, 1, 2
PIPE_WIDTH = 10_000

_CONTROLS = {code for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_SHOWN = dict.fromkeys(_CONTROLS, "\N{REPLACEMENT CHARACTER}")
_ESCAPED = {code: f"\\u{code:04x}" for code in _CONTROLS}


class _Harmless(RenderHook):
    """Shows control characters in data as a sign: a terminal would obey them."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Shown(each) for each in renderables]


class _Shown:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            is_ours = segment.control is not None
            yield segment if is_ours else segment._replace(text=segment.text.translate(_SHOWN))


def _console(**settings: Any) -> Console:
    # Without markup, since data from outside may contain brackets.
    console = Console(markup=False, highlight=False, **settings)
    console.push_render_hook(_Harmless())
    return console


out = _console()
err = _console(stderr=True)


def say(message: str, style: str = "") -> None:
    """Print a line for a person on standard error, unwrapped in a pipe."""
    err.print(message, style=style, soft_wrap=True)


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines for a person on standard output, unwrapped in a pipe."""
    for line in lines:
        out.print(line, soft_wrap=True)


def refuse(message: str) -> NoReturn:
    say(message, style="red")
    sys.exit(NO)


def refuse_all(violations: Sequence[Violation]) -> NoReturn:
    for violation in violations:
        say(f"{violation.field}: {violation.message}", style="red")
    sys.exit(NO)


def warn_all(warnings: Sequence[Violation]) -> None:
    for each in warnings:
        say(f"{each.field} warning[{each.type}]: {each.message}", style="yellow")


def show_rows(titles: Sequence[str], rows: Sequence[Sequence[object]], as_json_: bool) -> None:
    """Print a table for people, or an object per row for programs."""

    from rich.table import Table

    if as_json_:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title.replace("_", " "), no_wrap=not out.is_terminal)
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    show_whole(table)


def show_whole(drawn: RenderableType) -> None:
    """Print without cutting to a width in a pipe."""
    piped = _console(width=PIPE_WIDTH)
    (out if out.is_terminal else piped).print(drawn, soft_wrap=True)


def print_json(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False).translate(_ESCAPED)
    print(text)  # noqa: T201 - for a program


def json_line(value: Any) -> str:
    import msgspec

    return "" if not value else json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def say_cursor(cursor: int | None) -> None:
    if cursor is not None:
        say(f"there are more: --cursor {cursor}")


def plural(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    is_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{number} {noun[:-1]}ies" if is_ies else f"{number} {noun}s"


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on a terminal, nothing in a pipe; it appears at the first progress."""

    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    if not err.is_terminal:
        yield lambda _share: None
        return
    columns = (TextColumn(label), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(label, total=1.0, visible=False)
        yield lambda share: bar.update(task, completed=share, visible=share < 1.0)


@contextmanager
def counter(label: str) -> Iterator[Callable[[int], None]]:
    """Show a running count on a terminal, nothing in a pipe."""
    if not err.is_terminal:
        yield lambda _count: None
        return
    with err.status(label) as status:
        yield lambda count: status.update(f"{count} {label}")
