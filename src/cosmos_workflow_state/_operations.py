"""Each operation is one event with what it cost, and is given up when it takes too long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from ._gateway import Meter
from ._logging import Operation, OperationFields, Scalar, operation
from .errors import OperationTimeoutError, ServiceError


@dataclass(frozen=True, slots=True)
class Operations:
    """Runs the operations of all storages of a factory.

    Attributes:
        logger: Where the events go.
        timeout: Seconds that one operation may take, its retries included (setting ``operation_timeout``).
    """

    logger: FilteringBoundLogger
    timeout: float

    @asynccontextmanager
    async def run(self, names: Operation, meter: Meter, **fields: Scalar) -> AsyncGenerator[OperationFields]:
        """Emit the one event of an operation, with what it has cost, and give it up when it takes too long.

        Raises:
            OperationTimeoutError: As for `bounded`.
        """
        with self.measured(names, meter, **fields) as event:
            async with self.bounded(names, meter):
                yield event

    @contextmanager
    def measured(self, names: Operation, meter: Meter, **fields: Scalar) -> Generator[OperationFields]:
        """Emit the one event of an operation, with what it has cost."""
        with operation(self.logger, names, **fields) as event:
            try:
                yield event
            except ServiceError as error:
                # A read leaves nothing in doubt, whatever became of its requests.
                error.outcome_unknown &= names.writes
                raise
            finally:
                event.add(request_charge=round(meter.request_charge, 2), requests=meter.requests)

    @asynccontextmanager
    async def bounded(self, names: Operation, meter: Meter) -> AsyncGenerator[None]:
        """Give up what takes longer than `timeout`; who cancels it from outside sees his own cancellation.

        Raises:
            OperationTimeoutError: The time is over; with ``outcome_unknown`` for an operation that writes.
        """
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                meter.deadline = limit.when()
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise OperationTimeoutError(
                f"the operation took longer than {self.timeout:g} seconds (setting operation_timeout)",
                timeout=self.timeout,
                outcome_unknown=names.writes,
            ) from error
