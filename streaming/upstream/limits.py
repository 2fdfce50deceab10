"""How large one answer may become."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.upstream.faults import fault
from streaming.upstream.ports import Chunk, ReasoningChunk, TextChunk, ToolChunk, ToolCompleteChunk


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes; each ends the call with its own error code."""

    line_bytes: int = 1024 * 1024
    answer_chars: int = 400_000  # Text and reasoning together, in code points.
    tool_bytes: int = 1024 * 1024  # The arguments of one call.


class Meter:
    """Counts what one answer holds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._answer = 0
        self._tools: dict[str, int] = {}

    def count(self, chunk: Chunk) -> None:
        """
        Count one more chunk.

        Raises:
            UpstreamError: answer_too_long, tool_call_too_long.
        """
        if isinstance(chunk, (TextChunk, ReasoningChunk)):
            self._answer += len(chunk.text)
            if self._answer > self._limits.answer_chars:
                raise fault("answer_too_long")
        elif isinstance(chunk, (ToolChunk, ToolCompleteChunk)):
            self._count_tool(chunk)

    def _count_tool(self, chunk: ToolChunk | ToolCompleteChunk) -> None:
        before = self._tools.get(chunk.call, 0) if isinstance(chunk, ToolChunk) else 0
        self._tools[chunk.call] = before + len(chunk.arguments.encode())
        if self._tools[chunk.call] > self._limits.tool_bytes:
            raise fault("tool_call_too_long")
