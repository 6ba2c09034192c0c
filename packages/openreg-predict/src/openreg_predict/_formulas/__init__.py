# SPDX-License-Identifier: BSD-3-Clause
"""The cost model of each class of operators, one file for each."""
