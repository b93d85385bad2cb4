"""How an application uses the public API. Never run: mypy and pyright, both strict, check it as a user's code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_type

from agent_framework import (
    AgentSession,
    CheckpointStorage,
    HistoryProvider,
    Message,
    SessionStore,
    WorkflowBuilder,
    WorkflowCheckpoint,
)
from azure.core.credentials_async import AsyncTokenCredential
from azure.cosmos.aio import CosmosClient
from pydantic import SecretStr

from cosmos_workflow_state import (
    CosmosStateFactory,
    CosmosStateSettings,
    KeyAuth,
    ManagedIdentityAuth,
    TenantCheckpointStorage,
    TenantHistoryProvider,
    TenantSessionStore,
    TenantState,
)
from cosmos_workflow_state.errors import (
    AccessDeniedError,
    AmbiguousCheckpointError,
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointNotRestorableError,
    CheckpointTooLargeError,
    CosmosStateError,
    FactoryClosedError,
    InvalidArgumentError,
    InvalidIdentifierError,
    OperationTimeoutError,
    ProvisioningError,
    ServiceError,
    SettingsError,
    ThrottledError,
)
from cosmos_workflow_state.settings import SettingOrigin, read_origins
from cosmos_workflow_state.typing import (
    CheckpointOutline,
    CheckpointSummary,
    HistoryOptions,
    SaveFailedHook,
    SaveFailure,
    SaveFailures,
    StoredSession,
)


def settings_from_everywhere() -> CosmosStateSettings:
    """Settings come from the environment, from files and from arguments."""
    from_environment = CosmosStateSettings()
    without_env_file = CosmosStateSettings(endpoint="embedded:", _env_file=None)
    assert_type(from_environment.endpoint, str)
    assert_type(without_env_file.embedded_path, Path | None)
    assert_type(without_env_file.is_embedded, bool)
    return CosmosStateSettings(
        endpoint="https://contoso.documents.azure.com:443/",
        database="workflow-state",
        checkpoint_container="checkpoints",
        auth=KeyAuth(mode="key", key=SecretStr("a key")),
        provisioning="create",
        tenant_id_pattern="[a-z0-9-]+",
        allowed_checkpoint_types=["billing.models:Invoice"],
        max_payload_bytes=8 * 1024 * 1024,
        warn_bytes=2 * 1024 * 1024,
        checkpoint_ttl=30 * 24 * 3600,
        operation_timeout=20.0,
        on_undecodable="raise",
        log_level="info",
        _env_file=Path("production.env"),
        _secrets_dir="/run/secrets",
    )


def account_key(settings: CosmosStateSettings) -> str | None:
    """The key is there for whoever asks for it by name."""
    return settings.auth.key.get_secret_value() if isinstance(settings.auth, KeyAuth) else None


def as_a_user_assigned_identity() -> CosmosStateSettings:
    """Every way to authenticate has a model, or is a mapping with its mode."""
    CosmosStateSettings(auth={"mode": "default", "exclude": ["azure_cli"]})
    return CosmosStateSettings(auth=ManagedIdentityAuth(client_id="an id"), throughput="autoscale:1000")


async def one_factory_for_the_process(client: CosmosClient, credential: AsyncTokenCredential) -> None:
    """A factory is entered, or closed by hand; what the application gives it stays the application's."""
    async with CosmosStateFactory() as factory:
        assert_type(factory, CosmosStateFactory)
    async with CosmosStateFactory(CosmosStateSettings(), client=client):
        pass
    by_hand = CosmosStateFactory(settings_from_everywhere(), credential=credential)
    assert_type(await by_hand.close(), None)


def one_storage_for_a_request(factory: CosmosStateFactory, tenant_id: str) -> CheckpointStorage:
    """A tenant's storage is the framework's storage, and is narrowed without I/O."""
    state = factory.for_tenant(tenant_id)
    assert_type(state, TenantState)
    assert_type(state.tenant_id, str)
    assert_type(state.checkpoints, TenantCheckpointStorage)
    narrowed = state.checkpoints.scoped("session-42").for_workflow("invoice-approval")
    assert_type(narrowed, TenantCheckpointStorage)
    assert_type(narrowed.scope, str)
    return narrowed


def workflow_on_a_storage(builder: WorkflowBuilder, storage: TenantCheckpointStorage) -> object:
    """The framework takes the storage where it wants its own."""
    return builder.build().run("go", checkpoint_storage=storage)


async def six_methods(storage: TenantCheckpointStorage, checkpoint: WorkflowCheckpoint) -> None:
    """The methods have the framework's types."""
    assert_type(await storage.save(checkpoint), str)
    assert_type(await storage.load("an id"), WorkflowCheckpoint)
    assert_type(await storage.list_checkpoints(workflow_name="invoice-approval"), list[WorkflowCheckpoint])
    assert_type(await storage.list_checkpoint_ids(workflow_name="invoice-approval"), list[str])
    assert_type(await storage.get_latest(workflow_name="invoice-approval"), WorkflowCheckpoint | None)
    assert_type(await storage.delete("an id"), bool)


