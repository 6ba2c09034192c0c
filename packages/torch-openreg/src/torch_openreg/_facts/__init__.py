# SPDX-License-Identifier: BSD-3-Clause
"""Tables of facts about single operators, to be reviewed at an upgrade of torch.

The tables of the C++ code are in ``facts/`` of openreg-aten.
"""
