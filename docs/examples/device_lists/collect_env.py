# SPDX-License-Identifier: BSD-3-Clause
"""The environment report."""

# part: Tools
# place: torch/utils/collect_env.py: get_gpu_info
# asks: torch.cuda.is_available()
# means: the report of `python -m torch.utils.collect_env` lists CUDA and XPU devices
#   only. `python -m openreg_runtime info` describes this device
# noticed: nothing
# way: closed

from torch.utils.collect_env import get_gpu_info, run

print(get_gpu_info(run))
# prints: None
