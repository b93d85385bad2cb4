"""From settings to an entered client of the account or the embedded engine, and what is closed with it.

It knows nothing of containers. Which key is tried is decided by who asks for a client.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from azure.core.credentials_async import AsyncTokenCredential
from azure.cosmos.aio import CosmosClient
from pydantic import SecretStr

from ._credentials import make_credential, refuse_plain_http
from ._embedded import EmbeddedAccount, EngineError, open_embedded
from ._remedies import Access
from ._service_errors import translated
from .errors import ProvisioningError
from .settings import CosmosStateSettings

CLIENT_OPTIONS: Final[dict[str, Any]] = {
    # All retries are the gateway's: the client re-sends writes that are not idempotent after a dropped connection, and
    # turns one throttled query into 100 requests. (-1: it takes 0 for "not given".)
    "retry_total": 0,
    "retry_throttle_total": -1,
    # Otherwise a text in Chinese takes twice, an emoji three times the bytes it is stored and paid for with.
    "enable_compact_utf8_item_writes": True,
    "user_agent_suffix": f"cosmos-workflow-state/{version('cosmos-workflow-state')}",
}


def is_to_be_made(settings: CosmosStateSettings) -> bool:
    """Tell whether entering a client would create a state file."""
    path = settings.embedded_path
    return path is not None and path.parent.is_dir() and not path.exists()


async def enter_client(
    settings: CosmosStateSettings,
    opening: AsyncExitStack,
    *,
    access: Access,
    key: SecretStr | None,
    credential: AsyncTokenCredential | None,
) -> CosmosClient:
    """Return an entered client: of the embedded engine, by key, by a given credential or by that of the settings.

    Args:
        settings: Where, and with which identity where neither key nor credential is given.
        opening: Closes all that is opened here; a given credential is not.
        access: Who asks, for what is said when it cannot be opened or the service refuses.
        key: The account key that signs.
        credential: A token credential of the caller's.

    Raises:
        ProvisioningError: The state file of the embedded engine cannot be opened.
        ServiceError: The service refused or could not be reached.
        SettingsError: There is no identity, or no token may be sent to the endpoint.
    """
    client = await _build(settings, opening, access, credential if key is None else key)
    # Before entering: a client whose entering fails has a session to close, and without entering there would be no
    # session token, so no reading of what was just written.
    opening.push_async_callback(client.close)
    with translated(access=access):
        await client.__aenter__()
    return client


async def _build(
    settings: CosmosStateSettings,
    opening: AsyncExitStack,
    access: Access,
    given: SecretStr | AsyncTokenCredential | None,
) -> CosmosClient:
    if settings.is_embedded:
        account = await _open_embedded(settings.embedded_path, access)
        opening.push_async_callback(account.close)
        return CosmosClient(account.endpoint, account.key, transport=account.transport(), **CLIENT_OPTIONS)
    if isinstance(given, SecretStr):
        # In no variable of this frame, nor of those it leaves through: error trackers record them.
        return CosmosClient(settings.endpoint, given.get_secret_value(), **CLIENT_OPTIONS)
    refuse_plain_http(access)
    proof = given if given is not None else await _own_credential(settings, opening)
    return CosmosClient(settings.endpoint, proof, **CLIENT_OPTIONS)


async def _own_credential(settings: CosmosStateSettings, opening: AsyncExitStack) -> AsyncTokenCredential:
    return await opening.enter_async_context(make_credential(settings))


async def _open_embedded(path: Path | None, access: Access) -> EmbeddedAccount:
    try:
        return await open_embedded(path)
    except (EngineError, OSError) as error:
        fault = str(error) if path is None else _fault_of(path, error)
        raise ProvisioningError(
            f"the state file that {access.named_by} names cannot be opened: {fault}; it takes a path "
            "in a directory that exists and that this user may write to, for example embedded:state.db"
        ) from error


def _fault_of(path: Path, error: Exception) -> str:
    where = path.absolute()
    if not where.parent.is_dir():
        return f"{where}: its directory does not exist"
    if where.is_dir():
        return f"{where}: it is a directory"
    return f"{where}: {error}"
