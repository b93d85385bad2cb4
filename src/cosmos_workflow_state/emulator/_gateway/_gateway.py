"""The gateway: finds the operation of a request, has the engine run it, turns failures into responses.

Owns routing. Must not know what operations do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._engine._errors import EngineClosedError, EngineError
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._gateway import _items, _metadata
from cosmos_workflow_state.emulator._gateway._batch import BatchFailedError, run_batch
from cosmos_workflow_state.emulator._gateway._call import MAX_BODY, Call
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, failure_of, failure_response
from cosmos_workflow_state.emulator._gateway._queries import read_feed, run_query
from cosmos_workflow_state.emulator._values import Request, Response

__all__ = ["Gateway"]


@dataclass(frozen=True, slots=True)
class _Operation:
    run: Callable[[Transaction, Call], Response]
    writes: bool


def _reading(run: Callable[[Transaction, Call], Response]) -> _Operation:
    return _Operation(run, writes=False)


def _writing(run: Callable[[Transaction, Call], Response]) -> _Operation:
    return _Operation(run, writes=True)


_QUERY: Final = _reading(run_query)
_BATCH: Final = _writing(run_batch)
_STORE: Final = _writing(_items.store_one)

# By the kinds of resources along the path ("*" stands for a name) and the method.
_OPERATIONS: Final[dict[tuple[str, ...], dict[str, _Operation]]] = {
    (): {"GET": _reading(_metadata.read_account)},
    ("dbs",): {"GET": _reading(_metadata.read_databases), "POST": _writing(_metadata.store_database)},
    ("dbs", "*"): {"GET": _reading(_metadata.read_database), "DELETE": _writing(_metadata.remove_database)},
    ("dbs", "*", "colls"): {
        "GET": _reading(_metadata.read_containers),
        "POST": _writing(_metadata.store_container),
    },
    ("dbs", "*", "colls", "*"): {
        "GET": _reading(_metadata.read_container),
        "PUT": _writing(_metadata.update_container),
        "DELETE": _writing(_metadata.remove_container),
    },
    ("dbs", "*", "colls", "*", "pkranges"): {"GET": _reading(_metadata.read_ranges)},
    ("dbs", "*", "colls", "*", "docs"): {"GET": _reading(read_feed), "POST": _STORE},
    ("dbs", "*", "colls", "*", "docs", "*"): {
        "GET": _reading(_items.read_one),
        "PUT": _writing(_items.replace_one),
        "DELETE": _writing(_items.remove_one),
    },
}


class Gateway:
    """Answers requests from an engine, which it uses and does not close."""

    def __init__(self, engine: Engine) -> None:
        """Set the engine that answers."""
        self._engine = engine

    async def handle(self, request: Request) -> Response:
        """Answer a request.

        Args:
            request: The request.

        Returns:
            The response; what goes wrong is one, too.

        Raises:
            EngineClosedError: The engine is closed.
        """
        call = Call.of(request)
        try:
            operation = _operation(call)
            if operation.writes:
                return await self._engine.write(operation.run, call)
            return await self._engine.read(operation.run, call)
        except BatchFailedError as failed:
            return failed.response
        except ServiceError as error:
            return failure_response(error, call.activity_id)
        except EngineClosedError:
            raise
        except EngineError as error:
            return failure_response(failure_of(error), call.activity_id)


def _operation(call: Call) -> _Operation:
    if len(call.body) > MAX_BODY:
        raise ServiceError(413, f"The request is larger than {MAX_BODY} bytes.")
    kinds = tuple(
        "*" if position % 2 else segment.decode("utf-8", "replace") for position, segment in enumerate(call.segments)
    )
    methods = _OPERATIONS.get(kinds)
    if methods is None:
        raise ServiceError(400, "The embedded engine does not have the resource this path names.")
    if call.method not in methods:
        raise ServiceError(405, f"The embedded engine does not support {call.method} here.")
    operation = methods[call.method]
    return _posted(call) if operation is _STORE else _plain(call, operation)


def _posted(call: Call) -> _Operation:
    """Tell the operations apart that are all sent as POST to a container's items."""
    if call.flag("x-ms-cosmos-is-query-plan-request"):
        raise ServiceError(400, "The embedded engine runs queries as a whole and gives no query plans.")
    if call.flag("x-ms-documentdb-isquery"):
        return _QUERY
    return _BATCH if call.flag("x-ms-cosmos-is-batch-request") else _STORE


def _plain(call: Call, operation: _Operation) -> _Operation:
    if call.flag("x-ms-documentdb-isquery"):
        raise ServiceError(400, "The embedded engine queries items only, not databases or containers.")
    if "a-im" in call.headers and call.segments[-1] == b"docs":
        raise ServiceError(400, "The embedded engine does not have a change feed.")
    return operation
