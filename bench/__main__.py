"""Every benchmark, one after the other, in short: `python -m tollkeeper.bench`."""

from __future__ import annotations

import subprocess
import sys

QUESTIONS = (
    "rules",
    "scores",
    "validation",
    "clients",
    "lists",
    "windows",
    "rebuild",
    "journal",
    "http",
    "crash",
)


def main() -> None:
    for name in QUESTIONS:
        print(f"\n## {name}\n", flush=True)
        subprocess.run([sys.executable, "-m", f"tollkeeper.bench.{name}"], check=False)


if __name__ == "__main__":
    main()
