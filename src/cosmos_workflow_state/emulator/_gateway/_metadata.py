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
from cosmos_workflow_state.emulator._engine._transaction import Transaction, resource_id
from cosmos_workflow_state.emulator._gateway._answers import metadata_answer
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._listing import list_answer
from cosmos_workflow_state.emulator._gateway._offers import asked_throughput
from cosmos_workflow_state.emulator._gateway._quota import quota_headers, statistics
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

_REGION: Final = "Local"
_ACCOUNT: Final[JsonObject] = {
    "id": "embedded",
    "_rid": "embedded",
    "_self": "",
    "_dbs": "//dbs/",
    "addresses": "//addresses/",
    "media": "//media/",
    "enableMultipleWriteLocations": False,
    "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
}


def read_account(_: Transaction, call: Call) -> Response:
    """Describe the account."""
    endpoint = call.account.endpoint
    # Without locations, clients go on with the endpoint they came by, whatever that is.
    here: list[Json] = [{"name": _REGION, "databaseAccountEndpoint": endpoint}] if endpoint else []
    locations: JsonObject = {"writableLocations": here, "readableLocations": here}
    return metadata_answer(call, _ACCOUNT | locations)


def store_database(transaction: Transaction, call: Call) -> Response:
    """Create a database."""
    created = create_database(transaction, parse_object(call.body).get("id"), asked_throughput(call))
    return metadata_answer(call, created.document(), status=201, etag=created.etag)


def read_database(transaction: Transaction, call: Call) -> Response:
    """Read a database."""
    found = find_database(transaction, call.database)
    return metadata_answer(call, found.document(), etag=found.etag)


def read_databases(transaction: Transaction, call: Call) -> Response:
    """List the databases, or query them."""
    documents = [database.document() for database in list_databases(transaction)]
    return list_answer(call, "Databases", "", documents)


def remove_database(transaction: Transaction, call: Call) -> Response:
    """Delete a database with all it contains."""
    delete_database(transaction, call.database)
    return metadata_answer(call, None, status=204)


def store_container(transaction: Transaction, call: Call) -> Response:
    """Create a container."""
    document = parse_object(call.body)
    owner = _owner(transaction, call).number
    created = create_container(transaction, owner, document, asked_throughput(call), call.account.partitions)
    return metadata_answer(call, created.document(), status=201, etag=created.etag)


def read_container(transaction: Transaction, call: Call) -> Response:
    """Read a container, with how much is in it for clients that ask."""
    found = _container(transaction, call)
    document, headers = found.document(), {}
    if call.flag("x-ms-documentdb-populatepartitionstatistics"):
        document["statistics"] = statistics(transaction, found)
    if call.flag("x-ms-documentdb-populatequotainfo"):
        headers = quota_headers(transaction, found)
    return metadata_answer(call, document, etag=found.etag, headers=headers)


def read_containers(transaction: Transaction, call: Call) -> Response:
    """List the containers of a database, or query them."""
    owner = _owner(transaction, call)
    documents = [found.document() for found in list_containers(transaction, owner.number)]
    return list_answer(call, "DocumentCollections", owner.rid, documents)


def update_container(transaction: Transaction, call: Call) -> Response:
    """Replace a container's definition."""
    changed = replace_container(transaction, _container(transaction, call), parse_object(call.body))
    return metadata_answer(call, changed.document(), etag=changed.etag)


def remove_container(transaction: Transaction, call: Call) -> Response:
    """Delete a container with its items."""
    delete_container(transaction, _container(transaction, call))
    return metadata_answer(call, None, status=204)


def read_ranges(transaction: Transaction, call: Call) -> Response:
    """Read the partition key ranges, which stay as they are for ever.

    The client asks again with the ETag it got until it is told 304.
    """
    container = _container(transaction, call)
    etag = f'"{container.rid}"'
    if call.headers.get("if-none-match") == etag:
        return metadata_answer(call, None, status=304, etag=etag)
    ranges: list[Json] = [
        {
            "_rid": resource_id(container.database, container.number, number),
            "id": str(number),
            "_etag": etag,
            "minInclusive": part.start.hex().upper(),
            "maxExclusive": part.end.hex().upper(),
            "ridPrefix": number,
            "_self": f"{container.link}pkranges/{number}/",
            "throughputFraction": 1 / container.partitions,
            "status": "online",
            "parents": [],
            "_ts": container.ts,
        }
        for number, part in enumerate(container.ranges)
    ]
    body: JsonObject = {"_rid": container.rid, "PartitionKeyRanges": ranges, "_count": len(ranges)}
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
