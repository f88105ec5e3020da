from collections.abc import Mapping

def values_of(
    headers: Mapping[str, str], names: tuple[str, ...], longest: int, /
) -> tuple[str | None, ...]: ...
