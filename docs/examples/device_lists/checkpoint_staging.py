# SPDX-License-Identifier: BSD-3-Clause
"""Staging for a checkpoint in the background."""

# part: Several processes
# place: torch/distributed/checkpoint/_state_dict_stager.py: StateDictStager.__init__
# asks: pin_memory and not torch.cuda.is_available()
# means: asynchronous checkpoints are staged in memory that is not pinned, so the copies
#   wait for the device
# noticed: a warning
# way: closed

from torch.distributed.checkpoint._state_dict_stager import StateDictStager

print(StateDictStager(pin_memory=True).pin_memory)
# prints: False
# warns: Ignoring pin_memory flag
