"""What the API refuses, and the RFC 9457 document that says so.

Problem        an answer other than the one that was asked for; `code` is stable and for programs
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

# Every code of the API with its status. README.md lists them.
STATUS = {
    "malformed_json": 400,
    "invalid_field": 400,
    "prompt_empty": 400,
    "prompt_too_long": 400,
    "panes_count": 400,
    "pane_repeated": 400,
    "unknown_model": 400,
    "model_unavailable": 400,
    "invalid_param": 400,
    "invalid_cursor": 400,
    "cursor_from_elsewhere": 400,
    "bad_request": 400,
    "csrf_failed": 403,
    "cross_site": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "turn_running": 409,
    "answer_running": 409,
    "answer_whole": 409,
    "nothing_to_continue": 409,
    "turn_passed": 409,
    "body_too_large": 413,
    "key_reused": 422,
    "too_many_conversations": 429,
    "too_many_prompts": 429,
    "too_many_running": 429,
    "too_many_streams": 429,
    "internal_error": 500,
    "log_unavailable": 503,
    "database_unavailable": 503,
}


class Problem(Exception):
    """
    Ends a request with a problem document. `detail` is a sentence for the person.

    `members` are further members of the document, such as `field` or `reason`. `retry_after`, in
    seconds, is sent as the header of that name too.
    """

    def __init__(self, code: str, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.members = members

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def to_dict(self) -> dict[str, Any]:
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            **self.members,
        }


def not_found() -> Problem:
    """Give the one answer to what does not exist and to what is another's."""
    return Problem("not_found", "There is nothing here, or it is not yours. If you signed out, sign in again.")


def invalid(field: str, detail: str) -> Problem:
    return Problem("invalid_field", detail, field=field)
