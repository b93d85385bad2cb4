"""``cosmos-workflow-state emulator``: a local Cosmos DB for NoSQL that runs until it is told to end."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from cosmos_workflow_state import emulator
from cosmos_workflow_state.emulator._engine._errors import EngineError
from cosmos_workflow_state.emulator._hosts import RemoteAccessError, is_loopback

from ._output import CommandError, ExitCode, say, say_json, warn

if TYPE_CHECKING:
    from cosmos_workflow_state.emulator import CosmosEmulator

_WARNING: Final = """\
other machines can reach this emulator. Whoever has the key can read,
change and delete all that is in it. It is made for tests: keep it in a network
you trust, and nothing in it that matters."""
_PLAIN: Final = "without --tls everything, too, can be read on its way."
WELL_KNOWN_KEY: Final = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
"""No secret: the key of every emulator of Microsoft's (https://learn.microsoft.com/azure/cosmos-db/emulator)."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to run it: the arguments of `CosmosEmulator`."""

    data: str | None
    host: str
    port: int
    tls: bool
    key: str | None = field(repr=False)
    partitions: int | None
    allow_remote: bool
    admin: bool


def run_emulator(options: Options, *, as_json: bool) -> None:
    """Run the emulator until SIGTERM or Ctrl-C.

    Args:
        options: How.
        as_json: Whether it is one line of JSON that says when it is ready.

    Raises:
        CommandError: It cannot run as asked.
    """
    if as_json and options.key is None:
        raise CommandError(
            "--json shows no key that is a secret, so give one that you know in COSMOS_EMULATOR_KEY, for example "
            f"{WELL_KNOWN_KEY}",
            ExitCode.USAGE,
        )
    try:
        opened = emulator.CosmosEmulator(**asdict(options))
        if not is_loopback(options.host):
            warn(_WARNING)
            if not options.tls:
                warn(_PLAIN)
        asyncio.run(_serve(opened, options, as_json=as_json))
    except (EngineError, ModuleNotFoundError, RemoteAccessError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(_explained(error, options)) from error


def _explained(error: OSError, options: Options) -> str:
    """Return what the system refused, and what to do about it."""
    where = f"{options.host}:{options.port}"
    said = os.strerror(error.errno).lower() if error.errno else type(error).__name__
    if error.errno == errno.EADDRINUSE:
        return f"port {options.port} of {options.host} is in use; --port takes another one, 0 a free one"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{where} is no address of this machine; --host takes one, 127.0.0.1 is the one that only it can reach"
    if options.data is not None and error.filename is not None:
        return (
            f"the state file {options.data!r} cannot be opened ({said}); --data takes "
            "a path in a directory that exists and that this user may write to"
        )
    return f"the emulator cannot run at {where}: {said}"


async def _serve(opened: CosmosEmulator, options: Options, *, as_json: bool) -> None:
    stop = asyncio.Event()
    with _ended_by(stop, signal.SIGINT, signal.SIGTERM):
        async with opened:
            if as_json:
                say_json(_document(opened, options), in_one_line=True)
            else:
                _tell(opened, options)
            await stop.wait()
    if not as_json:
        say("The emulator has ended.")


def _tell(opened: CosmosEmulator, options: Options) -> None:
    say(f"Emulator of Azure Cosmos DB for NoSQL, data in {options.data or 'memory'}. Ctrl-C ends it.")
    say(f"\n  endpoint  {opened.endpoint}\n  key       {opened.key}\n")
    for name, value in _environment(opened.endpoint, opened.key).items():
        say(f"export {name}='{value}'")


def _document(opened: CosmosEmulator, options: Options) -> dict[str, Any]:
    key = opened.key if opened.key == WELL_KNOWN_KEY else None
    return {
        "endpoint": opened.endpoint,
        "key": key,
        "key_is_well_known": key is not None,
        "data": options.data,
        "tls": options.tls,
        "process": os.getpid(),
        "environment": _environment(opened.endpoint, key),
    }


def _environment(endpoint: str, key: str | None) -> dict[str, str]:
    """Return the variables with which the library uses the emulator."""
    return {
        "COSMOS_WORKFLOW_STATE_ENDPOINT": endpoint,
        **({} if key is None else {"COSMOS_WORKFLOW_STATE_KEY": key}),
        "COSMOS_WORKFLOW_STATE_PROVISIONING": "create",
    }


@contextmanager
def _ended_by(stop: asyncio.Event, *signals: signal.Signals) -> Generator[None]:
    """Set an event of the running loop when one of the signals comes; Windows has no other way than this."""
    loop = asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop.set)

    before = [signal.signal(number, end) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
