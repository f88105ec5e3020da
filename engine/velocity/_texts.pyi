from typing import Any

def number_texts(
    numbers: dict[str, int], added: list[str], values: list[Any], part: int, /
) -> bytes | None: ...
