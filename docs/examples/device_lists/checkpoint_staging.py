# SPDX-License-Identifier: BSD-3-Clause
"""Staging memory for an asynchronous checkpoint."""

# part: Distributed
# place: torch/distributed/checkpoint/_state_dict_stager.py: StateDictStager.__init__
# asks: pin_memory and not torch.cuda.is_available()
# means: asynchronous checkpoints are staged in unpinned memory, so the copies wait for
#   the device
# noticed: a warning
# way: closed

from torch.distributed.checkpoint._state_dict_stager import StateDictStager

print(StateDictStager(pin_memory=True).pin_memory)
# prints: False
# warns: Ignoring pin_memory flag
