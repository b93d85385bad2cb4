"""What is said where the packages of a host are missing or too old: which extra of this package has them."""

from __future__ import annotations

from types import TracebackType


class PackagesOf:
    """Stands around the imports of what an extra installs."""

    __slots__ = ("_extra",)

    def __init__(self, extra: str) -> None:
        """Say which extra it is."""
        self._extra = extra

    def __enter__(self) -> None:
        """Begin the imports."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """End the imports.

        Raises:
            ImportError: One of them failed; names the extra.
        """
        if not isinstance(error, ImportError):
            return
        raise ImportError(
            f"{error}: this needs the extra {self._extra} of cosmos-workflow-state "
            f"(in a clone: pip install '.[{self._extra}]')",
            name=error.name,
            path=error.path,
        ) from error
