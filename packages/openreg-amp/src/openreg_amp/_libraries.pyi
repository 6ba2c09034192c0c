# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import MutableSequence

def select(path: MutableSequence[str], torch: str) -> None: ...
