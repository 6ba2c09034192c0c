# SPDX-License-Identifier: BSD-3-Clause
"""Facts about a record that no device changes: works, fusion and steps."""
