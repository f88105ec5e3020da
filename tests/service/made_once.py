"""What services and commands make as they start, made in the process that those of tests are forked from."""

from __future__ import annotations

import gc
from importlib import import_module

from tollkeeper.api.console.application import _console
from tollkeeper.api.http.app import _framework
from tollkeeper.api.http.routes import ROUTES
from tollkeeper.engine.facts.clients.user_agent import claim
from tollkeeper.engine.programs.load import shipped_scorecard

LOADED_BY_COMMANDS = (
    "tollkeeper.api.terminal.assistant",
    "tollkeeper.api.terminal.lsp.server",
    "tollkeeper.api.terminal.testing.run",
    "tollkeeper.engine.offline.prove.worker",
)

for name in LOADED_BY_COMMANDS:
    import_module(name)
_framework(ROUTES)
_console()
claim("tollkeeper")
shipped_scorecard()
# What is there is never looked at by the collections of those that are forked. Garbage stays
# among it: to look for it takes as long as to load the language server.
gc.freeze()
gc.enable()
