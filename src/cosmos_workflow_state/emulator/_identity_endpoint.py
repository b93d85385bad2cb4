"""A stand-in for the endpoints that give identities their tokens, in three of Azure's shapes.

Owns the shapes: App Service (https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference),
virtual machines (https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token)
and, with TLS, what pods change their token file for
(https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow#third-case-access-token-request-with-a-federated-credential).
Must not know what tokens are worth.
"""

from __future__ import annotations

import hmac
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from cosmos_workflow_state.emulator._tokens import LIFETIME

__all__ = ["IdentityEndpoint"]

_HOST: Final = "127.0.0.1"
_APP_SERVICE: Final = "/msi/token"
_MACHINE: Final = "/metadata/identity/oauth2/token"
_DIRECTORY: Final = "/emulator/oauth2/v2.0/token"
_GRANT: Final = "client_credentials"
_ALL: Final = "/.default"


class IdentityEndpoint:
    """Listens on this machine while the context is open; a credential finds it by environment variables.

    Attributes:
        federated_token: What the token file of a pod holds.
    """

    def __init__(self, issue: Callable[[str], str], context: ssl.SSLContext | None = None) -> None:
        """Set who makes tokens.

        Args:
            issue: Makes one for an audience.
            context: For TLS, without which no client changes a token file; None leaves that shape out.
        """
        self._issue = issue
        self._context = context
        self.federated_token: Final = secrets.token_hex(16)
        self._secret = secrets.token_hex(16)
        self._runner: web.ServerRunner | None = None
        self._port = 0
        self._tls_port = 0

    @property
    def app_service_environment(self) -> Mapping[str, str]:
        """Environment variables that a credential takes for App Service's."""
        return {"IDENTITY_ENDPOINT": f"http://{_HOST}:{self._port}{_APP_SERVICE}", "IDENTITY_HEADER": self._secret}

    @property
    def virtual_machine_environment(self) -> Mapping[str, str]:
        """Environment variables that lead a credential here instead of to a virtual machine's fixed address."""
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://{_HOST}:{self._port}"}

    @property
    def workload_identity_environment(self) -> Mapping[str, str]:
        """Environment variables of a pod, all but AZURE_FEDERATED_TOKEN_FILE, which names a file of the caller's."""
        return {
            "AZURE_AUTHORITY_HOST": f"https://localhost:{self._tls_port}",
            "AZURE_TENANT_ID": "emulator",
            "AZURE_CLIENT_ID": "emulator",
        }

    async def __aenter__(self) -> Self:
        """Listen."""
        runner = web.ServerRunner(web.Server(self._respond, access_log=None))
        await runner.setup()
        self._runner = runner
        await web.TCPSite(runner, _HOST, 0).start()
        if self._context is not None:
            await web.TCPSite(runner, _HOST, 0, ssl_context=self._context).start()
        self._port, self._tls_port = runner.addresses[0][1], runner.addresses[-1][1]
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Stop listening."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _respond(self, received: web.BaseRequest) -> web.Response:
        if (received.method, received.path, received.scheme) == ("POST", _DIRECTORY, "https"):
            return await self._change(received)
        if received.method != "GET" or received.path not in (_APP_SERVICE, _MACHINE):
            return _refused(404, "not_found", "There is no such endpoint.")
        if not self._trusts(received):
            return _refused(401, "unauthorized_client", "The header that proves a local caller is missing or wrong.")
        resource = received.query.get("resource", "")
        if not resource or "api-version" not in received.query:
            return _refused(400, "invalid_request", "The parameters resource and api-version are needed.")
        return web.json_response(self._answer(received.path, resource))

    async def _change(self, received: web.BaseRequest) -> web.Response:
        """Give a token for what a pod's token file holds."""
        form = await received.post()
        assertion, scope = str(form.get("client_assertion", "")), str(form.get("scope", ""))
        if form.get("grant_type") != _GRANT or not scope.endswith(_ALL):
            return _refused(400, "invalid_request", "The grant or its scope is none that is known here.")
        if not hmac.compare_digest(assertion.encode("utf-8", "replace"), self.federated_token.encode()):
            return _refused(401, "invalid_client", "The assertion is not what the token file holds.")
        token = self._issue(scope.removesuffix(_ALL))
        return web.json_response({"access_token": token, "expires_in": LIFETIME, "token_type": "Bearer"})

    def _trusts(self, received: web.BaseRequest) -> bool:
        if received.path == _APP_SERVICE:
            given = received.headers.get("x-identity-header", "")
            return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._secret.encode())
        return received.headers.get("metadata", "").lower() == "true"

    def _answer(self, path: str, resource: str) -> dict[str, str]:
        now = int(time.time())
        token = {
            "access_token": self._issue(resource),
            "expires_on": str(now + LIFETIME),
            "resource": resource,
            "token_type": "Bearer",
        }
        if path == _MACHINE:
            token |= {"expires_in": str(LIFETIME), "not_before": str(now)}
        return token


def _refused(status: int, error: str, description: str) -> web.Response:
    return web.json_response({"error": error, "error_description": description}, status=status)
