"""The factory: one per process, which builds each tenant's storages on one shared connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from azure.core.credentials_async import AsyncTokenCredential
from azure.cosmos.aio import CosmosClient

from ._checkpoints import TenantCheckpointStorage
from ._connection import CosmosConnection
from ._conversations import HistoryBackend
from ._definitions import CHECKPOINTS, HISTORY, SESSIONS
from ._gateway import Gateway
from ._history import TenantHistoryProvider
from ._identity import Scope, TenantId, TenantRule
from ._logging import get_logger
from ._maf import RestorePolicy
from ._operations import Operations
from ._saving import check_restorable
from ._session_view import SessionBackend
from ._view import CheckpointBackend, CheckpointView
from .settings import CosmosStateSettings
from .typing import HistoryOptions, SaveFailedHook

if TYPE_CHECKING:
    from ._sessions import TenantSessionStore


@dataclass(frozen=True, slots=True)
class TenantState:
    """Everything that is kept for one tenant.

    Attributes:
        checkpoints: Its checkpoint storage, unscoped.
    """

    checkpoints: TenantCheckpointStorage
    _tenant: TenantId = field(repr=False)
    _session_backend: SessionBackend = field(repr=False)
    _history_backend: HistoryBackend = field(repr=False)

    @property
    def tenant_id(self) -> str:
        """The tenant."""
        return self._tenant.value

    def history(
        self, source_id: str = TenantHistoryProvider.DEFAULT_SOURCE_ID, **options: Unpack[HistoryOptions]
    ) -> TenantHistoryProvider:
        """Return a provider of chat history, for an agent's ``context_providers``; no I/O.

        Args:
            source_id: Which of a session's histories, and where in its state the provider keeps what it knows: not
                empty, at most 1,024 UTF-8 bytes. The default is that of the framework's own provider for Cosmos DB.
            **options: What it loads and stores, see `HistoryOptions`.

        Raises:
            InvalidArgumentError: ``max_messages`` or ``ttl`` is refused.
            InvalidIdentifierError: The source id is refused.
        """
        return TenantHistoryProvider(self._history_backend, self._tenant, source_id, **options)

    @property
    def sessions(self) -> TenantSessionStore:
        """The store of its agents' sessions.

        The framework marks its session stores as experimental, and warns of that when this is first asked for.
        """
        from ._sessions import TenantSessionStore  # noqa: PLC0415 - whoever keeps no sessions is not to be warned

        return TenantSessionStore(self._session_backend, self._tenant)


class CosmosStateFactory:
    """Builds tenant-scoped storages that share one client.

    One per process and event loop, as long-lived as the application; one cheap `for_tenant` per request::

        async with CosmosStateFactory() as factory:
            storage = factory.for_tenant("contoso").checkpoints

    Entering does no I/O: the client is opened, and the container verified or created, at the first operation.
    """

    def __init__(
        self,
        settings: CosmosStateSettings | None = None,
        *,
        client: CosmosClient | None = None,
        credential: AsyncTokenCredential | None = None,
        on_save_failed: SaveFailedHook | None = None,
    ) -> None:
        """Build a factory.

        Args:
            settings: How to reach the account; read from the environment when left out.
            client: An entered client to use in place of one of its own. It is not closed here.
            credential: A token credential to use, whatever the settings say of ``auth``. It is not closed here.
            on_save_failed: Called once for each save that fails, by whichever tenant's storage: the framework's graph
                workflows go on as if it had not.

        Raises:
            SettingsError: The settings are read here and one is wrong or missing.
            TypeError: An argument is of another kind.
        """
        _check_kinds(settings, client, credential)
        _check_hook(on_save_failed)
        self._settings = CosmosStateSettings() if settings is None else settings
        logger = get_logger()
        self._connection = CosmosConnection(self._settings, logger, client=client, credential=credential)
        self._tenants = TenantRule(self._settings.tenant_id_pattern, self._settings.tenant_id_max_length)
        operations = Operations(logger, self._settings.operation_timeout)
        self._session_backend = SessionBackend(
            gateway=Gateway(self._connection.to(SESSIONS)),
            operations=operations,
            max_payload_bytes=self._settings.max_payload_bytes,
            ttl=self._settings.session_ttl,
        )
        self._history_backend = HistoryBackend(
            gateway=Gateway(self._connection.to(HISTORY)),
            operations=operations,
            max_payload_bytes=self._settings.max_payload_bytes,
            ttl=self._settings.history_ttl,
        )
        self._backend = CheckpointBackend(
            gateway=Gateway(self._connection.to(CHECKPOINTS)),
            policy=RestorePolicy(frozenset(self._settings.allowed_checkpoint_types)),
            max_payload_bytes=self._settings.max_payload_bytes,
            warn_bytes=self._settings.warn_bytes,
            operations=operations,
            on_undecodable=self._settings.on_undecodable,
            logger=logger,
            on_save_failed=on_save_failed,
        )

    async def __aenter__(self) -> Self:
        """Return the factory itself.

        Raises:
            FactoryClosedError: It was closed before.
        """
        self._connection.check_open()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Close; a failure to close never hides an error that is already on its way, it becomes a note of it."""
        try:
            await self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"closing the CosmosStateFactory failed as well: {type(failure).__name__}")

    def for_tenant(self, tenant_id: str) -> TenantState:
        """Return what is kept for a tenant: no I/O, a few microseconds, so build one for each request.

        Args:
            tenant_id: Taken as it is, never normalised or case-folded.

        Raises:
            InvalidIdentifierError: The tenant id does not match ``tenant_id_pattern`` as a whole.
            FactoryClosedError: The factory was closed.
        """
        self._connection.check_open()
        tenant, ttl = self._tenants.accept(tenant_id), self._settings.checkpoint_ttl
        view = CheckpointView(self._backend, tenant, Scope(""), workflow_name=None, ttl=ttl)
        return TenantState(TenantCheckpointStorage(view), tenant, self._session_backend, self._history_backend)

    def check_restorable(self, value: object) -> None:
        """Check that a value could be part of a checkpoint that is saved and loaded: an input, say, or an answer.

        Raises:
            CheckpointNotRestorableError: It could not: it holds types that are not allowed, which are named.
        """
        check_restorable(value, self._backend.policy)

    async def close(self) -> None:
        """Close the client; a second call does nothing. What the caller gave stays open.

        Raises:
            Exception: What closing the client raised.
        """
        await self._connection.close()


def _check_kinds(settings: object, client: object, credential: object) -> None:
    if not isinstance(settings, CosmosStateSettings | None):
        raise TypeError(f"settings must be CosmosStateSettings, not {type(settings).__name__}")
    if not isinstance(client, CosmosClient | None):
        raise TypeError(f"client must be azure.cosmos.aio.CosmosClient, not {type(client).__name__}")
    if credential is not None and not iscoroutinefunction(getattr(credential, "get_token", None)):
        raise TypeError(
            "credential must be an asynchronous token credential, as those of azure.identity.aio are, "
            f"not {type(credential).__name__}"
        )


def _check_hook(hook: object) -> None:
    if hook is None:
        return
    if not callable(hook) or iscoroutinefunction(hook) or iscoroutinefunction(type(hook).__call__):
        raise TypeError(
            f"on_save_failed must be an ordinary function, not {type(hook).__name__}: nobody would await an async def"
            if callable(hook)
            else f"on_save_failed must be a function, not {type(hook).__name__}"
        )
