"""What each rule of the grammar becomes: lark calls these methods bottom-up while it parses.

Owns the step from tokens to the values of `_tree`. Must not look at a query as a whole; `_checks` does.
"""

from __future__ import annotations

import math
import re
from typing import Any

from lark import Token

from cosmos_workflow_state.emulator._ordering import UNDEFINED
from cosmos_workflow_state.emulator._query import _tree as tree

__all__ = ["TreeBuilder", "place_of"]

_SHOWN = 40
"""How much of a long token an error shows, in characters."""

_EXACT_DIGITS = 15
"""Integers of up to this many digits are exact as doubles, so they may stay integers."""

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {
    "'": "'",
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


def place_of(token: Token) -> tree.Place:
    """Say where a token stands."""
    return tree.Place(token.line or 1, token.column or 1, token[:_SHOWN])


_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None, "UNDEFINED": UNDEFINED}


class TreeBuilder:
    """Callbacks by rule name. Each gets its rule's children: tokens and the values of inner rules."""

    def query(self, children: list[Any]) -> tree.Statement:
        """Put the clauses together."""
        distinct, top, selection, source, where, group, order, window = children
        if top is not None and window is not None:
            raise top.limit.place.error("TOP and OFFSET LIMIT cannot be combined")
        return tree.Statement(distinct is not None, selection, source, where, group or (), order or (), top or window)

    def top(self, children: list[Any]) -> tree.Window:
        """TOP n."""
        return tree.Window(None, children[0])

    def offset_limit(self, children: list[Any]) -> tree.Window:
        """OFFSET n LIMIT m."""
        return tree.Window(*children)

    def all_properties(self, _: list[Any]) -> tree.AllProperties:
        """SELECT *."""
        return tree.AllProperties()

    def one_value(self, children: list[Any]) -> tree.OneValue:
        """SELECT VALUE."""
        return tree.OneValue(children[0])

    def select_list(self, children: list[Any]) -> tree.SelectList:
        """Name the columns: by alias, by the last property of a path, or else `$1`, `$2` and so on."""
        columns: dict[str, tree.Expression] = {}
        places: dict[str, tree.Place | None] = {}
        unnamed = 0
        for expression, name, place in children:
            unnamed += name is None
            column = f"${unnamed}" if name is None else name
            # Of two columns of one name at least one has a place: two unnamed ones differ in their number.
            taken = place or places.get(column)
            if column in columns and taken:
                raise taken.error(f"the column name '{column}' is used twice; name one of them with AS")
            columns[column] = expression
            places[column] = place
        return tree.SelectList(tuple(columns.items()))

    def select_item(self, children: list[Any]) -> tuple[tree.Expression, str | None, tree.Place | None]:
        """One column with its name and the name's place, where it has one."""
        expression, alias = children
        if alias is not None:
            return expression, str(alias), place_of(alias)
        if isinstance(expression, tree.Property):
            last = expression.steps[-1] if expression.steps else expression.root
            return expression, last if isinstance(last, str) else None, expression.place
        return expression, None, None

    def source(self, children: list[Any]) -> str:
        """FROM: the alias, or without one the name itself; the container is always the one addressed."""
        name, alias = children
        return str(alias or name)

    def group_by(self, children: list[Any]) -> tuple[tree.Expression, ...]:
        """GROUP BY: its expressions."""
        return tuple(children)

    def order_by(self, children: list[Any]) -> tuple[tree.OrderItem, ...]:
        """ORDER BY: its items."""
        return tuple(children)

    def order_item(self, children: list[Any]) -> tree.OrderItem:
        """A property and its direction."""
        expression, direction = children
        return tree.OrderItem(expression, direction is not None and direction.type == "DESC")

    def conditional(self, children: list[Any]) -> tree.Conditional:
        """`a ? b : c`."""
        return tree.Conditional(*children)

    def coalesce(self, children: list[Any]) -> tree.Coalesce:
        """`??`."""
        return tree.Coalesce(tuple(children))

    def conjunction(self, children: list[Any]) -> tree.AllOf:
        """AND."""
        return tree.AllOf(tuple(children))

    def disjunction(self, children: list[Any]) -> tree.AnyOf:
        """OR."""
        return tree.AnyOf(tuple(children))

    def negation(self, children: list[Any]) -> tree.Not:
        """NOT."""
        return tree.Not(children[0])

    def comparison(self, children: list[Any]) -> tree.Comparison:
        """Two operands and the sign between them."""
        left, operator, right = children
        return tree.Comparison("!=" if operator == "<>" else str(operator), left, right)

    def between(self, children: list[Any]) -> tree.Expression:
        """BETWEEN."""
        operand, negated, low, high = children
        inside = tree.Between(operand, low, high)
        return inside if negated is None else tree.Not(inside)

    def membership(self, children: list[Any]) -> tree.Expression:
        """IN."""
        needle, negated, *options = children
        found = tree.Membership(needle, tuple(options))
        return found if negated is None else tree.Not(found)

    def like(self, children: list[Any]) -> tree.Expression:
        """LIKE, with its ESCAPE."""
        value, negated, word, pattern, quoted = children
        matched = tree.Like(value, pattern, None if quoted is None else _escape(quoted), place_of(word))
        return matched if negated is None else tree.Not(matched)

    def concatenation(self, children: list[Any]) -> tree.Concatenation:
        """`||`."""
        return tree.Concatenation(tuple(children))

    def sum(self, children: list[Any]) -> tree.Arithmetic:
        """`+` and `-`."""
        return tree.Arithmetic(tuple(map(str, children[1::2])), tuple(children[::2]))

    def product(self, children: list[Any]) -> tree.Arithmetic:
        """`*`, `/` and `%`."""
        return self.sum(children)

    def minus(self, children: list[Any]) -> tree.Expression:
        """A minus sign; with a number behind it, a constant."""
        sign, operand = children
        match operand:
            case tree.Literal(int() | float() as number) if not isinstance(number, bool):
                return tree.Literal(-number, place_of(sign))
            case _:
                return tree.Arithmetic(("-",), (tree.Literal(0, place_of(sign)), operand))

    def plus(self, children: list[Any]) -> tree.Expression:
        """A plus sign, which leaves nothing but numbers defined."""
        sign, operand = children
        return tree.Arithmetic(("+",), (tree.Literal(0, place_of(sign)), operand))

    def member(self, children: list[Any]) -> tree.Member:
        """A path into the value of an expression."""
        base, *steps = children
        return tree.Member(base, tuple(steps))

    def property_path(self, children: list[Any]) -> tree.Property:
        """A path from an alias."""
        root, *steps = children
        return tree.Property(str(root), tuple(steps), place_of(root))

    def property_name(self, children: list[Any]) -> str:
        """`.name`."""
        return str(children[0])

    def property_key(self, children: list[Any]) -> str:
        """`["name"]`."""
        return _unquote(children[0])

    def array_index(self, children: list[Any]) -> int:
        """`[0]`."""
        index = _number(children[0])
        if not isinstance(index, int):
            raise place_of(children[0]).error("an array index must be a whole number")
        return index

    def parameter(self, children: list[Any]) -> tree.Parameter:
        """`@name`."""
        return tree.Parameter(str(children[0]), place_of(children[0]))

    def call(self, children: list[Any]) -> tree.Call:
        """A function and its arguments."""
        name, *arguments = children
        return tree.Call(name.upper(), tuple(arguments), place_of(name))

    def array(self, children: list[Any]) -> tree.ArrayLiteral:
        """`[…]`."""
        return tree.ArrayLiteral(tuple(children))

    def object(self, children: list[Any]) -> tree.ObjectLiteral:
        """`{…}`."""
        properties: dict[str, tree.Expression] = {}
        for name, expression, place in children:
            if name in properties:
                raise place.error(f"the property '{name}' is there twice")
            properties[name] = expression
        return tree.ObjectLiteral(tuple(properties.items()))

    def pair(self, children: list[Any]) -> tuple[str, tree.Expression, tree.Place]:
        """One property of an object."""
        token, expression = children
        name = _unquote(token) if token.type == "STRING" else str(token)
        return name, expression, place_of(token)

    def number(self, children: list[Any]) -> tree.Literal:
        """A number."""
        return tree.Literal(_number(children[0]), place_of(children[0]))

    def text(self, children: list[Any]) -> tree.Literal:
        """A string."""
        return tree.Literal(_unquote(children[0]), place_of(children[0]))

    def constant(self, children: list[Any]) -> tree.Literal:
        """True, false, null or undefined."""
        return tree.Literal(_CONSTANTS[children[0].type], place_of(children[0]))


def _number(token: Token) -> int | float:
    if token.isdigit() and len(token) <= _EXACT_DIGITS:
        return int(token)
    number = float(token)
    if math.isinf(number):
        raise place_of(token).error("a number beyond the range of doubles")
    return number


def _escape(token: Token) -> str:
    character = _unquote(token)
    if len(character) != 1:
        raise place_of(token).error("ESCAPE takes a string of one character")
    return character


def _unquote(token: Token) -> str:
    def character(found: re.Match[str]) -> str:
        escape = found[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape not in _ESCAPED:
            raise place_of(token).error(f"a string with the unknown escape '\\{escape}'")
        return _ESCAPED[escape]

    text = _ESCAPE.sub(character, token[1:-1])
    # Two escapes may spell one character beyond the basic plane, as in JSON.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
