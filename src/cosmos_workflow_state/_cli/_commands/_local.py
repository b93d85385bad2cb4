"""``emulator`` and ``demo``: what needs no account and reads no settings."""

from __future__ import annotations

import base64
from binascii import Error as NotBase64Error
from typing import Annotated

import typer

from ._options import Json


def _check_key(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        decoded = base64.b64decode(text, validate=True)
    except (NotBase64Error, ValueError) as error:
        raise typer.BadParameter("the key has to be base64") from error
    if not decoded:
        raise typer.BadParameter("the key is empty")
    return text


def emulator(
    *,
    host: Annotated[str, typer.Option(help="Name or address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one.")] = 8081,
    data: Annotated[
        str | None, typer.Option(metavar="PATH", help="State file, created if there is none; memory if left out.")
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Speak https, with a certificate made at every start.")] = False,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="COSMOS_EMULATOR_KEY",
            show_envvar=False,
            callback=_check_key,
            help="Account key, base64; better in COSMOS_EMULATOR_KEY, as arguments are public; a new one if left out.",
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, metavar="N", help="Physical partitions of a container; by throughput if left out."
        ),
    ] = None,
    allow_remote: Annotated[bool, typer.Option("--allow-remote", help="Listen where other machines reach it.")] = False,
    admin: Annotated[
        bool, typer.Option("--admin", help="Let who has the key set faults and the clock over HTTP.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Say in one line of JSON when it is ready; needs --key.")
    ] = False,
) -> None:
    """Run a local Cosmos DB for NoSQL for development and tests."""
    from cosmos_workflow_state._cli._emulator import Options, run_emulator

    run_emulator(
        Options(
            data=data,
            host=host,
            port=port,
            tls=tls,
            key=key,
            partitions=partitions,
            allow_remote=allow_remote,
            admin=admin,
        ),
        as_json=as_json,
    )


def demo(*, as_json: Json = False) -> None:
    """Pause a workflow, kill its process, finish it in another.

    Run a workflow to a pause, kill its process and finish it in another; needs no account and no network.
    """
    from cosmos_workflow_state._cli._demo import demo as run_demo

    run_demo(as_json=as_json)
