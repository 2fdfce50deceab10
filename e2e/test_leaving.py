"""People reload, leave and close pages in the middle of everything: no error in anybody's log."""

from __future__ import annotations

import re

import pytest

from e2e.product import Product
from e2e.verbs import Chat

pytestmark = pytest.mark.asyncio(loop_scope="session")

LEAVINGS = 12
# Reads the same frames as NDJSON, and lets go in the middle of them.
_READ_AND_ABORT = """async (address) => {
  const leave = new AbortController();
  const headers = { Accept: "application/x-ndjson" };
  const reader = (await fetch(address, { headers, signal: leave.signal })).body.getReader();
  await reader.read();
  leave.abort();
}"""


@pytest.mark.parametrize("transport", ["socket", "sse"])
async def test_readers_who_leave_six_streaming_panes_are_no_errors(
    chat: Chat, sidestream: Product, transport: str
) -> None:
    said_before = len(sidestream.program.said)
    await chat.open_asked("Leave me", *["long"] * 6, transport=transport)
    conversation = chat.conversation
    for leaving in range(LEAVINGS):
        await chat.begun(1, 2, 3, 4, 5, 6)
        if leaving % 3 == 0:
            await chat.page.reload()
        elif leaving % 3 == 1:
            await chat.page.goto("about:blank")
        else:
            page = await chat.page.context.new_page()
            await chat.page.close()
            chat.page = page
        await chat.open(conversation, transport=transport)
    await chat.page.evaluate(_READ_AND_ABORT, f"/api/conversations/{chat.conversation}/events")
    await chat.page.get_by_role("button", name="Stop all").click()
    await chat.settled()
    said = sidestream.program.said[said_before:]
    assert re.findall(r"^.*(?:ERROR|CRITICAL|Traceback|Unhandled).*$", said, re.MULTILINE) == []
