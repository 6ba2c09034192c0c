# SPDX-License-Identifier: BSD-3-Clause
"""Four small devices instead of two large ones."""
# environment: OPENREG_DEVICE_COUNT=4 OPENREG_DEVICE_MEMORY=1GiB

import openreg_runtime

for setting in openreg_runtime.settings()[:14]:  # other packages add more
    print(setting.name, setting.value, setting.source)
# prints: OPENREG_DEVICE_COUNT 4 environment
# prints: OPENREG_DEVICE_MEMORY 1GiB environment
# prints: OPENREG_LAUNCH_BLOCKING 0 default
# prints: OPENREG_ISOLATION thread default
# prints: OPENREG_DEVICE_LAUNCHER none default
# prints: OPENREG_DEVICE_LOG none default
# prints: OPENREG_PEER_ACCESS 1 default
# prints: OPENREG_MEMORY_CHECK 0 default
# prints: OPENREG_UNINITIALIZED none default
# prints: OPENREG_ALLOW_COPIES 0 default
# prints: OPENREG_WAIT_TIMEOUT 0 default
# prints: OPENREG_FAILURES none default
# prints: OPENREG_SCHEDULE eager default
# prints: OPENREG_DISABLE none default
print(openreg_runtime.Device(3).total_memory)
# prints: 1073741824
