"""What is installed from a release: every file of the rooms, and none of the tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("api", "engine", "grammar", "rules")
BUILD = "import sys, setuptools.build_meta as backend; getattr(backend, sys.argv[1])(sys.argv[2])"
MADE = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "data", "node_modules")


def build(kind: str, source: Path, into: Path) -> Path:
    """Builds the distribution of `source` as pip would, `kind` being its hook; the file made."""
    before = set(into.iterdir())
    command = [sys.executable, "-c", BUILD, f"build_{kind}", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (made,) = set(into.iterdir()) - before
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that is built from the source distribution, as a packager builds it."""
    folder = tmp_path_factory.mktemp("distribution")
    source = shutil.copytree(ROOT, folder / "source", ignore=MADE)
    with tarfile.open(build("sdist", source, folder)) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    assert (unpacked / "tests" / Path(__file__).name).is_file()
    return build("wheel", unpacked, folder)


def files() -> set[str]:
    found = (path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file())
    inside = (
        path.relative_to(ROOT)
        for path in found
        if path.suffix not in (".so", ".pyd") and "__pycache__" not in path.parts
    )
    return {"cli.py", "client.py", "py.typed", *map(str, inside)}


def test_a_wheel_has_every_file_of_the_rooms_and_nothing_else(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    compiled = {name for name in packed if name.endswith((".so", ".pyd"))}
    assert packed - compiled == {f"tollkeeper/{name}" for name in files()}


def test_the_service_starts_from_the_small_lock_which_agrees_with_the_whole_one() -> None:
    small, whole = (
        pins(ROOT / name) for name in ("requirements-service.lock", "requirements.lock")
    )
    assert small.items() <= whole.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {name.split(">")[0].split("[")[0] for name in project["dependencies"]}
    assert needed <= small.keys()
    assert "pytest" not in small


def test_the_image_is_installed_from_a_lock_that_agrees_with_the_whole_one() -> None:
    service, image, whole = (
        pins(ROOT / f"requirements{name}.lock") for name in ("-service", "-image", "")
    )
    assert service.items() < image.items() < whole.items()
    assert {"joserfc", "psycopg-binary", "opentelemetry-sdk"} < image.keys()


def pins(lock: Path) -> dict[str, str]:
    lines = (line.split(" ")[0] for line in lock.read_text().splitlines() if "==" in line)
    return dict(line.split("==") for line in lines)
