"""Runs a sample of Foundry without a project: the service's HTTP answers come from here, everything else is real.

    python tests/support/foundry_answers.py SAMPLE [ARGUMENT ...]

The sample's ``main`` is run as it is, with the real client. What that sends to the service, respx answers where the
connections are: ``openai`` speaks through httpx2, whose connections are httpcore2's. The token is a stand-in's, given
as an application gives any credential: ``main(credential=...)``.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any, Self

import httpcore2
import httpx
import respx
from azure.core.credentials import AccessToken
from respx.mocks import HTTPCoreMocker

# Nothing ever answers to a name in .invalid (RFC 2606), should a request get past respx.
ENDPOINT = "https://foundry.invalid/api/projects/samples"
MODEL = "stand-in"
TOKEN = "stand-in"
REQUESTS_FILE = "REQUESTS_FILE"
"""The variable that names a file, if somebody wants to see there what was asked."""

Json = dict[str, Any]


class HTTPCore2Mocker(HTTPCoreMocker):
    """Lets respx answer for httpx2; respx itself knows only httpx (https://github.com/lundberg/respx/pull/317)."""

    name = "httpcore2 of samples"
    targets = ["httpcore2._async.connection_pool.AsyncConnectionPool"]  # noqa: RUF012 - as respx declares it

    @classmethod
    def from_sync_httpx_response(cls, httpx_response: Any, target: Any, **_request: Any) -> Any:  # noqa: ARG003 - respx's
        """Make a response of httpcore2 from the one of a route."""
        return httpcore2.Response(
            httpx_response.status_code,
            headers=httpx_response.headers.raw,
            content=httpx_response.stream,
            extensions=httpx_response.extensions,
        )


class StandInCredential:
    """A token credential as those of azure.identity.aio are, without anyone to ask for a token."""

    async def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        """Give a token that no service takes."""
        return AccessToken(TOKEN, int(time.time()) + 3600)

    async def close(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Do nothing."""


def answer(numbers: itertools.count[int], request: httpx.Request) -> httpx.Response:
    """Answer with how much was given, and what was said last."""
    asked = json.loads(request.content)
    if REQUESTS_FILE in os.environ:
        with Path(os.environ[REQUESTS_FILE]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asked) + "\n")
    given = texts_of(asked)
    return httpx.Response(200, json=response(next(numbers), f"messages: {len(given)}, the last: {given[-1]}"))


def texts_of(asked: Json) -> list[str]:
    """Return the texts that the service was given to answer, oldest first."""
    return [content["text"] for item in asked["input"] for content in item["content"]]


def response(number: int, text: str) -> Json:
    """Return a response of the service: https://platform.openai.com/docs/api-reference/responses/object."""
    content: Json = {"type": "output_text", "text": text, "annotations": []}
    message: Json = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "completed",
        "model": MODEL,
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def main(sample: str, *arguments: str) -> None:
    """Run a sample's ``main`` with a route in place of the service; a request that is none of it is an error."""
    os.environ |= {"FOUNDRY_PROJECT_ENDPOINT": ENDPOINT, "FOUNDRY_MODEL": MODEL}
    run = runpy.run_path(sample)["main"]
    with respx.mock(using=HTTPCore2Mocker.name, assert_all_called=False) as routes:
        route = routes.post(f"{ENDPOINT}/openai/v1/responses", headers={"Authorization": f"Bearer {TOKEN}"})
        route.mock(side_effect=functools.partial(answer, itertools.count(1)))
        asyncio.run(run(*arguments, credential=StandInCredential()))


if __name__ == "__main__":
    main(*sys.argv[1:])
