"""
What the upstream says, so that every lost, doubled or foreign character can be told.

An answer counts: "0 1 2 …", with signs outside ASCII in between, and names its own prompt in every
paragraph. Prompts are never used twice, so no two answers of a run share a paragraph.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from streaming.upstream.script import pieces

# Read by every counting script; the upstream puts the prompt in the place of the braces.
_HEAD = "**{prompt}** counts:"
_SIGNS = ("", "é", "", "漢字", "", "😀", "", "👩‍👩‍👧")
_IN_PARAGRAPH = 24


@dataclass(frozen=True, slots=True)
class Script:
    """One script, and what may be believed of it. `rate` is in pieces a second."""

    name: str
    tokens: int
    rate: float
    thinks: int = 0  # tokens of reasoning before the text
    tail: str = ""  # the last step, as TOML; without one the answer finishes
    head: str = ""  # keys at the top of the file, as TOML

    @property
    def finishes(self) -> bool:
        return not self.tail and not self.head.startswith("refuse")

    @property
    def seconds(self) -> float:
        """How long the whole answer takes, at its rate."""
        return (len(self.pieces("p"))) / self.rate

    def text(self, prompt: str) -> str:
        return count(prompt, self.tokens)

    def reasoning(self, prompt: str) -> str:
        return count(prompt, self.thinks) if self.thinks else ""

    def pieces(self, prompt: str) -> list[str]:
        """Give what the upstream sends in one frame each: reasoning first, then text."""
        return pieces(self.reasoning(prompt)) + pieces(self.text(prompt))

    def write(self, folder: Path) -> None:
        says = [f"[[step]]\nreasoning = {_toml(self.reasoning('{prompt}'))}\necho = true"] if self.thinks else []
        says.append(f"[[step]]\ntext = {_toml(self.text('{prompt}'))}\necho = true")
        if self.tail:
            says.append(f"[[step]]\n{self.tail}")
        (folder / f"{self.name}.toml").write_text("\n".join([self.head, *says, ""]), "utf-8")

    def catalogue_entry(self) -> str:
        """Give the model that plays this script. Its deadlines are short: a run can't wait for minutes."""
        # Those of the directed scenarios may have to be silent for a minute.
        first, idle = (12, 8) if self in (*COUNTING, *FAILING) else (90, 90)
        address = "TORTURE_UPSTREAM" if self.finishes else "TORTURE_FAILING"
        deadlines = {"connect_s": 5, "first_byte_s": first, "idle_s": idle, "payload_idle_s": idle, "total_s": 300}
        return (
            f'[[models]]\nid = "{self.name}"\nlabel = "{self.name}"\nadapter = "openai_chat"\n'
            f'address_env = "{address}"\nmodel = "{self.name}@{self.rate:g}"\n'
            f"deadlines = {{ {', '.join(f'{name} = {seconds}' for name, seconds in deadlines.items())} }}\n"
        )


def count(prompt: str, tokens: int) -> str:
    """Count from 0 in paragraphs, each of which begins with the prompt."""
    paragraphs = []
    for start in range(0, tokens, _IN_PARAGRAPH):
        numbers = range(start, min(start + _IN_PARAGRAPH, tokens))
        words = (f"{n}{_SIGNS[n % len(_SIGNS)]}" for n in numbers)
        paragraphs.append(f"{_HEAD.replace('{prompt}', prompt)} {' '.join(words)}\n\n")
    return "".join(paragraphs)


# Short and long, fast and slow; together about 8 s each, so that faults have something to strike.
COUNTING = (
    Script("count-short", tokens=30, rate=12),
    Script("count", tokens=110, rate=40),
    Script("count-long", tokens=240, rate=80),
    Script("count-slow", tokens=12, rate=5),
    Script("count-thinking", tokens=60, rate=30, thinks=30),
    Script("count-late", tokens=50, rate=30, head="open_after_s = 3"),
)
FAILING = (
    Script("error-midway", tokens=30, rate=30, tail='error = { code = "upstream_reported", message = "scripted" }'),
    Script("cut-midway", tokens=30, rate=30, tail='cut = "end"'),
    Script("reset-midway", tokens=30, rate=30, tail='cut = "reset"'),
    Script("stalls", tokens=30, rate=30, tail="pause_s = inf"),
    Script("refuses-429", tokens=5, rate=30, head="refuse = { status = 429, retry_after_s = 0.5 }"),
    Script("refuses-500", tokens=5, rate=30, head="refuse = { status = 500 }"),
)
# For the directed scenarios, most of which say themselves when an answer ends.
DIRECTED = (
    Script("count-quick", tokens=45, rate=45),
    Script("count-on", tokens=6_000, rate=25),
    Script("never-opens", tokens=5, rate=30, head="open_after_s = 3600"),
    Script("count-silent", tokens=12, rate=30, tail="pause_s = inf"),
    Script("flood", tokens=120_000, rate=4_000),
)
ALL = {script.name: script for script in (*COUNTING, *FAILING, *DIRECTED)}


def write_all(folder: Path) -> Path:
    """Write every script, and the catalogue that offers them; give the catalogue's path."""
    for script in ALL.values():
        script.write(folder)
    catalogue = folder.parent / "models.toml"
    catalogue.write_text("\n".join(script.catalogue_entry() for script in ALL.values()), "utf-8")
    return catalogue


def _toml(text: str) -> str:
    # A JSON string is a TOML string, as long as no sign is written as two escaped surrogates.
    return json.dumps(text, ensure_ascii=False)
