"""The lasting truth: conversations, their panes and turns, generations, and their archived events."""

from chatapp.models.conversation import Conversation, Pane, Turn
from chatapp.models.generation import NOT_ENDED, EventArchive, Generation
from chatapp.models.readiness import Readiness

__all__ = ["NOT_ENDED", "Conversation", "EventArchive", "Generation", "Pane", "Readiness", "Turn"]
