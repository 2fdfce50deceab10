"""
What the upstream says, so that every lost, doubled or foreign character can be told.

An answer counts: "17.0 17.1é 17.2 …", with signs outside ASCII in between. The number before the point is
that of the upstream's call, which no other call of a run has; so no two answers, and no two calls for one
answer, share a word. Each section names the prompt and the script besides.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from streaming.upstream.script import echoed, pieces

# Where a worker finds the upstream: all models but those that fail by themselves, and these.
UPSTREAM, FAILING_UPSTREAM = "TORTURE_UPSTREAM", "TORTURE_FAILING"
# The upstream puts prompt and call in the place of the braces.
_HEAD = "**{prompt}**, %s, call {call}:"
_SIGNS = ("", "é", "", "漢字", "", "😀", "", "👩‍👩‍👧")
_IN_SECTION = 12
# What a section's numbers stand in: the page shows blocks of different kinds, open and sealed.
_SECTIONS = ("%s\n\n", "- %s\n\n", "```\n%s\n```\n\n")


@dataclass(frozen=True, slots=True)
class Script:
    """One script, and what may be believed of it. `rate` is in pieces a second."""

    name: str
    tokens: int
    rate: float
    thinks: int = 0  # tokens of reasoning before the text
    tail: str = ""  # the last step, as TOML; without one the answer finishes
    head: str = ""  # keys at the top of the file, as TOML
    opens_after_s: float = 0.0
    error: str = ""  # the code that the answer fails with, if it fails by itself
    at_a_time: int | None = None  # answers that one worker lets it write at a time

    @property
    def finishes(self) -> bool:
        return not self.tail and not self.error

    @property
    def model(self) -> str:
        """The upstream's name of it."""
        return f"{self.name}@{self.rate:g}"

    @property
    def seconds(self) -> float:
        """How long the whole answer takes, at its rate."""
        return self.opens_after_s + len(self.pieces("p", 100)) / self.rate

    def text(self, prompt: str, call: int) -> str:
        return echoed(_count(self.name, self.tokens), prompt, call)

    def reasoning(self, prompt: str, call: int) -> str:
        return echoed(_count(self.name, self.thinks), prompt, call)

    def pieces(self, prompt: str, call: int) -> list[str]:
        """Give what the upstream sends in one frame each: reasoning first, then text."""
        return pieces(self.reasoning(prompt, call)) + pieces(self.text(prompt, call))

    def write(self, folder: Path) -> None:
        head = [self.head, f"open_after_s = {self.opens_after_s}"]
        says = [
            f"[[step]]\n{kind} = {_toml(_count(self.name, tokens))}\necho = true"
            for kind, tokens in (("reasoning", self.thinks), ("text", self.tokens))
            if tokens
        ]
        if self.tail:
            says.append(f"[[step]]\n{self.tail}")
        (folder / f"{self.name}.toml").write_text("\n".join([*head, *says, ""]), "utf-8")

    def catalogue_entry(self) -> str:
        """Give the model that plays this script. Its deadlines are short: a run can't wait for minutes."""
        # Those of the directed scenarios may have to be silent for a minute.
        first, idle = (90, 90) if self in DIRECTED else (12, 8)
        address = FAILING_UPSTREAM if self.error else UPSTREAM
        deadlines = {"connect_s": 5, "first_byte_s": first, "idle_s": idle, "payload_idle_s": idle, "total_s": 300}
        return (
            f'[[models]]\nid = "{self.name}"\nlabel = "{self.name}"\nadapter = "openai_chat"\n'
            f'address_env = "{address}"\nmodel = "{self.model}"\n'
            f"deadlines = {{ {', '.join(f'{name} = {seconds}' for name, seconds in deadlines.items())} }}\n"
            + (f"max_running = {self.at_a_time}\n" if self.at_a_time else "")
        )


def _count(script: str, tokens: int) -> str:
    """Count from 0 in sections, each of which begins with the prompt. Gives a text with places to fill."""
    sections = []
    for start in range(0, tokens, _IN_SECTION):
        numbers = range(start, min(start + _IN_SECTION, tokens))
        words = " ".join(f"{{call}}.{n}{_SIGNS[n % len(_SIGNS)]}" for n in numbers)
        section = _SECTIONS[start // _IN_SECTION % len(_SECTIONS)]
        sections.append(section % f"{_HEAD % script} {words}")
    return "".join(sections)


# Short and long, fast and slow; together about 8 s each, so that faults have something to strike.
COUNTING = (
    Script("count-short", tokens=14, rate=12),
    Script("count", tokens=60, rate=50),
    Script("count-long", tokens=120, rate=85),
    Script("count-slow", tokens=8, rate=7),
    Script("count-thinking", tokens=24, rate=30, thinks=12),
    Script("count-late", tokens=24, rate=30, opens_after_s=3),
)
# One answer at a time for each worker: the others wait in the queue, claimed and not begun.
QUEUEING = (Script("count-in-turn", tokens=16, rate=30, at_a_time=1),)
FAILING = (
    Script("error-midway", 12, 30, tail='error = { code = "boom", message = "scripted" }', error="upstream_reported"),
    Script("cut-midway", tokens=12, rate=30, tail='cut = "end"', error="incomplete_stream"),
    Script("reset-midway", tokens=12, rate=30, tail='cut = "reset"', error="connection_lost"),
    Script("stalls", tokens=12, rate=30, tail="pause_s = inf", error="idle_timeout"),
    Script("refuses-429", 5, 30, head="refuse = { status = 429, retry_after_s = 0.5 }", error="rate_limited"),
    Script("refuses-500", 5, 30, head="refuse = { status = 500 }", error="upstream_error"),
)
# For the directed scenarios, most of which say themselves when an answer ends.
DIRECTED = (
    Script("count-quick", tokens=24, rate=50),
    Script("count-few", tokens=3, rate=60),
    Script("count-in-quick-turn", tokens=10, rate=30, at_a_time=1),
    Script("count-on", tokens=2_000, rate=25),
    Script("count-after-silence", tokens=6, rate=60, opens_after_s=15),
    Script("never-opens", tokens=5, rate=30, opens_after_s=3600),
    Script("count-silent", tokens=6, rate=30, tail="pause_s = inf"),
    Script("flood", tokens=50_000, rate=4_000),
)
ALL = {script.name: script for script in (*COUNTING, *QUEUEING, *FAILING, *DIRECTED)}


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
