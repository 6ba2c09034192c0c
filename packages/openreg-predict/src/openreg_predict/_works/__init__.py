# SPDX-License-Identifier: BSD-3-Clause
"""The work of operators: operations, bytes and facts, without times."""
