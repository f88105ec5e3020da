"""Makes the folder that `test_last_release.py` opens, by what the release itself can do.

    TOLL=/a/release/.venv/bin/toll python tests/releases/make_folder.py tests/releases/NAME.tar.gz

The release's own commands and HTTP make it, so that the script serves every release to come.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TOLL = os.environ["TOLL"]
URL = "http://127.0.0.1:18473"
RULE = """rule gate
  list blocked: string
  condition listed "On our list" when user.id in @blocked then deny
  condition known when age(payments by user.id) > 1d then allow
  condition busy when count(payments by user.id over 30d) > 2 then challenge
"""
EVENT_TYPE = """event sign_in
  field account: string required
  metric failures = count(events by account over 30d)
  monitor guessing "Many sign-ins" when failures >= 2
"""


def main(target: str) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place, "data")
        for name, text in (("gate.rule", RULE), ("sign_in.rule", EVENT_TYPE)):
            Path(place, name).write_text(text)
        toll(folder, "accounts", "create", "shop")
        key = toll(folder, "keys", "create", "--account", "shop", "--scope", "admin")
        serving = subprocess.Popen([TOLL, "serve", "--port", URL[-5:], "--data", str(folder)])
        try:
            wait_until_ready()
            fill(folder, Path(place), key)
        finally:
            serving.terminate()
            serving.wait()
        with tarfile.open(target, "w:gz") as packed:
            for path in sorted(folder.glob("*.db")):
                packed.add(path, path.name)
        sys.stdout.write(f"{target} has the key {key}\n")


def toll(folder: Path, *arguments: str) -> str:
    command = [TOLL, *arguments, "--data", str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def fill(folder: Path, place: Path, key: str) -> None:
    for name in ("gate.rule", "sign_in.rule"):
        toll(folder, "publish", str(place / name), "--account", "shop")
    toll(folder, "lists", "add", "blocked", "u-9", "--account", "shop")
    hook = {"webhook": {"url": "https://shop.example/alerts", "secrets": ["a-secret-of-letters"]}}
    ask("PUT", "/v1/webhooks", hook, key)
    for number in range(4):
        ask("POST", "/v1/payments", payment(f"p-{number}", "u-1"), key, f"key-{number}")
    ask("POST", "/v1/payments", payment("p-listed", "u-9"), key)
    ended = {"payment": {"status": "blocked"}}
    ask("PATCH", "/v1/payments/p-1", ended, key)
    for number in range(2):
        event = {"type": "sign_in", "id": f"s-{number}", "data": {"account": "u-1"}}
        ask("POST", "/v1/events", {"event": event}, key)


def payment(id_: str, user: str) -> dict[str, Any]:
    return {
        "payment": {
            "id": id_,
            "type": "purchase",
            "currency": "EUR",
            "amount": 12.5,
            "method": {"type": "credit_card"},
            "merchant": {"id": "m-1"},
            "user": {"id": user},
            "device": {"ip_address": "203.0.113.7", "headers": {"User-Agent": "curl/8.5"}},
            "analyze": {"bot_behaviour": True, "rule": {"name": "gate"}},
        }
    }


def ask(method: str, path: str, body: Any, key: str, repeat_key: str | None = None) -> None:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    if repeat_key is not None:
        headers["idempotency-key"] = repeat_key
    sent = urllib.request.Request(f"{URL}{path}", json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(sent):
        pass


def wait_until_ready() -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{URL}/health/ready"):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)


if __name__ == "__main__":
    main(sys.argv[1])
