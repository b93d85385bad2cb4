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
from cosmos_workflow_state.emulator._gateway import _items, _metadata, _offers, _queries
from cosmos_workflow_state.emulator._gateway._batch import BatchFailedError, run_batch
from cosmos_workflow_state.emulator._gateway._call import MAX_BODY, Account, Call
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, failure_of, failure_response
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
    ("dbs", "*", "colls", "*", "docs"): {"GET": _reading(_queries.read_feed), "POST": _writing(_items.store_one)},
    ("dbs", "*", "colls", "*", "docs", "*"): {
        "GET": _reading(_items.read_one),
        "PUT": _writing(_items.replace_one),
        "PATCH": _writing(_items.patch_one),
        "DELETE": _writing(_items.remove_one),
    },
    ("offers",): {"GET": _reading(_offers.read_offers)},
    ("offers", "*"): {"GET": _reading(_offers.read_offer), "PUT": _writing(_offers.update_offer)},
}

# Operations that are all sent as POST to the same path: which one it is, a header says.
_FLAGGED: Final[dict[tuple[str, ...], dict[str, _Operation]]] = {
    ("dbs",): {"x-ms-documentdb-isquery": _reading(_metadata.read_databases)},
    ("dbs", "*", "colls"): {"x-ms-documentdb-isquery": _reading(_metadata.read_containers)},
    ("dbs", "*", "colls", "*", "docs"): {
        "x-ms-cosmos-is-query-plan-request": _reading(_queries.plan_query),
        "x-ms-documentdb-isquery": _reading(_queries.run_query),
        "x-ms-cosmos-is-batch-request": _writing(run_batch),
    },
    ("offers",): {"x-ms-documentdb-isquery": _reading(_offers.read_offers)},
}


class Gateway:
    """Answers requests from an engine, which it uses and does not close."""

    def __init__(self, engine: Engine, *, partitions: int | None = None, endpoint: str = "") -> None:
        """Set the engine that answers.

        Args:
            engine: The engine.

        Keyword Args:
            partitions: How many physical partitions containers get that are created here, 1 or more; None for as many
                as their throughput asks for.
            endpoint: The URL that the account tells its clients to go to; empty for the one they came by.
        """
        self._engine = engine
        self._account = Account(endpoint, partitions)

    async def handle(self, request: Request) -> Response:
        """Answer a request.

        Args:
            request: The request.

        Returns:
            The response; what goes wrong is one, too.

        Raises:
            EngineClosedError: The engine is closed.
        """
        call = Call.of(request, self._account)
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
    if call.method == "POST":
        for header, operation in _FLAGGED.get(kinds, {}).items():
            if call.flag(header):
                return operation
    if call.method not in methods:
        raise ServiceError(405, f"The embedded engine does not support {call.method} here.")
    if "a-im" in call.headers and kinds[-1:] == ("docs",):
        raise ServiceError(400, "The embedded engine does not have a change feed.")
    return methods[call.method]
