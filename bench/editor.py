"""How long after a keystroke does an editor show what is wrong with a rule?

    python -m tollkeeper.bench.editor [--strokes N]

`toll lsp` runs over standard input and output in a folder of rule files: each stroke sends the
changed text, as an editor does, and waits for the diagnostics of that text. The latency includes
the time for which the server waits for the author to pause; the processor time is the server's own.
On a busy machine a latency also includes waiting for a core: with a core of its own, a stroke takes
that pause plus the processor time.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import IO, Any

from msgspec import json

from tollkeeper.api.terminal.lsp.teller import QUIET_S
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.cli import COMMAND_COLLECTS_AT
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames

ENTRY = "from tollkeeper.cli import main; main()"
DEFINITIONS = 10
"""One in so many files is a definitions file."""


def rule(name: str, lines: int) -> str:
    """Return a rule of about so many lines: half aggregates over history, half conditions."""
    each = range((lines - 1) // 4)
    lets = [
        f"  let x{i} = count(payments by user.id, merchant.id over {i % 48 + 1}h where amount > {i})"
        for i in each
    ]
    conditions = [
        f'  condition c{i} "Too many {i}"\n'
        f"    when x{i} > {i % 7 + 3} and amount between 10 and {100 + i}"
        f' and currency == "EUR" and device.ip_address is present\n'
        f"    then deny"
        for i in each
    ]
    return "\n".join([f"rule {name}", *lets, *conditions]) + "\n"


def fill(folder: Path, files: int) -> None:
    """Write so many files, a tenth of them definitions that the others use."""
    for number in range(files):
        name = f"file_{number}"
        if number % DEFINITIONS == 0:
            text = f"definitions {name}\n" + "".join(
                f"  let shared_{number}_{i} = count(payments by user.id over {i + 1}h)\n"
                for i in range(20)
            )
        else:
            of = number - number % DEFINITIONS
            text = rule(name, 60).replace("\n", f"\n  use file_{of}\n", 1)
            text = text.replace("when x0", f"when shared_{of}_0 > 3 and x0")
        (folder / f"{name}.rule").write_text(text)


class Editor:
    """The client of a server: one thread, one request at a time."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._in: IO[bytes] = process.stdin
        self._out: IO[bytes] = process.stdout
        root = {"uri": folder.as_uri(), "name": folder.name}
        self.ask("initialize", processId=None, capabilities={}, workspaceFolders=[root])
        self.tell("initialized")

    def tell(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        self._send({"id": 1, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == 1:
                return message["result"]

    def diagnostics(self, uri: str, version: int) -> list[Any]:
        while True:
            message = self._read()
            params = message.get("params", {})
            if params.get("uri") == uri and params.get("version") == version:
                found: list[Any] = params["diagnostics"]
                return found

    def cpu_s(self) -> float:
        """The processor time that the server has used."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in threads) / 1e9

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.encode({"jsonrpc": "2.0", **message})
        self._in.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._in.flush()

    def _read(self) -> dict[str, Any]:
        length = 0
        while (line := self._out.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        message: dict[str, Any] = json.decode(self._out.read(length))
        return message


@contextmanager
def editing(folder: Path) -> Iterator[Editor]:
    command = [sys.executable, "-c", ENTRY, "lsp"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        editor = Editor(process, folder)
        yield editor
        editor.ask("shutdown")
        editor.tell("exit")
    finally:
        process.kill()
        process.wait()


def type_in(editor: Editor, path: Path, text: str, strokes: int) -> tuple[list[float], list[float]]:
    """Return each stroke's latency, and the server's processor time for it, in ms."""
    uri = path.as_uri()
    document = {"uri": uri, "languageId": "toll", "version": 0, "text": text}
    editor.tell("textDocument/didOpen", textDocument=document)
    editor.diagnostics(uri, 0)
    latencies, used = [], []
    for version in range(1, strokes + 1):
        place = text.index("    then deny") - 1
        typed = f"{text[:place]} # {'x' * (version % 40)}{text[place:]}"
        begun, before = perf_counter(), editor.cpu_s()
        which = {"uri": uri, "version": version}
        editor.tell("textDocument/didChange", textDocument=which, contentChanges=[{"text": typed}])
        editor.diagnostics(uri, version)
        latencies.append((perf_counter() - begun) * 1000)
        used.append((editor.cpu_s() - before) * 1000)
    editor.tell("textDocument/didClose", textDocument={"uri": uri})
    return latencies, used


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def check_ms(text: str) -> float:
    """Return the processor time of the best of five checks, with the collector frozen as in the
    server.
    """
    content = text.encode()
    gc.freeze()
    gc.set_threshold(*COMMAND_COLLECTS_AT)

    def once() -> float:
        begun = process_time()
        read_file(content, KnownNames())
        return (process_time() - begun) * 1000

    return min(once() for _ in range(5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strokes", type=int, default=100)
    strokes = parser.parse_args().strokes
    rows, latest = [], 0.0
    for lines, files in ((30, 1), (300, 1), (300, 100), (2_000, 100)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fill(folder, files - 1)
            path, text = folder / "mine.rule", rule("mine", lines)
            path.write_text(text)
            with editing(folder) as editor:
                type_in(editor, path, text, 5)
                latencies, used = type_in(editor, path, text, strokes)
        if (lines, files) == (300, 100):
            latest = QUIET_S * 1000 + p95(used)
        both = (statistics.median(latencies), p95(latencies), statistics.median(used), p95(used))
        rows.append((lines, files, *both, check_ms(text)))
    head = [
        "a file of … lines",
        "among … files",
        "median ms",
        "p95 ms",
        "server's CPU ms, median",
        "p95",
        "of it check",
    ]
    show(
        f"From a keystroke to its diagnostics; {QUIET_S * 1000:.0f} ms of it the server waits for the next",
        head,
        [(f"{row[0]:,}", *row[1:]) for row in rows],
    )
    show_targets(
        [
            Target(
                "p95 with a core of its own, 300 lines among 100 files, ms", latest, at_most=150
            ),
            Target("check of 2,000 lines, CPU s", rows[-1][-1] / 1000, at_most=0.2),
        ]
    )


if __name__ == "__main__":
    main()
