"""Offers: how much throughput a database or a container has been given.

Owns the rows of offers and what a throughput may be. Must not know whether anybody is held to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cosmos_workflow_state.emulator._engine._errors import InvalidError, MissingError
from cosmos_workflow_state.emulator._engine._transaction import Stamp, Transaction, resource_id, resource_number
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = [
    "DEFAULT_THROUGHPUT",
    "Offer",
    "Throughput",
    "create_offer",
    "delete_offer",
    "find_offer",
    "has_offer",
    "list_offers",
    "replace_offer",
]

_LEAST: Final = 400
_STEP: Final = 100
_MOST: Final = 1_000_000
_AUTOSCALE_STEP: Final = 1000
_AUTOSCALE_FLOOR: Final = 10
_WHOLE: Final = 100

_IN_ONE_PARTITION: Final = 10_000
_IN_EACH_OF_SEVERAL: Final = 6_000
"""RU/s that a new container's physical partitions start with when one is not enough:
https://learn.microsoft.com/azure/cosmos-db/scaling-provisioned-throughput-best-practices."""

_SELECT: Final = (
    "SELECT offers.number, offers.etag, offers.ts, offers.throughput, offers.maximum, offers.increment,"
    " offers.resource, containers.database FROM offers LEFT JOIN containers ON containers.number = offers.resource"
)


