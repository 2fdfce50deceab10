"""Model output as safe HTML, block by block while it grows.

A block is sealed when nothing that follows can change it, except a link reference definition. Only
complete lines are parsed and only from the first unsealed block on, so the work stays linear in the
length of the answer. No layer stands alone: the text is made valid, the parser knows no HTML and no
images and few links, nh3 and bleach hold its output against one allow-list (bleach wherever it could
change anything), and what is too big, too deep or too dear becomes escaped text in a plain `<pre>`.

    clean       invisible and control characters
    shape       which lines may end a block; cheap, never the judge
    parse       text → blocks of tokens
    inline      emphasis, also in scripts without spaces between words
    formulas    what nothing is changed of
    tables      their bounds and cells
    lists       the numbers of their items
    spaceless   which scripts these are
    definitions of links, and what of them is used
    addresses   bare ones, which become links
    links       which links are allowed, and what a person must see of them
    write       tokens → HTML
    colour      code → HTML
    unchanged   what bleach need not be asked about
    sanitize    the allow-list, nh3, bleach
    seal        one block, through all of it, within the caps
    incremental the growing text
"""

from __future__ import annotations

from streaming.markdown.incremental import BlockRenderer, Rendered
from streaming.markdown.sanitize import ALLOWED_ATTRIBUTES, ALLOWED_SCHEMES, ALLOWED_TAGS, allowed
from streaming.markdown.seal import render

# Raise it when the same text gives other HTML: what was stored with a lower one is rendered again.
RENDER_VERSION = 3

__all__ = [
    "ALLOWED_ATTRIBUTES",
    "ALLOWED_SCHEMES",
    "ALLOWED_TAGS",
    "RENDER_VERSION",
    "BlockRenderer",
    "Rendered",
    "allowed",
    "render",
]
