"""One event an operation, nothing printed unasked, nothing secret in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

from cosmos_workflow_state import _logging
from cosmos_workflow_state._logging import CHECKPOINT_SAVE, Operation, get_logger, operation, redacted


@pytest.fixture(autouse=True)
def _structlog_as_before() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


@pytest.fixture
def events() -> list[EventDict]:
    """Configure structlog as an application would, and return the list its events go to."""
    seen: list[EventDict] = []

    def keep(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        seen.append({**event, "level": method})
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    return seen


class ServiceRefusedError(Exception):
    """An error with what the service said, like ours."""

    status_code = 429
    sub_status = 3200


def test_unconfigured_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """While the application has not configured structlog, no event of any level is printed."""
    logger = get_logger().bind(tenant_id="contoso")
    logger.debug("factory.opened")
    logger.error("checkpoint.save_failed", error_type="ValueError")
    logger.critical("isolation.violated")
    assert capfd.readouterr() == ("", "")
    assert not structlog.is_configured()


def test_configured_is_used(events: list[EventDict]) -> None:
    """Once the application has configured structlog, its processors get our events."""
    get_logger().info("factory.opened", provisioning="verify")
    assert events == [{"event": "factory.opened", "provisioning": "verify", "level": "info"}]


async def test_operation_emits_one_event(events: list[EventDict]) -> None:
    """A block that ends well emits one event with its duration, the fields from before and those added in it."""
    with operation(get_logger(), CHECKPOINT_SAVE, tenant_id="contoso", request_charge=0.0) as event:
        await asyncio.sleep(0)
        event.add(request_charge=6.4, stored_bytes=812)
    (emitted,) = events
    assert emitted.pop("duration_ms") >= 0
    assert emitted == {
        "event": "checkpoint.saved",
        "level": "info",
        "tenant_id": "contoso",
        "request_charge": 6.4,
        "stored_bytes": 812,
    }


@pytest.mark.parametrize(
    ("error", "level", "told"),
    [
        pytest.param(
            ServiceRefusedError("text of the item"),
            "error",
            {"error_type": "ServiceRefusedError", "status_code": 429, "sub_status": 3200},
            id="service error",
        ),
        pytest.param(ValueError("text of the item"), "error", {"error_type": "ValueError"}, id="any error"),
        pytest.param(asyncio.CancelledError(), "warning", {"error_type": "CancelledError"}, id="cancelled"),
    ],
)
def test_failed_operation_emits_one_event(
    events: list[EventDict], error: BaseException, level: str, told: dict[str, Any]
) -> None:
    """A block that fails emits one event with the error's type and status, not its text, and raises the same."""

    def failing() -> None:
        with operation(get_logger(), CHECKPOINT_SAVE, scope="s") as event:
            event.add(raw_bytes=5)
            raise error

    with pytest.raises(type(error)) as caught:
        failing()
    assert caught.value is error
    (emitted,) = events
    assert emitted.pop("duration_ms") >= 0
    assert emitted == {"event": "checkpoint.save_failed", "level": level, "scope": "s", "raw_bytes": 5, **told}


def _iteration(steps: list[str]) -> Iterator[int]:
    with operation(get_logger(), CHECKPOINT_SAVE) as event:
        for number in range(3):
            event.add(count=number)
            with event.paused():
                yield number
            steps.append("resumed")


@pytest.mark.parametrize("closed", [False, True], ids=["used up", "closed early"])
def test_an_iteration_does_not_count_what_is_done_between_its_steps(
    events: list[EventDict], monkeypatch: pytest.MonkeyPatch, *, closed: bool
) -> None:
    """The caller's time is not the operation's, and who leaves early has got what he wanted."""
    now = 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    steps: list[str] = []
    numbers = _iteration(steps)
    for number in numbers:
        now += 1000.0
        if closed and number == 1:
            break
    numbers.close()  # type: ignore[attr-defined]
    (emitted,) = events
    assert emitted == {
        "event": "checkpoint.saved",
        "level": "info",
        "duration_ms": 0.0,
        "count": 1 if closed else 2,
    }
    assert len(steps) == (1 if closed else 3)


