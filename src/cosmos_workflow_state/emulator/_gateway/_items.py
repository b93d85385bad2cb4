"""Operations on single items; one function an operation.

Owns their statuses and what their partition keys have to be. Must not know of batches and queries.
"""

from __future__ import annotations

from cosmos_workflow_state.emulator._engine._containers import Container, find_container
from cosmos_workflow_state.emulator._engine._errors import MissingError, MissingOwnerError
from cosmos_workflow_state.emulator._engine._items import (
    Address,
    StoredItem,
    address_of_rid,
    create_item,
    delete_item,
    item_id,
    read_item,
    replace_item,
    upsert_item,
)
from cosmos_workflow_state.emulator._engine._json import parse_object
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._gateway._call import Call, Outcome, answer
from cosmos_workflow_state.emulator._gateway._charges import (
    delete_charge,
    read_charge,
    replace_charge,
    write_charge,
)
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, bad_request, wrong_partition_key
from cosmos_workflow_state.emulator._ordering import UNDEFINED
from cosmos_workflow_state.emulator._partition import Component
from cosmos_workflow_state.emulator._values import Json, JsonObject, Response

__all__ = [
    "address_of",
    "full_key",
    "new_address",
    "own_container",
    "read_one",
    "remove_one",
    "replace_one",
    "same_id",
    "store_one",
]

_STALE_CONTAINER = 1024


def own_container(transaction: Transaction, call: Call) -> Container:
    """Find the container of the items a request is about.

    Args:
        transaction: Any.
        call: The request.

    Returns:
        The container.

    Raises:
        MissingOwnerError: It does not exist.
        ServiceError: 400 with sub-status 1024: the client means one that was deleted since, of the same name.
    """
    try:
        container = find_container(transaction, call.database, call.container)
    except MissingError as error:
        raise MissingOwnerError("Owner resource does not exist: " + str(error)) from error
    intended = call.headers.get("x-ms-cosmos-intended-collection-rid")
    if intended is not None and intended != container.rid:
        raise ServiceError(400, "The container was created anew since it was last read.", _STALE_CONTAINER)
    return container


def full_key(call: Call, container: Container) -> tuple[Component, ...]:
    """Read the partition key of a request that needs a full one.

    Args:
        call: The request.
        container: Its container.

    Returns:
        One value for each path of the container.

    Raises:
        ServiceError: It is missing, or has another number of values.
    """
    components = call.partition_key()
    if components is None or len(components) != len(container.definition.partition_key.paths):
        raise wrong_partition_key()
    return components


def address_of(container: Container, components: tuple[Component, ...], name: bytes) -> Address:
    """Give the address of an item by its full partition key and id."""
    whole = container.definition.partition_key.key_range(components)
    return Address(container, whole.start, whole.key or b"", name)


def new_address(container: Container, components: tuple[Component, ...], item: JsonObject) -> Address:
    """Give the address of an item that is about to be written.

    Args:
        container: Its container.
        components: The partition key the request names.
        item: The item.

    Returns:
        Its address.

    Raises:
        InvalidError: Its id is not allowed.
        ServiceError: The item's own values are not the partition key the request names.
    """
    address = address_of(container, components, item_id(item))
    own = tuple(_value_at(item, path) for path in container.definition.partition_key.paths)
    if address_of(container, own, address.id) != address:
        raise wrong_partition_key()
    return address


def same_id(item: JsonObject, name: bytes) -> None:
    """Refuse an item that is to replace one of another id.

    Raises:
        InvalidError: Its id is not allowed.
        ServiceError: It is another one.
    """
    if item_id(item) != name:
        raise bad_request("The id of the item is not the one the request names; an id cannot be changed.")


def store_one(transaction: Transaction, call: Call) -> Response:
    """Create or upsert an item."""
    container = own_container(transaction, call)
    item = parse_object(call.body)
    address = new_address(container, full_key(call, container), item)
    (stamp,) = transaction.stamps()
    if not call.flag("x-ms-documentdb-is-upsert"):
        return _written(call, container, create_item(transaction, address, item, stamp), new=True)
    stored, new = upsert_item(transaction, address, item, stamp, call.precondition)
    return _written(call, container, stored, new=new)


def read_one(transaction: Transaction, call: Call) -> Response:
    """Read an item, or say 304 when the client has this version already."""
    container = own_container(transaction, call)
    stored = read_item(transaction, _named(transaction, call, container))
    unchanged = call.headers.get("if-none-match") == stored.etag
    outcome = Outcome(
        transaction.lsn(),
        read_charge(len(stored.body)),
        b"" if unchanged else stored.body,
        status=304 if unchanged else 200,
        etag=stored.etag,
    )
    return answer(call, container, outcome)


def replace_one(transaction: Transaction, call: Call) -> Response:
    """Replace an item."""
    container = own_container(transaction, call)
    item = parse_object(call.body)
    named = _named(transaction, call, container)
    same_id(item, named.id)
    address = new_address(container, full_key(call, container), item)
    (stamp,) = transaction.stamps()
    stored = replace_item(transaction, address, item, stamp, call.precondition)
    return _written(call, container, stored, new=False)


def remove_one(transaction: Transaction, call: Call) -> Response:
    """Delete an item."""
    container = own_container(transaction, call)
    address = _named(transaction, call, container)
    (stamp,) = transaction.stamps()
    delete_item(transaction, address, call.precondition)
    return answer(call, container, Outcome(stamp.lsn, delete_charge(), b"", 204))


def _named(transaction: Transaction, call: Call, container: Container) -> Address:
    """Give the address of the item in the path, which names everything by id or everything by `_rid`."""
    address = address_of(container, full_key(call, container), call.item)
    if call.container != container.rid:
        return address
    rid = call.item.decode("utf-8", "replace")
    return address_of_rid(transaction, address, rid) or address


def _written(call: Call, container: Container, stored: StoredItem, *, new: bool) -> Response:
    size = len(stored.body)
    charge = write_charge(size) if new else replace_charge(size)
    body = stored.body if call.wants_content else b""
    return answer(call, container, Outcome(stored.lsn, charge, body, 201 if new else 200, stored.etag))


def _value_at(item: JsonObject, path: tuple[str, ...]) -> Component:
    value: Json = item
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return UNDEFINED
        value = value[name]
    if isinstance(value, (dict, list)):
        raise wrong_partition_key()
    return value
