"""The errors of the query part: what a query, or a place to resume it from, can be refused for."""

from __future__ import annotations

__all__ = ["PositionError", "QueryError"]


class QueryError(Exception):
    """A query that cannot be answered: a 400 in the service's words.

    Attributes:
        message: What is wrong, in words.
        line: The line of the fault in the query text, from 1.
        column: The column of the fault, from 1.
        token: The word or sign at the fault; empty at the end of the text.
    """

    def __init__(self, message: str, line: int, column: int, token: str) -> None:
        """Keep the place of the fault beside the message."""
        super().__init__(message, line, column, token)
        self.message = message
        self.line = line
        self.column = column
        self.token = token

    def __str__(self) -> str:
        """Say what is wrong and where."""
        return f"{self.message} (line {self.line}, column {self.column}, near '{self.token}')"


class PositionError(ValueError):
    """A resume position that no row of a query ever had: it is damaged or belongs to something else."""
