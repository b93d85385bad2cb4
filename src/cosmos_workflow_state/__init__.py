"""Durable, multi-tenant state for Microsoft Agent Framework workflows on Azure Cosmos DB for NoSQL."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._checkpoints import TenantCheckpointStorage
    from ._factory import CosmosStateFactory, TenantState
    from ._history import TenantHistoryProvider
    from ._sessions import TenantSessionStore
    from .settings import (
        AzureCliAuth,
        ConnectionStringAuth,
        CosmosStateSettings,
        DefaultAuth,
        KeyAuth,
        ManagedIdentityAuth,
        WorkloadIdentityAuth,
    )

__all__ = [
    "AzureCliAuth",
    "ConnectionStringAuth",
    "CosmosStateFactory",
    "CosmosStateSettings",
    "DefaultAuth",
    "KeyAuth",
    "ManagedIdentityAuth",
    "TenantCheckpointStorage",
    "TenantHistoryProvider",
    "TenantSessionStore",
    "TenantState",
    "WorkloadIdentityAuth",
]

_HOMES = {
    "AzureCliAuth": "settings",
    "ConnectionStringAuth": "settings",
    "CosmosStateFactory": "_factory",
    "CosmosStateSettings": "settings",
    "DefaultAuth": "settings",
    "KeyAuth": "settings",
    "ManagedIdentityAuth": "settings",
    "TenantCheckpointStorage": "_checkpoints",
    "TenantHistoryProvider": "_history",
    "TenantSessionStore": "_sessions",
    "TenantState": "_factory",
    "WorkloadIdentityAuth": "settings",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: the emulator needs neither azure nor the framework."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
