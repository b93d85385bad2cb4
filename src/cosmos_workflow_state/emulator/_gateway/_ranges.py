"""Physical partitions as clients see them: ids of key ranges, session tokens, the keys a request is about.

Owns the meaning of the headers that name keys. Must not know of operations.
"""

from __future__ import annotations

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, bad_request, wrong_partition_key
from cosmos_workflow_state.emulator._partition import EVERYTHING, KeyRange

__all__ = ["asked_keys", "range_ids"]

_RANGE_IS_GONE = 1002


def range_ids(container: Container, keys: KeyRange) -> list[str]:
    """List the physical partitions that hold some keys.

    Args:
        container: The container.
        keys: The keys.

    Returns:
        The ids, at least one, in the order of the keys.
    """
    if container.partitions == 1:
        return ["0"]
    return [str(number) for number, part in enumerate(container.ranges) if part.overlap(keys)] or ["0"]


def asked_keys(call: Call, container: Container) -> KeyRange | None:
    """Read which keys a query or a feed is about.

    Args:
        call: The request.
        container: Its container.

    Returns:
        The keys, None when the request does not say.

    Raises:
        ServiceError: The headers contradict the container or one another.
    """
    components = call.partition_key()
    if components is not None:
        key = container.definition.partition_key
        if not 0 < len(components) <= len(key.paths):
            raise wrong_partition_key()
        return key.key_range(components)
    physical, effective = _physical(call, container), _effective(call)
    if physical is None or effective is None:
        return physical or effective
    both = physical.overlap(effective)
    if both is None:
        raise bad_request("The effective partition keys are not in the partition key range the request names.")
    return both


def _physical(call: Call, container: Container) -> KeyRange | None:
    named = call.headers.get("x-ms-documentdb-partitionkeyrangeid")
    if named is None:
        return None
    for number, part in enumerate(container.ranges):
        if named == str(number):
            return part if container.partitions > 1 else EVERYTHING
    raise ServiceError(410, "There is no partition key range of this id.", _RANGE_IS_GONE)


def _effective(call: Call) -> KeyRange | None:
    start, end = call.headers.get("x-ms-start-epk"), call.headers.get("x-ms-end-epk")
    if start is None and end is None:
        return None
    try:
        return KeyRange(bytes.fromhex(start or ""), bytes.fromhex(end or "FF"))
    except ValueError as error:
        raise bad_request("An effective partition key has to be hexadecimal.") from error
