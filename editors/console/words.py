"""Writes `words.mjs`: the language's words, for the editor to colour. Run by `make vendor`."""

from __future__ import annotations

import json
from pathlib import Path

from tollkeeper.grammar.parser import keywords

if __name__ == "__main__":
    words = json.dumps(sorted(keywords()))
    Path(__file__).with_name("words.mjs").write_text(f"export const words = {words};\n")
