"""What can go wrong in the engine.

Owns the exceptions; the gateway turns them into statuses. Must not know of HTTP, nor carry items' contents.
"""

from __future__ import annotations

__all__ = [
    "BusyError",
    "EngineClosedError",
    "EngineError",
    "ExistsError",
    "ForeignFileError",
    "InvalidError",
    "MissingError",
    "MissingOwnerError",
    "NewerSchemaError",
    "PreconditionError",
    "StorageError",
]


class EngineError(Exception):
    """Base of all errors of the engine."""


class ForeignFileError(EngineError):
    """The file is no state file of this engine; it was left as it is."""


class NewerSchemaError(EngineError):
    """The file was written by a newer version; it was left as it is."""


class EngineClosedError(EngineError):
    """The engine was used after it was closed."""


class StorageError(EngineError):
    """SQLite failed: the disk is full, the file cannot be written or is damaged."""


class BusyError(StorageError):
    """Another process held the file for longer than the engine waits."""


class MissingError(EngineError):
    """The database, container or item is not there."""


class MissingOwnerError(MissingError):
    """What the resource would be in is not there."""


class ExistsError(EngineError):
    """A resource with this name, or an item with this key and id, is there already."""


class PreconditionError(EngineError):
    """The item's ETag is not the expected one."""


class InvalidError(EngineError):
    """The request cannot be meant: the message says what is wrong with it."""