@dataclass(frozen=True, slots=True)
class Throughput:
    """How much a resource may spend.

    Attributes:
        provisioned: RU/s that are always there.
        maximum: RU/s up to which the service scales; None when it does not.
        increment: By how many percent the maximum grows by itself; None for not at all. Kept for the client only.
    """

    provisioned: int
    maximum: int | None = None
    increment: int | None = None

    @classmethod
    def manual(cls, throughput: object) -> Throughput:
        """Check a fixed throughput.

        Args:
            throughput: RU/s as a client wrote them.

        Returns:
            The throughput.

        Raises:
            InvalidError: It is no multiple of 100 from 400 to a million.
        """
        if not isinstance(throughput, int) or not _LEAST <= throughput <= _MOST or throughput % _STEP:
            raise InvalidError(f"The offer's throughput has to be a multiple of {_STEP} from {_LEAST} to {_MOST}.")
        return cls(throughput)

    @classmethod
    def autoscale(cls, settings: JsonObject) -> Throughput:
        """Check a throughput that scales.

        Args:
            settings: As a client wrote them: `maxThroughput` in RU/s, perhaps an `autoUpgradePolicy`.

        Returns:
            The throughput; a tenth of the maximum is always there.

        Raises:
            InvalidError: The maximum is no multiple of 1,000 up to a million, or the increment no percentage.
        """
        maximum = settings.get("maxThroughput")
        if not isinstance(maximum, int) or not 0 < maximum <= _MOST or maximum % _AUTOSCALE_STEP:
            raise InvalidError(f"The offer's maxThroughput has to be a multiple of {_AUTOSCALE_STEP} up to {_MOST}.")
        return cls(maximum // _AUTOSCALE_FLOOR, maximum, _increment(settings.get("autoUpgradePolicy")))

    def content(self) -> JsonObject:
        """Give the throughput as offers show it to clients."""
        content: JsonObject = {
            "offerThroughput": self.provisioned,
            "offerIsRUPerMinuteThroughputEnabled": False,
        }
        if self.maximum is not None:
            settings: JsonObject = {"maxThroughput": self.maximum}
            if self.increment is not None:
                settings["autoUpgradePolicy"] = {"throughputPolicy": {"incrementPercent": self.increment}}
            content["offerAutopilotSettings"] = settings
        return content

    @property
    def partitions(self) -> int:
        """How many physical partitions a new container of this throughput has."""
        most = self.maximum or self.provisioned
        return 1 if most <= _IN_ONE_PARTITION else -(-most // _IN_EACH_OF_SEVERAL)


DEFAULT_THROUGHPUT: Final = Throughput(_LEAST)
"""What a container gets whose creator named no throughput, and whose database has none to share."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The throughput of one resource.

    Attributes:
        number: The number of its `_rid`.
        etag: Quoted.
        ts: When it was last written, in seconds since 1970.
        throughput: What is offered.
        resource: The number of the database or container.
        database: The number of the container's database, None when the resource is a database.
    """

    number: int
    etag: str
    ts: int
    throughput: Throughput
    resource: int
    database: int | None

    @property
    def rid(self) -> str:
        """Its `_rid`."""
        return resource_id(self.number)

    def document(self) -> JsonObject:
        """Give the offer as it is shown to clients."""
        return {
            "resource": self._resource_link,
            "offerType": "Invalid",
            "offerResourceId": self._resource_id,
            "offerVersion": "V2",
            "content": self.throughput.content(),
            "id": self.rid,
            "_rid": self.rid,
            "_self": f"offers/{self.rid}/",
            "_etag": self.etag,
            "_ts": self.ts,
        }

    @property
    def _resource_id(self) -> str:
        return resource_id(*(number for number in (self.database, self.resource) if number is not None))

    @property
    def _resource_link(self) -> str:
        if self.database is None:
            return f"dbs/{self._resource_id}/"
        return f"dbs/{resource_id(self.database)}/colls/{self._resource_id}/"


def create_offer(transaction: Transaction, resource: int, throughput: Throughput, stamp: Stamp) -> None:
    """Give a new database or container its throughput.

    Args:
        transaction: A writing one.
        resource: The number of the database or container.
        throughput: What it gets.
        stamp: Of this write; the offer takes its serial number.
    """
    transaction.connection.execute(
        "INSERT INTO offers VALUES (?, ?, ?, ?, ?, ?, ?)",
        (stamp.serial, resource, stamp.etag, stamp.ts, *_columns(throughput)),
    )


def find_offer(transaction: Transaction, rid: str) -> Offer:
    """Find an offer by its `_rid`.

    Raises:
        MissingError: There is none.
    """
    offers = _offers(transaction, "WHERE offers.number = ?", (resource_number(rid),))
    if not offers:
        raise MissingError("The offer does not exist.")
    return offers[0]


def list_offers(transaction: Transaction) -> list[Offer]:
    """List all offers in the order of their creation."""
    return _offers(transaction, "ORDER BY offers.number")


def replace_offer(transaction: Transaction, offer: Offer, throughput: Throughput) -> Offer:
    """Change a throughput. A container's physical partitions stay as they are.

    Args:
        transaction: A writing one.
        offer: The offer as it was.
        throughput: What is offered now.

    Returns:
        The offer as it is now.

    Raises:
        InvalidError: It would change between a fixed throughput and one that scales.
    """
    if (offer.throughput.maximum is None) != (throughput.maximum is None):
        raise InvalidError("An offer cannot be changed between manual and autoscale throughput here.")
    (stamp,) = transaction.stamps()
    transaction.connection.execute(
        "UPDATE offers SET etag = ?, ts = ?, throughput = ?, maximum = ?, increment = ? WHERE number = ?",
        (stamp.etag, stamp.ts, *_columns(throughput), offer.number),
    )
    return find_offer(transaction, offer.rid)


def delete_offer(transaction: Transaction, resource: int) -> None:
    """Take the throughput of a deleted database or container away, if it had its own."""
    transaction.connection.execute("DELETE FROM offers WHERE resource = ?", (resource,))


def has_offer(transaction: Transaction, resource: int) -> bool:
    """Tell whether a database or container has throughput of its own."""
    rows = transaction.connection.execute("SELECT 1 FROM offers WHERE resource = ?", (resource,)).fetchall()
    return bool(rows)


def _offers(transaction: Transaction, condition: str, values: Iterable[object] = ()) -> list[Offer]:
    rows: Iterable[tuple[int, str, int, int, int | None, int | None, int, int | None]] = transaction.connection.execute(
        f"{_SELECT} {condition}", tuple(values)
    ).fetchall()
    return [
        Offer(number, etag, ts, Throughput(provisioned, maximum, increment), resource, database)
        for number, etag, ts, provisioned, maximum, increment, resource, database in rows
    ]


def _columns(throughput: Throughput) -> tuple[int, int | None, int | None]:
    return throughput.provisioned, throughput.maximum, throughput.increment


def _increment(policy: Json) -> int | None:
    throughput = policy.get("throughputPolicy") if isinstance(policy, dict) else None
    percent = throughput.get("incrementPercent") if isinstance(throughput, dict) else None
    if percent is not None and not (isinstance(percent, int) and 0 <= percent <= _WHOLE):
        raise InvalidError(f"The offer's incrementPercent has to be a whole number from 0 to {_WHOLE}.")
    return percent
