"""The models that the browser tests talk to, and the scripts that some of them play."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from streaming.upstream.scripted import SCRIPTS
from tests.streaming.corpora import CORPORA, Payload, payloads

# Ids of models that play a script of the same name, maybe at another rate.
SCRIPTED = {
    "demo": "demo@200",
    "echo": "echo@400",
    "long": "long@50",
    "slow": "slow",
    "silent": "silent",
    "stalls": "stalls",
    "never-opens": "never-opens",
    "ending": "ending",
    "cut-midway": "cut-midway@200",
    "error-midway": "error-midway@200",
    "reset-midway": "reset-midway@200",
    "refuse-401": "refuse-401",
    "refuse-429": "refuse-429",
    "refuse-500": "refuse-500",
}
# With deadlines that a test can wait for.
_SHORT = "deadlines = { first_byte_s = 1, idle_s = 1 }\n"
IMPATIENT = {"silent-soon-told": "silent", "stalls-soon-told": "stalls@200"}
DRIPPING = ("tap-a", "tap-b", "tap-thinks")
BROKEN = ("html", "half-json")
CAREFUL, LIVELY = "smollm2-careful", "smollm2-lively"
KEYLESS, KEYLESS_REASON = "keyless", "Set SIDESTREAM_E2E_NO_SUCH_KEY to use this model."

_SMOLLM2 = """
[[models]]
id = "{id}"
label = "SmolLM2 {label}"
adapter = "llamacpp"
address_env = "SIDESTREAM_LLAMACPP_URL"
model = "SmolLM2-135M-Instruct"
system = "You are a helpful assistant. Answer clearly and briefly."
params = {{ temperature = {temperature}, max_tokens = 160 }}
context_tokens = 2048
"""
# Says everything at once and then waits for a moment: for what happens at the very end of an answer.
_ENDING = """
rate = 1000

[[step]]
text = "That was all."

[[step]]
pause_s = 3
"""
_HOSTILE_STEP = """
[[step]]
text = {text}
"""
# These hold what Markdown means, not what somebody tried with it.
_CONFORMANCE = ("commonmark_spec.json", "gfm_spec.json", "gfm_extensions.json")
HOSTILE = 40


def write_catalogue(file: Path, *, scripted: str, tap: str, refused: str) -> None:
    """Write MODELS_FILE, given where the upstreams are."""
    rows = [
        _SMOLLM2.format(id=CAREFUL, label="careful", temperature=0),
        _SMOLLM2.format(id=LIVELY, label="lively", temperature=1.0),
        *(_row(name, model, scripted) for name, model in {**SCRIPTED, **hostile_models()}.items()),
        *(_row(name, model, scripted, _SHORT) for name, model in IMPATIENT.items()),
        *(_row(name, name, tap) for name in (*DRIPPING, *BROKEN)),
        _row("refused-port", "x", refused),
        _row("no-such-host", "x", "http://models.invalid"),
        _row(KEYLESS, "x", scripted, 'key_env = "SIDESTREAM_E2E_NO_SUCH_KEY"\n'),
    ]
    file.write_text("".join(rows), "utf-8")


def write_scripts(folder: Path) -> None:
    """Put the scripts into a folder: the product's own, one for the end, and one for each hostile answer."""
    shutil.copytree(SCRIPTS, folder)
    (folder / "ending.toml").write_text(_ENDING, "utf-8")
    for number, payload in enumerate(hostile_payloads()):
        half = len(payload.text) // 2
        steps = [_HOSTILE_STEP.format(text=_quoted(part)) for part in (payload.text[:half], payload.text[half:])]
        (folder / f"hostile-{number}.toml").write_text("rate = 2000\n" + "".join(steps), "utf-8")


@cache
def hostile_payloads() -> Sequence[Payload]:
    """Give some payloads from all attack corpora, evenly; none where the corpora are not there."""
    if not CORPORA.is_dir():
        return ()
    attacks = (one for one in payloads() if one.file not in _CONFORMANCE)
    fit = [one for one in attacks if 2 <= len(one.text) <= 4000 and _is_valid(one.text)]
    return fit[:: len(fit) // (HOSTILE - 1)][:HOSTILE]


def hostile_models() -> Mapping[str, str]:
    return {f"hostile-{number}": f"hostile-{number}" for number in range(len(hostile_payloads()))}


def _is_valid(text: str) -> bool:
    """A lone surrogate cannot stand in a file. The core's own tests have those."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _row(name: str, model: str, address: str, more: str = "") -> str:
    head = f'\n[[models]]\nid = "{name}"\nlabel = "{name}"\nadapter = "openai_chat"\n'
    return f'{head}model = "{model}"\naddress = "{address}/v1"\n{more}'


def _quoted(text: str) -> str:
    """Write a TOML basic string: as JSON's, but only control characters are escaped, and DEL is one of them."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
