// SPDX-License-Identifier: BSD-3-Clause
// A block of device memory that is in use, as the allocator knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::aten {

struct BlockInfo {
  void* pointer;
  size_t size;                // bytes, rounded
  uint64_t segment;           // no other segment of the device has the number
  void* stream;               // its own
  std::vector<void*> used_by; // other streams, by record_stream
};

} // namespace openreg::aten