def test_an_operation_that_is_torn_down_has_not_been_done(events: list[EventDict]) -> None:
    """Only between two steps is a close an end: a coroutine that is dropped in the middle of a save saved nothing."""

    def torn() -> Iterator[None]:
        with operation(get_logger(), CHECKPOINT_SAVE):
            yield

    numbers = torn()
    next(numbers)
    numbers.close()  # type: ignore[attr-defined]
    (emitted,) = events
    assert (emitted["event"], emitted["error_type"]) == ("checkpoint.save_failed", "GeneratorExit")


def test_failing_processor_replaces_no_error() -> None:
    """An application's processor that raises does not replace the error of the operation."""

    def broken(_logger: WrappedLogger, _method: str, _event: EventDict) -> EventDict:
        raise RuntimeError("processor")

    structlog.configure(processors=[broken])
    with pytest.raises(ValueError, match="operation") as caught, operation(get_logger(), CHECKPOINT_SAVE):
        raise ValueError("operation")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_secrets_do_not_reach_an_event(events: list[EventDict]) -> None:
    """A field named like a secret is replaced on its way into the event."""
    with operation(get_logger(), CHECKPOINT_SAVE) as event:
        event.add(account_key="c2VjcmV0")
    assert events[0]["account_key"] == "[redacted]"


@pytest.mark.parametrize(
    ("name", "value", "logged"),
    [
        pytest.param("tenant_id", "contoso", "contoso", id="text"),
        pytest.param("request_charge", 6.4, 6.4, id="float"),
        pytest.param("payload_bytes", 812, 812, id="number of a payload"),
        pytest.param("is_payload", True, True, id="boolean"),
        pytest.param("token", None, None, id="nothing"),
        pytest.param("key", "x", "[redacted]", id="key"),
        pytest.param("Account_Key", "x", "[redacted]", id="key in a longer name"),
        pytest.param("authorization", "x", "[redacted]", id="header"),
        pytest.param("item", {"state": 1}, "[redacted]", id="mapping"),
        pytest.param("ids", ["a"], "[redacted]", id="list"),
        pytest.param("body", b"x", "[redacted]", id="bytes"),
        pytest.param("auth", SecretStr("x"), "[redacted]", id="masked secret"),
    ],
)
def test_redaction(name: str, value: object, logged: object) -> None:
    """Numbers and plain text pass; secrets by name and everything that may hold content are replaced."""
    assert redacted({name: value}) == {name: logged}


@given(
    st.sampled_from(["key", "token", "secret", "password", "payload"]),
    st.from_regex(r"[a-z]{0,5}", fullmatch=True),
    st.text(),
)
def test_text_under_a_secret_name_is_replaced(word: str, other: str, text: str) -> None:
    """Whatever stands before or after a secret word in a field's name, its text is replaced."""
    fields = {f"{other}_{word}": text, f"{word}_{other}": text}
    assert set(redacted(fields).values()) == {"[redacted]"}


def test_event_names_are_well_formed_and_distinct() -> None:
    """Every event is ``area.verb_past`` in small letters, and no two events share a name."""
    operations = [value for value in vars(_logging).values() if isinstance(value, Operation)]
    names = [name for one in operations for name in (one.done, one.failed)]
    names += [
        _logging.CHECKPOINT_LARGE,
        _logging.CHECKPOINT_UNDECODABLE,
        _logging.HOOK_FAILED,
        _logging.ISOLATION_VIOLATED,
        _logging.WORKFLOW_UNSTABLE_NAME,
    ]
    assert all(name.replace(".", "", 1).replace("_", "").isalpha() and name == name.lower() for name in names)
    assert all(one.done.partition(".")[0] == one.failed.partition(".")[0] for one in operations)
    assert len(set(names)) == len(names)


def test_bound_logger_protocol() -> None:
    """Both loggers have the methods the operations call."""
    for configured in (False, True):
        if configured:
            structlog.configure(processors=[structlog.processors.KeyValueRenderer()])
        logger: FilteringBoundLogger = get_logger()
        assert all(callable(getattr(logger, level)) for level in ("info", "warning", "error"))
