# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run on the CPU and on the device and have to observe the same."""
