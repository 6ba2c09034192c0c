# SPDX-License-Identifier: BSD-3-Clause
"""The number of processes that torchrun starts."""

# part: Distributed
# place: torch/distributed/run.py: determine_local_world_size
# asks: nproc_per_node == torch._C._get_privateuse1_backend_name()
# means: `--nproc-per-node` accepts `auto` and the backend name; `gpu` means CUDA
# noticed: an error
# way: open `--nproc-per-node=auto`

from torch.distributed.run import determine_local_world_size

print(determine_local_world_size("auto"), determine_local_world_size("openreg"))
# prints: 2 2
try:
    determine_local_world_size("gpu")
except ValueError as error:
    print(error)
# prints: Cuda is not available.
