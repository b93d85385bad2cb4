"""Queries: text to tree to plan to rows.

Owns the query language. Must not know of HTTP or of how items are stored.
"""

from cosmos_workflow_state.emulator._query._description import QueryDescription, describe
from cosmos_workflow_state.emulator._query._errors import PositionError, QueryError
from cosmos_workflow_state.emulator._query._plan import Plan, Query, parse
from cosmos_workflow_state.emulator._query._rows import Row
from cosmos_workflow_state.emulator._query._source import Bound, Candidate, ItemSource, Path, Seek

__all__ = [
    "Bound",
    "Candidate",
    "ItemSource",
    "Path",
    "Plan",
    "PositionError",
    "Query",
    "QueryDescription",
    "QueryError",
    "Row",
    "Seek",
    "describe",
    "parse",
]
