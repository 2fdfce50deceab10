"""The numbers of a list's items, as they were said."""

from __future__ import annotations

from itertools import pairwise

from markdown_it.token import Token


def keep_numbers(tokens: list[Token]) -> None:
    """Give an item its number where counting on from the item before would give another."""
    open_lists: list[list[Token]] = []
    for token in tokens:
        if token.type == "ordered_list_open":
            open_lists.append([])
        elif token.type == "ordered_list_close":
            _keep_numbers_of(open_lists.pop())
        elif token.type == "list_item_open" and token.info:
            open_lists[-1].append(token)


def _keep_numbers_of(items: list[Token]) -> None:
    # The same number everywhere asks for counting.
    if len({int(item.info) for item in items}) == 1:
        return
    for before, item in pairwise(items):
        if int(item.info) != int(before.info) + 1:
            item.attrSet("value", int(item.info))