async def reading_more(storage: TenantCheckpointStorage) -> AsyncIterator[str]:
    """Iterators and lists beyond the framework's protocol, with values of ours."""
    since = datetime(2026, 11, 29, tzinfo=UTC)
    async for checkpoint in storage.iter_checkpoints("invoice-approval", newest_first=True, limit=10, since=since):
        yield assert_type(checkpoint, WorkflowCheckpoint).checkpoint_id
    headers = storage.iter_checkpoint_headers("invoice-approval")
    async for summary in headers:
        assert_type(summary, CheckpointSummary)
        assert_type(summary.pending_request_ids, tuple[str, ...])
        assert_type(summary.expires, datetime | None)
        yield summary.checkpoint_id
    assert_type(await headers.aclose(), None)
    assert_type(await storage.list_workflows(), list[str])
    assert_type(await storage.lineage("an id"), list[CheckpointSummary])
    assert_type(await storage.list_children("an id"), list[CheckpointSummary])
    assert_type(await storage.find_checkpoints("an i"), list[CheckpointSummary])
    assert_type(await storage.inspect("an id"), CheckpointOutline)
    assert_type(read_origins(_env_file=None), Mapping[str, SettingOrigin])


class Alarm:
    """A hook may be an object as well as a function, and return what it likes."""

    def __call__(self, failure: SaveFailure) -> bool:
        """Say whether a repeat may help."""
        return isinstance(failure.error, CosmosStateError) and failure.error.retryable


def hearing_of_failed_saves(storage: TenantCheckpointStorage) -> CosmosStateFactory:
    """A failed save is told to a hook, and counted by the storage."""
    told: list[SaveFailure] = []
    hook: SaveFailedHook = told.append
    assert_type(storage.failures, SaveFailures)
    assert_type(storage.failures.count, int)
    assert_type(storage.failures.last_error, CosmosStateError | None)
    CosmosStateFactory(on_save_failed=Alarm())
    return CosmosStateFactory(on_save_failed=hook)


def living_for_a_while(storage: TenantCheckpointStorage) -> TenantCheckpointStorage:
    """A time to live is a number of seconds, or never."""
    assert_type(storage.with_ttl(3600), TenantCheckpointStorage)
    return storage.with_ttl(None)


def reading_an_error(error: CosmosStateError) -> object:
    """Each error carries what a program needs to decide, typed."""
    assert_type(error.retryable, bool)
    match error:
        case CheckpointError():
            return reading_a_checkpoint_error(error)
        case ServiceError():
            return reading_a_service_error(error)
        case ProvisioningError():
            return assert_type(error.problems, tuple[str, ...])
        case SettingsError() | InvalidArgumentError() | InvalidIdentifierError() | FactoryClosedError():
            return str(error)
        case _:
            return None


async def keeping_chat_history(state: TenantState) -> None:
    """A provider is one of the framework's; options by keyword, or gathered before."""
    options: HistoryOptions = {"load_messages": False, "store_context_from": {"facts"}}
    audit: HistoryProvider = state.history("audit", **options)
    history = assert_type(state.history(max_messages=20, ttl=None), TenantHistoryProvider)
    messages = assert_type(await audit.get_messages("conversation-1"), list[Message])
    await history.save_messages("conversation-1", messages, state={})
    assert_type(await history.count("conversation-1"), int)
    assert_type(await history.list_sessions(), list[str])
    await history.clear("conversation-1")
    assert_type(await history.delete_session("conversation-1"), bool)


async def keeping_sessions(state: TenantState) -> None:
    """The store is one of the framework's; versions are optional."""
    sessions = assert_type(state.sessions, TenantSessionStore)
    store: SessionStore = sessions
    session = assert_type(await store.get("conversation-1"), AgentSession | None) or AgentSession()
    await store.set("conversation-1", session)
    stored = assert_type(await sessions.get_stored("conversation-1"), StoredSession | None)
    if stored is not None:
        await sessions.set("conversation-1", stored.session, if_match=stored.etag)
        assert_type(await sessions.set_stored("conversation-1", stored.session, if_match=""), str)
    await sessions.delete("conversation-1")


def reading_a_checkpoint_error(error: CheckpointError) -> object:
    """What is wrong with which checkpoint."""
    match error:
        case CheckpointNotRestorableError():
            return assert_type(error.types, tuple[str, ...])
        case CheckpointTooLargeError():
            return assert_type(error.size, int) - assert_type(error.limit, int)
        case (
            AmbiguousCheckpointError()
            | CheckpointConflictError()
            | CheckpointCorruptError()
            | CheckpointNotFoundError()
        ):
            return assert_type(error.checkpoint_id, str | None)
        case _:
            return error.tenant_id, error.scope, error.workflow_name


def reading_a_service_error(error: ServiceError) -> object:
    """What the service said, and what there is to do."""
    match error:
        case ThrottledError():
            return assert_type(error.retry_after, float | None)
        case OperationTimeoutError():
            return assert_type(error.timeout, float)
        case AccessDeniedError():
            return assert_type(error.remedy, str), assert_type(error.missing_actions, tuple[str, ...])
        case _:
            return error.status_code, error.sub_status, error.activity_id, assert_type(error.outcome_unknown, bool)
