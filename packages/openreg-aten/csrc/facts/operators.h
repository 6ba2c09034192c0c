// SPDX-License-Identifier: BSD-3-Clause
// Facts about operators that neither the schema nor a tag of PyTorch states.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace openreg::aten {

constexpr uint64_t dtype_bit(c10::ScalarType dtype) {
  return uint64_t{1} << static_cast<unsigned>(dtype);
}

enum Fact : uint32_t {
  /// CUDA accepts CPU tensors with one or more dimensions for an argument, next
  /// to CUDA tensors. Such a row ends with the name of the argument.
  kTakesHost = 1 << 0,
  /// The CPU kernel returns more if a backward pass will follow.
  kReadsRequiresGrad = 1 << 1,
  /// It returns an object of a custom class disguised as a tensor.
  kReturnsCustomClass = 1 << 2,
  /// Its results or errors depend on values, and PyTorch has no tag that states
  /// this.
  kReadsValues = 1 << 3,
  /// Its results or errors depend on floating point arguments.
  kReadsNumbers = 1 << 4,
  /// The CPU kernel rejects some floating point values.
  kRefusesValues = 1 << 5,
  /// It assigns every element of a tensor, whatever its sizes.
  kTakesAnySize = 1 << 6,
  /// It does not call at::native::resize_output, which warns.
  kSkipsResizeWarning = 1 << 7,
  /// The CPU kernel itself rejects floating point dtypes.
  kRefusesFloats = 1 << 8,
  /// PyTorch tags it as random, but the CPU kernel supports no dropout.
  kDrawsNoNumbers = 1 << 9,
  /// PyTorch tags its shape as dynamic, which holds only if an index is a mask.
  kIsDynamicWithMasks = 1 << 10,
  /// It opens a host file, or its arguments or results are objects disguised as
  /// tensors. No message to a device process can call it.
  kStaysOnHost = 1 << 11,
  /// It accepts float32 statistics next to 16-bit float tensors.
  kMixesDtypes = 1 << 12,
  /// Results except the first have the dtype of its parameters if the
  /// parameters are float32.
  kFollowsParameters = 1 << 13,
  /// Results except the first are float32.
  kKeepsFloat32 = 1 << 14,
  /// It computes in the promoted dtype, and PyTorch does not tag it as
  /// pointwise.
  kPromotes = 1 << 15,
};

struct OperatorFacts {
  uint32_t facts = 0; // bits of Fact
  /// Dtypes for which CUDA has a kernel and the CPU does not, one bit each.
  uint64_t missing_dtypes = 0;
  /// Dtypes whose CPU kernel takes more than twice as long as for float32.
  uint64_t slow_dtypes = 0;

  bool has(Fact fact) const {
    return (facts & fact) != 0;
  }
};

/// Returns the facts about an operator from all rows that name it.
OperatorFacts facts_of(const std::string& name, const std::string& overload);

/// Returns the names of operators that have slow dtypes.
std::vector<std::string> slow_operators();

/// Whether an argument of an operator has kTakesHost.
bool takes_host(const std::string& name, const std::string& argument);

/// Whether an operator rejects a CPU tensor without dimensions next to device
/// tensors, as on CUDA.
bool checks_devices(const std::string& name);

} // namespace openreg::aten
