"""The tree of a query: plain values, one class for each thing the language can say.

Owns the shape of a parsed query and how to walk it. Must not evaluate anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from cosmos_workflow_state.emulator._ordering import Value
from cosmos_workflow_state.emulator._query._errors import QueryError

__all__ = [
    "AllOf",
    "AllProperties",
    "AnyOf",
    "Arithmetic",
    "ArrayLiteral",
    "Between",
    "Call",
    "Coalesce",
    "Comparison",
    "Concatenation",
    "Condition",
    "Conditional",
    "Expression",
    "Like",
    "Literal",
    "Member",
    "Membership",
    "Not",
    "ObjectLiteral",
    "OneValue",
    "Operation",
    "OrderItem",
    "Parameter",
    "Place",
    "Property",
    "SelectList",
    "Selection",
    "Statement",
    "Step",
    "Window",
    "children",
    "selected",
    "walk",
]

Step: TypeAlias = str | int
"""One step into a value: a property's name, or an array's index."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the text something stands: line and column from 1, and the word itself."""

    line: int
    column: int
    token: str

    def error(self, message: str) -> QueryError:
        """Make the error that points here."""
        return QueryError(message, self.line, self.column, self.token)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant written in the text."""

    value: Value
    place: Place


@dataclass(frozen=True, slots=True)
class Parameter:
    """A `@name` whose value comes with the request; the name includes the `@`, as on the wire."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Property:
    """A path from an alias into the item; no steps mean the whole item."""

    root: str
    steps: tuple[Step, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Member:
    """A path into the value of an expression; at least one step."""

    base: Expression
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function call, the name in upper case."""

    name: str
    arguments: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two operands and one of `=`, `!=`, `<`, `<=`, `>`, `>=`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Between:
    """`operand BETWEEN low AND high`, both ends within."""

    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Membership:
    """`needle IN (options)`."""

    needle: Expression
    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """`value LIKE pattern ESCAPE escape`."""

    value: Expression
    pattern: Expression
    escape: str | None
    place: Place


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Operands with the signs between them, from left to right; all signs of one precedence."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Concatenation:
    """`||` over two or more parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Coalesce:
    """`??` over two or more parts: the first that is defined."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """AND over two or more parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """OR over two or more parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """NOT of one operand."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class ArrayLiteral:
    """`[…]` with an expression for each element."""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ObjectLiteral:
    """`{…}` with an expression for each property."""

    properties: tuple[tuple[str, Expression], ...]


Condition: TypeAlias = Comparison | Between | Membership | Like | AllOf | AnyOf | Not
"""Operators that answer true, false or undefined."""

Operation: TypeAlias = Condition | Arithmetic | Concatenation | Conditional | Coalesce
"""What is written with operators."""

Expression: TypeAlias = Literal | Parameter | Property | Member | Call | ArrayLiteral | ObjectLiteral | Operation


@dataclass(frozen=True, slots=True)
class AllProperties:
    """`SELECT *`."""


@dataclass(frozen=True, slots=True)
class OneValue:
    """`SELECT VALUE expression`."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class SelectList:
    """`SELECT a, b AS c`: each column with the name it has in the row."""

    columns: tuple[tuple[str, Expression], ...]


Selection: TypeAlias = AllProperties | OneValue | SelectList


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One property of ORDER BY."""

    property: Property
    descending: bool


@dataclass(frozen=True, slots=True)
class Window:
    """OFFSET and LIMIT; TOP is a limit without an offset."""

    offset: Literal | Parameter | None
    limit: Literal | Parameter


@dataclass(frozen=True, slots=True)
class Statement:
    """A whole query; its properties may start at `alias` only."""

    distinct: bool
    selection: Selection
    alias: str
    where: Expression | None
    group: tuple[Expression, ...]
    order: tuple[OrderItem, ...]
    window: Window | None


def walk(expression: Expression) -> Iterator[tuple[Expression, int]]:
    """Visit an expression and all below it, without recursion.

    Args:
        expression: Where to start.

    Yields:
        Each node with its depth, the start's being 1; parents before their children.
    """
    waiting = [(expression, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in reversed(children(node)))


def children(node: Expression) -> tuple[Expression, ...]:
    """Give the expressions directly below one, in the order of the text."""
    match node:
        case Literal() | Parameter() | Property():
            below: tuple[Expression, ...] = ()
        case Call(arguments=parts) | ArrayLiteral(parts) | Arithmetic(operands=parts):
            below = parts
        case Concatenation(parts) | Coalesce(parts) | AllOf(parts) | AnyOf(parts):
            below = parts
        case Comparison(left=left, right=right) | Like(value=left, pattern=right):
            below = (left, right)
        case Membership(needle, options):
            below = (needle, *options)
        case Between(first, second, third) | Conditional(first, second, third):
            below = (first, second, third)
        case Member(base=operand) | Not(operand):
            below = (operand,)
        case _:
            below = tuple(value for _, value in node.properties)
    return below


def selected(selection: Selection) -> tuple[Expression, ...]:
    """Give the expressions of a SELECT clause; none for `SELECT *`."""
    match selection:
        case AllProperties():
            return ()
        case OneValue(expression):
            return (expression,)
        case _:
            return tuple(expression for _, expression in selection.columns)
