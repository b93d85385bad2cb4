"""Session tokens on the wire: whatever was written or refused is seen by all that is read afterwards."""

from __future__ import annotations

import pytest

from cosmos_workflow_state._gateway import Create, Delete, Meter, Read, Refusal, Upsert
from cosmos_workflow_state.errors import ServiceUnavailableError
from unit.support.jumping import jumping
from unit.support.operations import OPERATIONS, RESULTS, WORKS
from unit.support.wire import SELF, Wire, deleted, done, failed, found, item, wire, written

READS = ("read", "query", "prefix query", "batch")
WRITTEN = {
    "create": written,
    "delete": deleted,
    "batch": lambda lsn: done(201, lsn=lsn),
}


async def session_of_next(on: Wire, name: str) -> str | None:
    """Return the session token that an operation carries."""
    on.answers = [WORKS[name]()]
    assert await OPERATIONS[name](on.gateway, Meter()) == RESULTS[name]
    return on.sent[-1].session


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITTEN)
@jumping
async def test_what_was_written_is_read(write: str, read: str) -> None:
    """The first thing that is read after the first thing that was written carries its token."""
    async with wire() as on:
        on.answers = [WRITTEN[write](41)]
        assert await OPERATIONS[write](on.gateway, Meter()) == RESULTS[write]
        assert await session_of_next(on, read) == "0:-1#41"


@pytest.mark.parametrize("read", READS)
@jumping
async def test_the_newest_of_many_is_read(read: str) -> None:
    """Tokens of batches and of single writes are one row, in which an older one never replaces a newer one."""
    async with wire() as on:
        for name, lsn in (("create", 7), ("batch", 9), ("delete", 8), ("batch", 6)):
            on.answers = [WRITTEN[name](lsn)]
            await OPERATIONS[name](on.gateway, Meter())
        assert await session_of_next(on, read) == "0:-1#9"


@pytest.mark.parametrize("read", READS)
@jumping
async def test_what_was_refused_is_read(read: str) -> None:
    """After a refusal the truth is read: at least as new as what the refusal was about."""
    async with wire() as on:
        on.answers = [done(424, 409, lsn=12)]
        assert await on.gateway.batch(["contoso", "w"], [Read("g"), Create(item("a"))], Meter()) == Refusal(1, 409)
        assert await session_of_next(on, read) == "0:-1#12"


@jumping
async def test_an_upserted_and_deleted_guard_is_read() -> None:
    """The collecting of keyframes rests on this: its batch always works, and the query behind it sees all before it."""
    async with wire() as on:
        on.answers = [done(201, 204, lsn=77)]
        assert await on.gateway.batch(["contoso", "w"], [Upsert(item("g")), Delete("g")], Meter()) is None
        assert await session_of_next(on, "query") == "0:-1#77"


@pytest.mark.parametrize("name", WRITTEN)
@jumping
async def test_an_answer_without_a_token_keeps_the_one_before(name: str) -> None:
    """Nothing is forgotten because one answer does not say where it stands."""
    async with wire() as on:
        for lsn, header in ((5, "0:-1#5"), (6, None)):
            on.answers = [WRITTEN[name](lsn)]
            if header is None:
                del on.answers[0].headers["x-ms-session-token"]
            await OPERATIONS[name](on.gateway, Meter())
        assert await session_of_next(on, "query") == "0:-1#5"


@pytest.mark.parametrize("name", WRITTEN)
@jumping
async def test_a_token_that_is_none(name: str) -> None:
    """An answer whose token cannot be read is not the service's; after it the truth is read, with the token before."""
    async with wire() as on:
        on.answers = [WRITTEN[name](5)]
        await OPERATIONS[name](on.gateway, Meter())
        for _ in range(12):
            garbled = WRITTEN[name](6)
            garbled.headers["x-ms-session-token"] = "0:who knows"
            on.answers.append(garbled)
        with pytest.raises(ServiceUnavailableError) as caught:
            await OPERATIONS[name](on.gateway, Meter())
        assert caught.value.outcome_unknown
        assert await session_of_next(on, "query") == "0:-1#5"


@jumping
async def test_a_replica_that_lags() -> None:
    """404/1002 is a replica that has not seen the session yet: asked again with the token, never "not there"."""
    async with wire() as on:
        on.answers = [written(30)]
        await OPERATIONS["create"](on.gateway, Meter())
        on.answers = [failed(404, 1002), failed(404, 1002), failed(404, 1002), WORKS["read"]()]
        assert await OPERATIONS["read"](on.gateway, Meter()) == RESULTS["read"]
        assert [one.session for one in on.sent[1:]] == ["0:-1#30"] * 4


@jumping
async def test_an_account_without_sessions() -> None:
    """Where the account's own consistency is another one there are no tokens to keep, and batches work all the same."""
    async with wire(consistency="Eventual") as on:
        on.answers = [done(201)]
        assert await OPERATIONS["batch"](on.gateway, Meter()) == RESULTS["batch"]
        assert await session_of_next(on, "query") is None
        assert await on.gateway.is_sequential() is False


@pytest.mark.parametrize(("regions", "expected"), [(1, True), (2, False)])
@jumping
async def test_whether_a_query_sees_all_writes_before_it(regions: int, *, expected: bool) -> None:
    """Only with sessions and where one region takes all writes."""
    async with wire(regions=regions) as on:
        assert await on.gateway.is_sequential() is expected


@pytest.mark.parametrize("write", WRITTEN)
@jumping
async def test_a_read_elsewhere_forgets_nothing(write: str) -> None:
    """Left alone, the client drops what it knows of all partitions when a read first tells it the container's rid."""
    async with wire() as on:
        on.answers = [WRITTEN[write](41)]
        await OPERATIONS[write](on.gateway, Meter())
        on.answers = [found(item("a", _self=SELF), x_ms_session_token="1:-1#3")]
        assert await on.gateway.read(["fabrikam", "w"], "a", Meter())
        assert await session_of_next(on, "query") == "0:-1#41"
