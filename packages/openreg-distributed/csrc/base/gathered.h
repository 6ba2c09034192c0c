// SPDX-License-Identifier: BSD-3-Clause
// Gathers plain values of all ranks.
#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <vector>

namespace openreg::distributed {

/// Returns the value of each rank. `gather(all, own)` fills the rows of `all`
/// with the bytes of each rank's `own`.
template <typename Value, typename Gather>
std::vector<Value>
all_gathered(const Value& value, int size, const Gather& gather) {
  const auto bytes = static_cast<int64_t>(sizeof(Value));
  const at::Tensor own = at::empty({bytes}, at::kByte);
  const at::Tensor all = at::empty({size, bytes}, at::kByte);
  std::memcpy(own.mutable_data_ptr(), &value, sizeof(Value));
  gather(all, own);
  std::vector<Value> values(static_cast<size_t>(size));
  std::memcpy(values.data(), all.const_data_ptr(), all.nbytes());
  return values;
}

} // namespace openreg::distributed
