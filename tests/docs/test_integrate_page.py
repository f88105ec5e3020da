"""The integrator's page, from its first step to its last, against the real service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.client import Tollkeeper
from tollkeeper.tests.docs.test_api_page import run_commands
from tollkeeper.tests.service.process import PATIENCE_S, serving

PAGE = Path(__file__).parents[2] / "docs" / "integrate.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_step_leads_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Tollkeeper.__init__.__kwdefaults__, "timeout", PATIENCE_S)
    folder, known = tmp_path / "data", dict[str, Any]()
    blocks = BLOCK.findall(PAGE.read_text())
    for kind, text in blocks:
        if kind == "sh":
            run_commands(text, folder, known)
    with serving(folder, ["--reach", "any"]) as service:
        try:
            for kind, text in blocks:
                if kind == "python":
                    exec(text.replace("http://127.0.0.1:8000", service.url), known)
        finally:
            if "server" in known:
                known["server"].shutdown()
                known["server"].server_close()
            known["client"].close()
    assert len(known["received"]) == 3
