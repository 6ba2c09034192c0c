// SPDX-License-Identifier: BSD-3-Clause
// What the boxed kernel has to know of an operator's schema, found once.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <vector>

namespace openreg::aten {

struct OperatorPlan {
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
    bool takes_host; // indices, lengths and the like may stay on the CPU
  };

  uint32_t argument_count;
  std::vector<Argument> arguments; // those that need work, in order
  std::vector<int32_t> returned;   // per result: which of them it is, or -1
  bool draws;                      // has a generator among its arguments
  bool reads_requires_grad;        // the CPU's kernel asks tensors for it
  bool makes_object; // the result may keep arguments: packed weights
  // Of tensors only the metadata decides what the results look like.
  bool results_follow_from_metadata;
  bool reads_numbers;  // what is made, or refused, follows from floats too
  bool takes_any_size; // of its first tensor, which it fills
  bool refuses_floats; // the CPU's kernel does, and its meta kernel not
  // The kernel raises the versions of what it writes, not ADInplaceOrView.
  bool raises_versions;
  bool promotes; // computes in the dtype that its arguments promote to
  uint64_t refused_dtypes; // one bit each: kernel/wider.h
};

/// The plan of an operator; valid for ever.
const OperatorPlan& plan_of(const c10::OperatorHandle& op);

} // namespace openreg::aten
