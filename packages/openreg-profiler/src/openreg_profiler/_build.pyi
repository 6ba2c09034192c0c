# SPDX-License-Identifier: BSD-3-Clause
TORCH_VERSION: str
