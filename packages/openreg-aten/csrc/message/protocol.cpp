// SPDX-License-Identifier: BSD-3-Clause
// Encodes metadata, and decides which operators a message can call.
#include "message/protocol.h"

#include "base/keys.h"
#include "codec/extent.h"
#include "codec/values.h"
#include "facts/operator_info.h"

#include <limits>
#include <string>

namespace openreg::aten {

using codec::Malformed;
using codec::Reader;
using codec::Writer;

void write_metadata(Writer& out, const TensorMetadata& metadata) {
  out.put(static_cast<std::uint8_t>(metadata.defined));
  if (metadata.defined) {
    out.put(metadata.dtype);
    out.put_numbers(metadata.sizes);
    out.put_numbers(metadata.strides);
  }
}

TensorMetadata read_metadata(Reader& in) {
  if (!in.get_flag()) {
    return {};
  }
  const auto dtype = codec::read_dtype(in);
  const auto sizes = codec::read_sizes(in);
  const auto strides = in.get_numbers<std::int64_t>();
  if (sizes.size() != strides.size()) {
    throw Malformed("a result has a different number of sizes and strides");
  }
  codec::check_extent(
      sizes,
      strides,
      /*offset=*/0,
      c10::elementSize(dtype),
      // The storage does not exist yet.
      std::numeric_limits<std::int64_t>::max());
  return {
      true,
      dtype,
      c10::DimVector(sizes.begin(), sizes.end()),
      c10::DimVector(strides.begin(), strides.end())};
}

bool has_device_kernel(const c10::OperatorHandle& op, c10::DispatchKey key) {
  const std::string& name = op.operator_name().name;
  const OperatorInfo& info = info_of(op);
  if (info.stays_on_host || info.arguments.empty()) {
    return false;
  }
  return op.hasKernelForDispatchKey(key) ||
      op.hasKernelForDispatchKey(kDenseKey) ||
      (name.starts_with("aten::") &&
       op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd));
}

bool accepts_zero_tensor(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::ZeroTensor) &&
      op.isKernelFallthroughKernel(c10::DispatchKey::ZeroTensor);
}

} // namespace openreg::aten
