// SPDX-License-Identifier: BSD-3-Clause
// What kernels have to know of an operator, read from its schema once.
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
    bool takes_number; // and so may a tensor of no dimensions
  };

  uint32_t argument_count;
  std::vector<Argument> arguments; // the ones that need work, in order
  std::vector<int32_t> returned;   // per result: which of them it is, or -1
  bool uses_generator;             // has a generator among its arguments
  bool reads_requires_grad;        // the CPU's kernel asks tensors for it
  // A result is an object of a custom class, which may keep arguments, such as
  // packed weights.
  bool returns_custom_class;
  // The metadata of the results follows from that of the arguments: their
  // values do not matter.
  bool results_follow_from_metadata;
  bool returns_all_written; // so that all that may have other sizes is known
  bool reads_numbers;       // what is made, or refused, follows from floats too
  bool takes_any_size;      // of its first tensor, which it fills
  bool refuses_floats;      // the CPU's kernel does
  // If it gives a tensor with elements another size, then without PyTorch's
  // warning of that, or in words of its own.
  bool resizes_in_its_own_way;
  // The kernel raises the versions of what it writes, not ADInplaceOrView.
  bool raises_versions;
  bool raises_by_values; // its kernel, of floating point numbers too
  bool promotes;         // computes in the dtype that its arguments promote to
  bool stays_on_host;    // no message can name it
  bool mixes_dtypes;     // 16-bit floats and float32, ...
  bool follows_parameters; // ... which parameters have
  // Dtypes that are widened, one bit each: kernel/wider.h. For some the CPU has
  // a kernel, which is slow.
  uint64_t widened_dtypes;
  uint64_t slow_dtypes;
};

/// The information about an operator; the reference is valid for ever.
const OperatorInfo& info_of(const c10::OperatorHandle& op);

} // namespace openreg::aten
