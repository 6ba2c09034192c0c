// SPDX-License-Identifier: BSD-3-Clause
// torch.distributed._symmetric_memory: device memory blocks that all ranks of a
// host have mapped, and signals between the ranks as stream work.
#pragma once

namespace openreg::distributed {

/// Registers the allocator in PyTorch; a second call does nothing.
void register_symmetric_memory();

} // namespace openreg::distributed
