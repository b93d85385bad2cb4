"""Transactional batches: all operations on one partition key, or none.

Owns the form of operations and of their results. Must not know how a transaction is undone: it raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._errors import EngineError, StorageError
from cosmos_workflow_state.emulator._engine._items import create_item, delete_item, replace_item, upsert_item
from cosmos_workflow_state.emulator._engine._json import dump, parse
from cosmos_workflow_state.emulator._engine._stored import Precondition, StoredItem, read_item
from cosmos_workflow_state.emulator._engine._transaction import Stamp, Transaction
from cosmos_workflow_state.emulator._gateway._answers import Outcome, answer
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._charges import (
    delete_charge,
    read_charge,
    replace_charge,
    write_charge,
)
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, bad_request, failure_of
from cosmos_workflow_state.emulator._gateway._items import (
    address_of,
    full_key,
    new_address,
    own_container,
)
from cosmos_workflow_state.emulator._gateway._patching import patched_item
from cosmos_workflow_state.emulator._partition import Component
from cosmos_workflow_state.emulator._values import Json, JsonObject, Response

__all__ = ["BatchFailedError", "run_batch"]

_MAX_OPERATIONS = 100
_NOT_EXECUTED = 424


class BatchFailedError(Exception):
    """An operation of a batch failed; nothing of the batch remains.

    Attributes:
        response: What the client is told.
    """

    def __init__(self, response: Response) -> None:
        """Set the attribute."""
        super().__init__("An operation of the batch failed.")
        self.response = response


@dataclass(frozen=True, slots=True)
class _Step:
    """One operation of a batch with what it works on."""

    transaction: Transaction
    container: Container
    components: tuple[Component, ...]
    operation: JsonObject
    stamp: Stamp

    @property
    def name(self) -> bytes:
        name = self.operation.get("id")
        if not isinstance(name, str):
            raise bad_request("The operation needs an 'id'.")
        return name.encode("utf-8", "surrogatepass")

    @property
    def item(self) -> JsonObject:
        item = self.operation.get("resourceBody")
        if not isinstance(item, dict):
            raise bad_request("The operation needs a 'resourceBody', an object.")
        return item

    @property
    def precondition(self) -> Precondition:
        return Precondition(self._text("ifMatch"), self._text("ifNoneMatch"))

    def _text(self, name: str) -> str | None:
        value = self.operation.get(name)
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class _Result:
    status: int
    charge: float
    stored: StoredItem | None = None

    def json(self) -> bytes:
        """Write the result; the stored item's own bytes are put in as they are."""
        head: JsonObject = {"statusCode": self.status, "requestCharge": self.charge}
        if self.stored is None:
            return dump(head)
        head["eTag"] = self.stored.etag
        return dump(head)[:-1] + b',"resourceBody":' + self.stored.body + b"}"


def run_batch(transaction: Transaction, call: Call) -> Response:
    """Run a batch.

    Args:
        transaction: A writing one.
        call: The request.

    Returns:
        The response when all operations succeeded.

    Raises:
        BatchFailedError: One failed.
        ServiceError: The batch as a whole is refused.
    """
    container = own_container(transaction, call)
    operations = _operations(call)
    components = full_key(call, container)
    stamps = transaction.stamps(len(operations))
    results: list[_Result] = []
    for operation, stamp in zip(operations, stamps, strict=True):
        try:
            results.append(_run(_Step(transaction, container, components, operation, stamp)))
        except StorageError:
            raise
        except (ServiceError, EngineError) as error:
            failed = error if isinstance(error, ServiceError) else failure_of(error)
            outcome = _failed_at(len(results), len(operations), failed.status)
            raise BatchFailedError(_answer(call, container, stamp.lsn - 1, outcome, 207)) from error
    return _answer(call, container, stamps[0].lsn, results, 200)


def _answer(call: Call, container: Container, lsn: int, results: list[_Result], status: int) -> Response:
    body = b"[" + b",".join(result.json() for result in results) + b"]"
    charge = round(sum(result.charge for result in results), 2)
    keys = container.definition.partition_key.key_range(full_key(call, container))
    return answer(call, container, Outcome(keys, lsn, charge, body, status))


def _failed_at(index: int, count: int, status: int) -> list[_Result]:
    return [_Result(status if position == index else _NOT_EXECUTED, 1.0) for position in range(count)]


def _operations(call: Call) -> list[JsonObject]:
    operations = parse(call.body)
    if not isinstance(operations, list):
        raise bad_request("A batch has to be a JSON array of operations.")
    if not operations:
        raise bad_request("Batch request has no operations.")
    if len(operations) > _MAX_OPERATIONS:
        raise bad_request("Batch request has more operations than what is supported.")
    return [_checked(operation) for operation in operations]


def _checked(operation: Json) -> JsonObject:
    kind = operation.get("operationType") if isinstance(operation, dict) else None
    if not isinstance(operation, dict) or not isinstance(kind, str) or kind not in _OPERATIONS:
        raise bad_request(f"An operation of a batch has to be one of {', '.join(_OPERATIONS)}.")
    return operation


def _run(step: _Step) -> _Result:
    return _OPERATIONS[str(step.operation["operationType"])](step)


def _create(step: _Step) -> _Result:
    address = new_address(step.container, step.components, step.item)
    stored = create_item(step.transaction, address, step.item, step.stamp)
    return _Result(201, write_charge(len(stored.body), stored.terms), stored)


def _upsert(step: _Step) -> _Result:
    address = new_address(step.container, step.components, step.item)
    stored, new = upsert_item(step.transaction, address, step.item, step.stamp, step.precondition)
    charge = (write_charge if new else replace_charge)(len(stored.body), stored.terms)
    return _Result(201 if new else 200, charge, stored)


def _read(step: _Step) -> _Result:
    address = address_of(step.container, step.components, step.name)
    stored = read_item(step.transaction, address)
    if step.precondition.if_match not in (None, "*", stored.etag):
        raise ServiceError(412, "The item's ETag does not meet the operation's condition.")
    return _Result(200, read_charge(len(stored.body)), stored)


def _replace(step: _Step) -> _Result:
    return _replaced(step, step.item)


def _patch(step: _Step) -> _Result:
    address = address_of(step.container, step.components, step.name)
    return _replaced(step, patched_item(read_item(step.transaction, address), step.item, step.container))


def _replaced(step: _Step, item: JsonObject) -> _Result:
    address = address_of(step.container, step.components, step.name)
    new_address(step.container, step.components, item)
    stored = replace_item(step.transaction, address, item, step.stamp, step.precondition)
    return _Result(200, replace_charge(len(stored.body), stored.terms), stored)


def _delete(step: _Step) -> _Result:
    address = address_of(step.container, step.components, step.name)
    delete_item(step.transaction, address, step.precondition)
    return _Result(204, delete_charge())


_OPERATIONS: Final[dict[str, Callable[[_Step], _Result]]] = {
    "Create": _create,
    "Upsert": _upsert,
    "Read": _read,
    "Replace": _replace,
    "Patch": _patch,
    "Delete": _delete,
}
