# SPDX-License-Identifier: BSD-3-Clause
"""Failures that are injected by an environment variable, without a code change."""
# environment: OPENREG_FAILURES=malloc:first=2:period=2;launch:device=1:delay=1000

from openreg_runtime import Buffer, OpenRegError, resource_usage

for _ in range(4):
    try:
        Buffer(16)
        print("allocated")
    except OpenRegError as error:
        print(error.name)
# prints: allocated
# prints: orErrorMemoryAllocation
# prints: allocated
# prints: orErrorMemoryAllocation
print(resource_usage().failures)
# prints: 2
