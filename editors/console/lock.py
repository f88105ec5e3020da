"""Writes `vendor.json`, what each vendored file is made of, and the licences beside the files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "api" / "console" / "static" / "vendor"
PACKAGES = {
    "htmx.js": ("htmx.org",),
    "uplot.js": ("uplot",),
    "uplot.css": ("uplot",),
    "codemirror.js": (
        "@codemirror/autocomplete",
        "@codemirror/commands",
        "@codemirror/language",
        "@codemirror/lint",
        "@codemirror/state",
        "@codemirror/view",
        "@lezer/common",
        "@lezer/highlight",
        "@marijn/find-cluster-break",
        "crelt",
        "style-mod",
        "w3c-keyname",
    ),
}


def main() -> None:
    installed = json.loads((HERE / "package-lock.json").read_text())["packages"]
    vendored = {
        name: {
            "sha256": hashlib.sha256((STATIC / name).read_bytes()).hexdigest(),
            "packages": [
                {
                    "name": package,
                    "version": installed[f"node_modules/{package}"]["version"],
                    "license": installed[f"node_modules/{package}"]["license"],
                }
                for package in packages
            ],
        }
        for name, packages in PACKAGES.items()
    }
    packages = sorted({package for packages in PACKAGES.values() for package in packages})
    texts = [f"{package}\n\n{_licence(package)}" for package in packages]
    (STATIC / "LICENSES.txt").write_text(f"\n\n{'-' * 78}\n\n".join(texts) + "\n")
    (HERE / "vendor.json").write_text(json.dumps(vendored, indent=2) + "\n")


def _licence(package: str) -> str:
    found = next((HERE / "node_modules" / package).glob("LICENSE*"))
    return found.read_text().strip()


if __name__ == "__main__":
    main()
