# SPDX-License-Identifier: BSD-3-Clause
TORCH_VERSION: str

def check_torch(found: str) -> None: ...
