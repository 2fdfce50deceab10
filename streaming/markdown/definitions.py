"""Link reference definitions, and which of them a link asked for.

A definition that no link uses would show nothing of the address that the model gave, as in a list of sources at the end
of an answer. It is shown as it was written, behind all blocks.
"""

from __future__ import annotations

from typing import Any

from markdown_it.token import Token


class References(dict[str, Any]):
    """Definitions by label, as the parser keeps them; `used` are the labels that were looked up and found."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def get(self, label: str, default: Any = None) -> Any:
        found = super().get(label, default)
        if found is not None:
            self.used.add(label)
        return found

    def unused(self) -> list[tuple[int, int]]:
        """Give the lines, from and to, of each definition that nothing asked for."""
        return [tuple(definition["map"]) for label, definition in self.items() if label not in self.used]


def paragraph_of(lines: list[str]) -> list[Token]:
    """Give a definition's lines as a paragraph, without the marks of the items or quotes around them."""
    text = "\n".join(line.lstrip(" \t>").rstrip() for line in lines)
    inline = Token("inline", "", 0, level=1, content=text[text.index("[") :], children=[])
    opened = Token("paragraph_open", "p", 1, attrs={"class": "definition"})
    return [opened, inline, Token("paragraph_close", "p", -1)]
