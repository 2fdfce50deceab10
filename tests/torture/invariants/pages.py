"""What a reader sees."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.lifecycle import TERMINAL
from streaming.markdown import render
from tests.torture.evidence import Evidence
from tests.torture.invariants.telling import difference


def pages_agree(evidence: Evidence) -> Iterator[str]:
    """Every page ends with the database's answer and state, and has never shown another end."""
    row = evidence.row
    for seen in evidence.seen:
        page = seen.snapshot
        if page is None:
            yield f"{seen.page} does not show it"
            continue
        if (page.state, page.seq) != (row.state, row.seq):
            yield f"{seen.page} shows {page.state} at seq {page.seq}; the row says {row.state} at {row.seq}"
        if (page.text, page.reasoning) != (row.text, row.reasoning):
            yield f"{seen.page}: {difference(page.text, row.text)}"
        if (page.error or {}).get("code") != (row.error or {}).get("code"):
            yield f"{seen.page} shows the error {page.error}, the row has {row.error}"
        if seen.first_end is not row.state:
            yield f"{seen.page} has shown the end {seen.first_end}, it is {row.state}"


def blocks_are_the_texts(evidence: Evidence) -> Iterator[str]:
    """Row and pages show the same blocks: those that the whole text is rendered to, anew."""
    row = evidence.row
    if row.state not in TERMINAL:
        return
    fresh = [block.html for block in render(row.text)]
    if row.is_rendered and [html for html in row.blocks if html] != fresh:
        yield f"the row's blocks: {difference(''.join(row.blocks), ''.join(fresh))}"
    for seen in evidence.seen:
        page = seen.snapshot
        if page is None:
            continue
        shown = [block for block in page.blocks if block.html]
        if [block.html for block in shown] != fresh:
            yield f"{seen.page}'s blocks: {difference(''.join(block.html for block in shown), ''.join(fresh))}"
        if page.shown != len(page.text):
            yield f"{seen.page} shows {page.shown} of {len(page.text)} characters as blocks"
        if not all(block.sealed for block in shown):
            yield f"{seen.page} shows a block that is not sealed"


def nothing_is_taken_back(evidence: Evidence) -> Iterator[str]:
    """What a page has shown stays, unless the suite destroyed the log's copy and no driver was left to restore it."""
    if evidence.losses and evidence.is_taken_over:
        return
    for seen in evidence.seen:
        if not evidence.row.text.startswith(seen.longest):
            yield f"{seen.page} had shown more: {difference(evidence.row.text, seen.longest)}"
