"""A module as it is where C can't be built, beside the one that is in use."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from typing import Any
from unittest.mock import patch


def in_python(name: str, *compiled: str) -> Any:
    """The module `name`, made anew without the `compiled` ones."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with patch.dict(sys.modules, {name: module, **dict.fromkeys(compiled)}):
        spec.loader.exec_module(module)
    return module


def both_builds(name: str, *compiled: str) -> list[Any]:
    """The module `name` as it is in use, and as it is without the `compiled` ones."""
    return [sys.modules[name], in_python(name, *compiled)]
