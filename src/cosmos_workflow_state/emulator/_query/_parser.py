"""Query text to tree: the grammar, its lexer and the place of what does not fit.

Owns reading a text once. Must not keep results (`_plan` caches) and must not evaluate anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, cast

from lark import Lark, Token, UnexpectedInput

from cosmos_workflow_state.emulator._query._builder import TreeBuilder
from cosmos_workflow_state.emulator._query._checks import check
from cosmos_workflow_state.emulator._query._errors import QueryError
from cosmos_workflow_state.emulator._query._tree import Statement

__all__ = ["parse_statement"]

_MOST_BYTES = 512 * 1024
"""The service's limit of a query text, in UTF-8 bytes (Azure Cosmos DB service quotas)."""

_MOST_OPEN = 200
"""How many brackets may be open at once; it keeps a text of nothing but brackets from costing seconds."""

_MOST_WORDS = 50_000
"""How many words, numbers and signs a text may have: about a second's work. What the service allows below 512 KB is
not documented; 1,000 alternatives over three properties, as clients write for many ids, have half of this."""

_WORD = re.compile(r"@?\w{1,40}|.", re.DOTALL)
_STRING_OR_WORD_OR_SIGN = re.compile(r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|\w+|\S""", re.DOTALL)


def parse_statement(text: str) -> Statement:
    """Parse and check a query.

    Args:
        text: The query.

    Returns:
        Its tree.

    Raises:
        QueryError: The text is over 512 KiB, is not a query, or asks for what this engine does not do.
    """
    if len(text.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
        raise QueryError(f"the query is longer than {_MOST_BYTES} bytes", 1, 1, "")
    _check_size(text)
    try:
        statement = _grammar()(text)
    except UnexpectedInput as error:
        # Lark leaves the types of what its errors carry open.
        token: Token | None = getattr(error, "token", None)
        start: int | None = getattr(error, "pos_in_stream", None)
        raise _fault(text, _position(text, token, start), "syntax error") from error
    check(statement)
    return statement


@cache
def _grammar() -> Callable[[str], Statement]:
    grammar = files("cosmos_workflow_state.emulator._query").joinpath("grammar.lark").read_text("utf-8")
    parser: Any = Lark(grammar, parser="lalr", start="query", maybe_placeholders=True, transformer=TreeBuilder())
    # Lark's types speak of trees, but its parser returns what the builder makes of the start rule.
    return cast("Callable[[str], Statement]", parser.parse)


def _check_size(text: str) -> None:
    depth = 0
    for count, found in enumerate(_STRING_OR_WORD_OR_SIGN.finditer(text), start=1):
        if count > _MOST_WORDS:
            raise _fault(text, found.start(), f"the query has more than {_MOST_WORDS} words and signs")
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if depth > _MOST_OPEN:
            raise _fault(text, found.start(), f"more than {_MOST_OPEN} brackets are open")


def _position(text: str, token: Token | None, start: int | None) -> int:
    # Where the text ends too early, lark points at the last token instead of the end.
    at_end = token is not None and token.type == "$END"
    return len(text) if at_end or start is None else start


def _fault(text: str, position: int, message: str) -> QueryError:
    word = _WORD.match(text, position)
    column = position - text.rfind("\n", 0, position)
    return QueryError(message, text.count("\n", 0, position) + 1, column, word[0] if word else "")
