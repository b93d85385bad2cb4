"""A local Cosmos DB for NoSQL: the engine that answers the azure-cosmos client without an account."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._emulator import CosmosEmulator
    from ._gateway._faults import Fault

__all__ = ["CosmosEmulator", "Fault"]

_HOMES = {"CosmosEmulator": "_emulator", "Fault": "_gateway._faults"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: the embedded engine needs no server."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
