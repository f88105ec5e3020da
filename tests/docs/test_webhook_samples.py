"""The samples that check a webhook's signature are run, each where its language is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tollkeeper.engine.webhooks.delivery import webhook_signature

PAGE = Path(__file__).parents[2] / "docs" / "events.md"
SAMPLES = dict(
    re.findall(r"^```(typescript|java|php)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
)
TYPES = re.compile(r": (?:Buffer|string|boolean)\b| as \[string, string\]")
BODY, SECRET = '{"alert": {"key": ["é"]}}', "an-example-secret-of-32-letters"
IMPORTS = """import java.security.*; import java.util.*; import javax.crypto.*;
import javax.crypto.spec.*; import static java.nio.charset.StandardCharsets.UTF_8;
"""


def headers() -> list[str]:
    """A good signature beside that of an older secret, then three that must not pass."""
    now, body = int(time.time()), BODY.encode()
    return [
        webhook_signature(["the older secret", SECRET], now, body),
        webhook_signature(["the older secret"], now, body),
        webhook_signature([SECRET], now - 3600, body),
        "",
    ]


def command(language: str, folder: Path) -> list[str]:
    sample = SAMPLES[language]
    if language == "typescript":
        calls = f"for (const h of {json.dumps(headers())}) console.log(verified("
        calls += f"Buffer.from({json.dumps(BODY)}), h, {json.dumps(SECRET)}));"
        (folder / "check.mjs").write_text(TYPES.sub("", sample) + calls)
        return ["node", str(folder / "check.mjs")]
    if language == "java":
        told = "".join(
            f"System.out.println(verified({json.dumps(BODY)}.getBytes(UTF_8), {json.dumps(each)},"
            f" {json.dumps(SECRET)}));"
            for each in headers()
        )
        main = f"public static void main(String[] a) throws Exception {{ {told} }}"
        (folder / "Check.java").write_text(f"{IMPORTS}class Check {{ {sample} {main} }}")
        return ["java", str(folder / "Check.java")]
    told = "".join(
        f"echo verified('{BODY}', '{each}', '{SECRET}') ? \"true\\n\" : \"false\\n\";"
        for each in headers()
    )
    (folder / "check.php").write_text(f"<?php {sample} {told}")
    return ["php", str(folder / "check.php")]


@pytest.mark.parametrize("language", ["typescript", "java", "php"])
def test_a_sample_takes_good_signatures_and_no_others(language: str, tmp_path: Path) -> None:
    program = command(language, tmp_path)
    if shutil.which(program[0]) is None:
        pytest.skip(f"`{program[0]}` is not installed")
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["true", "false", "false", "false"], done.stderr
