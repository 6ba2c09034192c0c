// SPDX-License-Identifier: BSD-3-Clause
// Metadata as bytes, and the operators that a message can name.
#include "message/protocol.h"

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
    throw Malformed("sizes and strides of a result do not fit");
  }
  codec::check_extent(
      sizes,
      strides,
      /*offset=*/0,
      c10::elementSize(dtype),
      std::numeric_limits<std::int64_t>::max()); // of a storage to come
  return {
      true,
      dtype,
      c10::DimVector(sizes.begin(), sizes.end()),
      c10::DimVector(strides.begin(), strides.end())};
}

bool is_the_devices(const c10::OperatorHandle& op, c10::DispatchKey key) {
  const std::string& name = op.operator_name().name;
  const OperatorInfo& info = info_of(op);
  if (info.stays_on_host || info.arguments.empty()) {
    return false;
  }
  return op.hasKernelForDispatchKey(key) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1) ||
      (name.starts_with("aten::") &&
       op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd));
}

bool takes_zeros(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::ZeroTensor) &&
      op.isKernelFallthroughKernel(c10::DispatchKey::ZeroTensor);
}

} // namespace openreg::aten
