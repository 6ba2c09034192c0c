// SPDX-License-Identifier: BSD-3-Clause
// torch.distributed._symmetric_memory: blocks of device memory that the ranks
// of one host have mapped, and signals between them as work of streams.
#pragma once

namespace openreg::distributed {

/// Tells PyTorch of the allocator; a second call does nothing.
void register_symmetric_memory();

} // namespace openreg::distributed
