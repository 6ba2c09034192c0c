# SPDX-License-Identifier: BSD-3-Clause
"""openreg-conformance, which judges any device."""
