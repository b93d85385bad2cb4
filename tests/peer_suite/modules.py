"""The modules of the tests of azure-cosmos that are run."""

from __future__ import annotations

from typing import Final

MODULES: Final = (
    "test_transactional_batch_async",
    "test_crud_subpartition_async",
    "test_crud_async",
    "test_partition_key_async",
    "test_ttl",
    "test_encoding_async",
    "test_session_async",
    "test_read_items_async",
    "test_crud_response_payload_on_write_disabled_async",
    "test_cosmos_responses_async",
    "test_aad_async",
)
