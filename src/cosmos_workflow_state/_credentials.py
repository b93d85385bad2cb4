"""From settings to what the client authenticates with, and who closes it.

A key is text: nothing is opened, so nobody closes anything. It opens no connection and logs nothing.
"""

from __future__ import annotations

import binascii
from base64 import b64decode

from .settings import CosmosStateSettings, key_error


def account_key(settings: CosmosStateSettings) -> str:
    """Return the account key that signs the requests.

    Raises:
        SettingsError: No key is set, or it is not base64. The client would fail at its first request, without
            naming the variable.
    """
    key = settings.require_key().get_secret_value()
    if not _is_base64(key):
        raise key_error("is wrong")
    return key


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True
