"""The lasting truth: conversations, their panes and turns, generations, and their archived events."""

from chatapp.models.conversation import Conversation, Pane, Turn
from chatapp.models.generation import EventArchive, Generation

__all__ = ["Conversation", "EventArchive", "Generation", "Pane", "Turn"]
