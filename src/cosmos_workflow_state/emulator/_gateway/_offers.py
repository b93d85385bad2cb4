"""Operations on offers: reading and changing throughput; one function an operation.

Owns their bodies, and the headers that ask for throughput. Must not know of items.
"""

from __future__ import annotations

from cosmos_workflow_state.emulator._engine._json import parse, parse_object
from cosmos_workflow_state.emulator._engine._offers import Throughput, find_offer, list_offers, replace_offer
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._gateway._answers import metadata_answer
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._failures import bad_request
from cosmos_workflow_state.emulator._gateway._listing import list_answer
from cosmos_workflow_state.emulator._values import Response

__all__ = ["asked_throughput", "read_offer", "read_offers", "update_offer"]


def asked_throughput(call: Call) -> Throughput | None:
    """Read what throughput the creator of a database or container asks for.

    Args:
        call: The request.

    Returns:
        The throughput, None when the headers do not say.

    Raises:
        InvalidError: It is not allowed.
        ServiceError: It cannot be read, or is asked for in two ways.
    """
    fixed = call.headers.get("x-ms-offer-throughput")
    scaled = call.headers.get("x-ms-cosmos-offer-autopilot-settings")
    if fixed is not None and scaled is not None:
        raise bad_request("A throughput is either fixed or scales: give one of the two headers.")
    if scaled is not None:
        return Throughput.autoscale(parse_object(scaled))
    if fixed is None:
        return None
    return Throughput.manual(parse(fixed))


def read_offers(transaction: Transaction, call: Call) -> Response:
    """List the offers, or query them."""
    return list_answer(call, "Offers", "", [offer.document() for offer in list_offers(transaction)])


def read_offer(transaction: Transaction, call: Call) -> Response:
    """Read an offer."""
    found = find_offer(transaction, call.offer)
    return metadata_answer(call, found.document(), etag=found.etag)


def update_offer(transaction: Transaction, call: Call) -> Response:
    """Change a throughput."""
    found = find_offer(transaction, call.offer)
    content = parse_object(call.body).get("content")
    if not isinstance(content, dict):
        raise bad_request("An offer needs its 'content', an object.")
    settings = content.get("offerAutopilotSettings")
    if isinstance(settings, dict):
        wanted = Throughput.autoscale(settings)
    else:
        wanted = Throughput.manual(content.get("offerThroughput"))
    changed = replace_offer(transaction, found, wanted)
    return metadata_answer(call, changed.document(), etag=changed.etag)
