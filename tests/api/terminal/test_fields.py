"""`toll fields` tells who asks by another system's name how it is said here, as the checker does."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tollkeeper.cli import main


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("user_agent", '; did you mean `device.headers["User-Agent"]`?'),
        ("amout", "; did you mean `amount`?"),
        ("card_country", "; look it up in a table of yours: `@bins[method.card.bin].country`"),
        ("xyz", ""),
    ],
)
def test_who_asks_for_another_name_is_told_this_one(asked: str, told: str) -> None:
    ended = CliRunner().invoke(main, ["fields", asked])
    assert ended.exit_code == 1
    assert " ".join(ended.output.split()) == f"nothing that a rule can name fits `{asked}`{told}"
