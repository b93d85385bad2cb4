"""One FastAPI application for many tenants: a workflow waits for a human, and the tenant comes from a verified token.

    export TOKEN_KEY=$(openssl rand -hex 32)
    python fastapi_app.py serve            listens on http://localhost:8000
    python fastapi_app.py token contoso    prints a token of contoso, good for an hour
    curl -X POST -H "Authorization: Bearer TOKEN" "localhost:8000/trips?city=Oslo"
    curl -X POST -H "Authorization: Bearer TOKEN" "localhost:8000/trips/ID/answer?answer=yes"

The first answers with the trip's ID, the second with what was decided, also by a server that was started in between.
With a token of fabrikam, contoso's trip is not found. State is kept in ./fastapi_app.db.
"""

import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Never
from uuid import UUID, uuid4

import jwt
import uvicorn
from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from cosmos_workflow_state import CosmosStateFactory, TenantState
from cosmos_workflow_state.errors import InvalidIdentifierError

NAME = "multi-tenant-trips"
AUDIENCE = "https://trips.example"
# An identity provider signs with a private key of its own: then this is ["RS256"], and TOKEN_KEY its public key.
ALGORITHMS = ["HS256"]
TOKEN_KEY = os.environ.get("TOKEN_KEY") or sys.exit("set TOKEN_KEY first, as is said at the top of this file")


class Approval(Executor):
    """Asks a human and goes on with the answer."""

    @handler
    async def ask(self, city: str, context: WorkflowContext[Never, str]) -> None:
        """Ask; the workflow pauses here."""
        await context.request_info(city, str)

    @response_handler
    async def answered(self, city: str, answer: str, context: WorkflowContext[Never, str]) -> None:
        """Finish with the answer, perhaps days later and in another process."""
        await context.yield_output(f"{city}: {answer}")


def build() -> Workflow:
    """Return the workflow, a new one for each request."""
    approval = Approval("approval")
    return WorkflowBuilder(name=NAME, start_executor=approval, output_from=[approval]).build()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Keep one factory open as long as the application serves."""
    os.environ.setdefault("COSMOS_WORKFLOW_STATE_ENDPOINT", "embedded:fastapi_app.db")
    async with CosmosStateFactory() as app.state.factory:
        yield


app = FastAPI(lifespan=lifespan)


def tenant(request: Request, bearer: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> TenantState:
    """Return the state of the tenant that the token names; nothing else in a request has a say in it."""
    try:
        claims = jwt.decode(bearer.credentials, TOKEN_KEY, ALGORITHMS, {"require": ["aud", "exp"]}, audience=AUDIENCE)
    except jwt.InvalidTokenError:
        raise HTTPException(401, "the token is not valid", {"WWW-Authenticate": "Bearer"}) from None
    factory: CosmosStateFactory = request.app.state.factory
    try:
        return factory.for_tenant(claims.get("tid", ""))
    except InvalidIdentifierError:
        raise HTTPException(403, "the token names no tenant") from None


Tenant = Annotated[TenantState, Depends(tenant)]


@app.post("/trips", status_code=201)
async def start(city: str, tenant: Tenant) -> dict[str, UUID]:
    """Run a workflow until it waits for its human."""
    trip_id = uuid4()
    storage = tenant.checkpoints.scoped(str(trip_id))
    await build().run(city, checkpoint_storage=storage)
    if storage.failures.count:
        raise HTTPException(503, "the trip could not be saved")
    return {"trip_id": trip_id}


@app.post("/trips/{trip_id}/answer")
async def resume(trip_id: UUID, answer: str, tenant: Tenant) -> dict[str, str]:
    """Restore the workflow, hand it the answer, and run it to its end."""
    storage = tenant.checkpoints.scoped(str(trip_id))
    paused = await storage.get_latest(workflow_name=NAME)
    if paused is None:
        raise HTTPException(404, "no such trip")
    if not paused.pending_request_info_events:
        raise HTTPException(409, "the trip waits for no answer")
    answers = dict.fromkeys(paused.pending_request_info_events, answer)
    result = await build().run(responses=answers, checkpoint_id=paused.checkpoint_id, checkpoint_storage=storage)
    return {"decided": result.get_outputs()[0]}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            uvicorn.run(app)
        case ["token", tenant_id]:
            claims = {"aud": AUDIENCE, "exp": int(time.time()) + 3600, "tid": tenant_id}
            print(jwt.encode(claims, TOKEN_KEY, ALGORITHMS[0]))
        case _:
            print(__doc__, file=sys.stderr)
            sys.exit(2)
