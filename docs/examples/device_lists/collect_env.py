# SPDX-License-Identifier: BSD-3-Clause
"""The report on an environment."""

# part: Tools
# place: torch/utils/collect_env.py: get_gpu_info
# asks: torch.cuda.is_available()
# means: the report of `python -m torch.utils.collect_env` names CUDA and XPU devices,
#   and no others. `python -m openreg_runtime info` is this device's
# noticed: nothing
# way: closed

from torch.utils.collect_env import get_gpu_info, run

print(get_gpu_info(run))
# prints: None
