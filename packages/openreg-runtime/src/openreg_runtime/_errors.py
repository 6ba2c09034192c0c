# SPDX-License-Identifier: BSD-3-Clause
"""The exception of the runtime."""

from __future__ import annotations


class OpenRegError(RuntimeError):
    """A call of the runtime failed.

    Attributes:
        code: The error code, a value of ``orError_t``.
        name: Its name, such as ``"orErrorInvalidValue"``.
    """

    def __init__(
        self, message: str, code: int = 1, name: str = "orErrorUnknown"
    ) -> None:
        super().__init__(message)
        self.code = code
        self.name = name
