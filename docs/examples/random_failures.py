# SPDX-License-Identifier: BSD-3-Clause
"""Random failures, which are the same for the same seed."""

from openreg_runtime import Buffer, OpenRegError, failures


def failed_calls(seed: int) -> list[int]:
    """Allocates twenty blocks and lists the calls that failed."""
    failed = []
    with failures.inject_failure("malloc", probability=0.2, seed=seed):
        for number in range(1, 21):
            try:
                Buffer(1024)
            except OpenRegError:
                failed.append(number)
    return failed


print(failed_calls(seed=1) == failed_calls(seed=1))
# prints: True
print(failed_calls(seed=1) == failed_calls(seed=2))
# prints: False
