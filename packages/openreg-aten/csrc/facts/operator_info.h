// SPDX-License-Identifier: BSD-3-Clause
// Facts about an operator that are read from its schema once.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <vector>

namespace openreg::aten {

struct OperatorInfo {
  enum class Kind : uint8_t {
    kTensor,             // Tensor, Tensor?
    kTensorList,         // Tensor[]
    kOptionalTensorList, // Tensor?[]
    kGenerator,          // Generator?
    kDevice,             // Device, Device?
  };
  struct Argument {
    uint32_t index;
    Kind kind;
    bool written;
    bool takes_host;   // indices, lengths and the like may stay on the CPU
    bool takes_number; // and so may a tensor without dimensions
  };

  uint32_t argument_count;
  std::vector<Argument> arguments; // the ones to convert, in order
  std::vector<int32_t> returned;   // per result: index of the argument, or -1
  bool uses_generator;             // has a generator argument
  bool reads_requires_grad;        // the CPU kernel checks it
  // A result is an object of a custom class, such as packed weights, which may
  // keep arguments.
  bool returns_custom_class;
  // The metadata of the results depends only on the metadata of the arguments,
  // not on values.
  bool results_follow_from_metadata;
  bool returns_all_written; // so every resized argument is known
  bool reads_numbers;       // results or errors depend on floats
  bool takes_any_size;      // fills its first tensor, whatever its size
  bool refuses_floats;      // the CPU kernel rejects float dtypes
  // It resizes a non-empty tensor without PyTorch's warning, or with a
  // different warning.
  bool skips_resize_warning;
  // The kernel increments the versions of the tensors it writes, instead of
  // ADInplaceOrView.
  bool increments_versions;
  bool may_raise_for_values; // the kernel may throw for float values
  bool promotes;             // computes in the promoted dtype of its arguments
  bool stays_on_host;        // no message can call it
  bool mixes_dtypes;         // 16-bit floats and float32, ...
  bool follows_parameters;   // ... the dtype of parameters
  // Dtypes that are computed in a wider dtype, one bit each (kernel/wider.h).
  // For some of them the CPU has a kernel, but a slow one.
  uint64_t widened_dtypes;
  uint64_t slow_dtypes;
};

/// Returns the facts about an operator. The reference is never invalidated.
const OperatorInfo& info_of(const c10::OperatorHandle& op);

} // namespace openreg::aten
