"""Operations on the account, databases, containers and partition key ranges; one function an operation.

Owns their bodies and statuses. Must not know of items.
"""

from __future__ import annotations

from typing import Final

from cosmos_workflow_state.emulator._engine._containers import (
    Container,
    create_container,
    delete_container,
    find_container,
    list_containers,
    replace_container,
)
from cosmos_workflow_state.emulator._engine._databases import (
    Database,
    create_database,
    delete_database,
    find_database,
    list_databases,
)
from cosmos_workflow_state.emulator._engine._errors import MissingError, MissingOwnerError
from cosmos_workflow_state.emulator._engine._json import parse_object
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._gateway._call import Call, metadata_answer
from cosmos_workflow_state.emulator._values import Json, JsonObject, Response

__all__ = [
    "read_account",
    "read_container",
    "read_containers",
    "read_database",
    "read_databases",
    "read_ranges",
    "remove_container",
    "remove_database",
    "store_container",
    "store_database",
    "update_container",
]

_ACCOUNT: Final[JsonObject] = {
    "id": "embedded",
    "_rid": "embedded",
    "_self": "",
    "_dbs": "//dbs/",
    "addresses": "//addresses/",
    "media": "//media/",
    # No locations: the client goes on with the endpoint it came by, whatever that is.
    "writableLocations": [],
    "readableLocations": [],
    "enableMultipleWriteLocations": False,
    "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
}


def read_account(_: Transaction, call: Call) -> Response:
    """Describe the account."""
    return metadata_answer(call, _ACCOUNT)


def store_database(transaction: Transaction, call: Call) -> Response:
    """Create a database."""
    created = create_database(transaction, parse_object(call.body).get("id"))
    return metadata_answer(call, created.document(), status=201, etag=created.etag)


def read_database(transaction: Transaction, call: Call) -> Response:
    """Read a database."""
    found = find_database(transaction, call.database)
    return metadata_answer(call, found.document(), etag=found.etag)


def read_databases(transaction: Transaction, call: Call) -> Response:
    """List the databases."""
    documents: list[Json] = [database.document() for database in list_databases(transaction)]
    return metadata_answer(call, {"_rid": "", "Databases": documents, "_count": len(documents)})


def remove_database(transaction: Transaction, call: Call) -> Response:
    """Delete a database with all it contains."""
    delete_database(transaction, call.database)
    return metadata_answer(call, None, status=204)


def store_container(transaction: Transaction, call: Call) -> Response:
    """Create a container."""
    created = create_container(transaction, _owner(transaction, call).number, parse_object(call.body))
    return metadata_answer(call, created.document(), status=201, etag=created.etag)


def read_container(transaction: Transaction, call: Call) -> Response:
    """Read a container."""
    found = _container(transaction, call)
    return metadata_answer(call, found.document(), etag=found.etag)


def read_containers(transaction: Transaction, call: Call) -> Response:
    """List the containers of a database."""
    owner = _owner(transaction, call)
    documents: list[Json] = [found.document() for found in list_containers(transaction, owner.number)]
    rid = owner.document()["_rid"]
    return metadata_answer(call, {"_rid": rid, "DocumentCollections": documents, "_count": len(documents)})


def update_container(transaction: Transaction, call: Call) -> Response:
    """Replace a container's definition."""
    changed = replace_container(transaction, _container(transaction, call), parse_object(call.body))
    return metadata_answer(call, changed.document(), etag=changed.etag)


def remove_container(transaction: Transaction, call: Call) -> Response:
    """Delete a container with its items."""
    delete_container(transaction, _container(transaction, call))
    return metadata_answer(call, None, status=204)


def read_ranges(transaction: Transaction, call: Call) -> Response:
    """Read the partition key ranges: one, for ever.

    The client asks again with the ETag it got until it is told 304.
    """
    container = _container(transaction, call)
    etag = f'"{container.rid}"'
    if call.headers.get("if-none-match") == etag:
        return metadata_answer(call, None, status=304, etag=etag)
    only: JsonObject = {
        "_rid": container.rid,
        "id": "0",
        "_etag": etag,
        "minInclusive": "",
        "maxExclusive": "FF",
        "ridPrefix": 0,
        "_self": f"{container.link}pkranges/0/",
        "throughputFraction": 1,
        "status": "online",
        "parents": [],
        "_ts": container.ts,
    }
    body: JsonObject = {"_rid": container.rid, "PartitionKeyRanges": [only], "_count": 1}
    return metadata_answer(call, body, etag=etag)


def _owner(transaction: Transaction, call: Call) -> Database:
    try:
        return find_database(transaction, call.database)
    except MissingError as error:
        raise MissingOwnerError(str(error)) from error


def _container(transaction: Transaction, call: Call) -> Container:
    try:
        return find_container(transaction, call.database, call.container)
    except MissingError:
        _owner(transaction, call)
        raise
