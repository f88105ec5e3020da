"""What is installed: the root of the repository is the import package `tollkeeper`.

Its rooms are found, and whatever lies in them goes along, so that a new one needs no line here.
"""

from pathlib import Path

from setuptools import Extension, find_namespace_packages, setup

ROOMS = ("api", "engine", "grammar", "rules")

inside = find_namespace_packages(
    include=[pattern for room in ROOMS for pattern in (room, f"{room}.*")],
    exclude=["*.__pycache__"],
)
setup(
    script_name="setup.py",  # this file is known by its name, and stays out of the package
    packages=["tollkeeper", *(f"tollkeeper.{name}" for name in inside)],
    package_dir={"tollkeeper": "."},
    package_data={"tollkeeper": ["py.typed"], **{f"tollkeeper.{name}": ["*"] for name in inside}},
    exclude_package_data={"": ["*.so", "*.pyd"]},
    include_package_data=False,
    # Each is some times faster in C; where that can't be built, it is in Python.
    ext_modules=[
        Extension(
            f"tollkeeper.{'.'.join(source.with_suffix('').parts)}",
            [str(source)],
            depends=list(map(str, source.parent.glob("*.h"))),
            optional=True,
        )
        for source in sorted(Path("engine").rglob("_*.c"))
    ],
)
