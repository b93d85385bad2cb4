"""Operations on single items; one function an operation.

Owns their statuses and what their partition keys have to be. Must not know of batches and queries.
"""

from __future__ import annotations

from cosmos_workflow_state.emulator._engine._containers import Container, find_container
from cosmos_workflow_state.emulator._engine._errors import MissingError, MissingOwnerError
from cosmos_workflow_state.emulator._engine._items import create_item, delete_item, replace_item, upsert_item
from cosmos_workflow_state.emulator._engine._json import parse_object
from cosmos_workflow_state.emulator._engine._paths import value_at
from cosmos_workflow_state.emulator._engine._stored import (
    Address,
    StoredItem,
    address_of_rid,
    item_id,
    read_item,
)
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._gateway._answers import Outcome, answer
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._charges import (
    delete_charge,
    read_charge,
    replace_charge,
    write_charge,
)
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, wrong_partition_key
from cosmos_workflow_state.emulator._gateway._patching import patched_item
from cosmos_workflow_state.emulator._ordering import UNDEFINED
from cosmos_workflow_state.emulator._partition import Component
from cosmos_workflow_state.emulator._values import JsonObject, Response

__all__ = [
    "address_of",
    "full_key",
    "new_address",
    "own_container",
    "patch_one",
    "read_one",
    "remove_one",
    "replace_one",
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
    own = tuple(_component_at(item, path) for path in container.definition.partition_key.paths)
    if address_of(container, own, address.id) != address:
        raise wrong_partition_key()
    return address


def store_one(transaction: Transaction, call: Call) -> Response:
    """Create or upsert an item."""
    container = own_container(transaction, call)
    item = parse_object(call.body)
    address = new_address(container, full_key(call, container), item)
    (stamp,) = transaction.stamps()
    if not call.flag("x-ms-documentdb-is-upsert"):
        return _written(call, address, create_item(transaction, address, item, stamp), new=True)
    stored, new = upsert_item(transaction, address, item, stamp, call.precondition)
    return _written(call, address, stored, new=new)


def read_one(transaction: Transaction, call: Call) -> Response:
    """Read an item, or say 304 when the client has this version already."""
    container = own_container(transaction, call)
    address = _named(transaction, call, container)
    stored = read_item(transaction, address)
    unchanged = call.headers.get("if-none-match") == stored.etag
    outcome = Outcome(
        address.keys,
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
    address = _named(transaction, call, container)
    new_address(container, full_key(call, container), item)
    (stamp,) = transaction.stamps()
    stored = replace_item(transaction, address, item, stamp, call.precondition)
    return _written(call, address, stored, new=False)


def patch_one(transaction: Transaction, call: Call) -> Response:
    """Change parts of an item."""
    container = own_container(transaction, call)
    patch = parse_object(call.body)
    address = _named(transaction, call, container)
    item = patched_item(read_item(transaction, address), patch, container)
    new_address(container, full_key(call, container), item)
    (stamp,) = transaction.stamps()
    stored = replace_item(transaction, address, item, stamp, call.precondition)
    return _written(call, address, stored, new=False)


def remove_one(transaction: Transaction, call: Call) -> Response:
    """Delete an item."""
    container = own_container(transaction, call)
    address = _named(transaction, call, container)
    (stamp,) = transaction.stamps()
    delete_item(transaction, address, call.precondition)
    return answer(call, container, Outcome(address.keys, stamp.lsn, delete_charge(), b"", 204))


def _named(transaction: Transaction, call: Call, container: Container) -> Address:
    """Give the address of the item in the path, which names everything by id or everything by `_rid`."""
    address = address_of(container, full_key(call, container), call.item)
    if call.container != container.rid:
        return address
    rid = call.item.decode("utf-8", "replace")
    return address_of_rid(transaction, address, rid) or address


def _written(call: Call, address: Address, stored: StoredItem, *, new: bool) -> Response:
    charge = (write_charge if new else replace_charge)(len(stored.body), stored.terms)
    body = stored.body if call.wants_content else b""
    outcome = Outcome(address.keys, stored.lsn, charge, body, 201 if new else 200, stored.etag)
    return answer(call, address.container, outcome)


def _component_at(item: JsonObject, path: tuple[str, ...]) -> Component:
    value = value_at(item, path)
    # Objects and arrays are no keys: they count as if they were not there.
    return UNDEFINED if isinstance(value, (dict, list)) else value
