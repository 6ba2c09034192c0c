// SPDX-License-Identifier: BSD-3-Clause
// Facts about operators that no schema and no tag of PyTorch states.
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
  /// CUDA accepts CPU tensors of one or more dimensions for an argument beside
  /// its own. Such a row ends with the name of the argument.
  kTakesHost = 1 << 0,
  /// The CPU's kernel makes more for a backward pass to come.
  kReadsRequiresGrad = 1 << 1,
  /// It returns an object of a custom class, but hides it in a tensor.
  kReturnsCustomClass = 1 << 2,
  /// Its results, or its errors, follow from values, and PyTorch has no tag
  /// that says so.
  kReadsValues = 1 << 3,
  /// Its results, or its errors, follow from floating point numbers among its
  /// arguments.
  kReadsNumbers = 1 << 4,
  /// The CPU's kernel refuses some floating point values.
  kRefusesValues = 1 << 5,
  /// It gives each element of a tensor a value, whatever its sizes.
  kTakesAnySize = 1 << 6,
  /// It does not call at::native::resize_output, which warns.
  kResizesInItsOwnWay = 1 << 7,
  /// The CPU's kernel refuses floating point dtypes, and nothing before it
  /// does.
  kRefusesFloats = 1 << 8,
  /// PyTorch tags it as random, but the CPU's kernel takes no dropout.
  kDrawsNoNumbers = 1 << 9,
  /// PyTorch tags its shape as dynamic, which holds only if an index is a mask.
  kIsDynamicWithMasks = 1 << 10,
  /// It opens a file of the host, or takes or makes tensors that are objects in
  /// disguise: no message to the process of a device can name it.
  kStaysOnHost = 1 << 11,
  /// Its tensors may have 16-bit floats beside float32, as statistics.
  kMixesDtypes = 1 << 12,
  /// Results but the first have the dtype of its parameters, if those are
  /// float32.
  kFollowsParameters = 1 << 13,
  /// Results but the first are float32.
  kKeepsFloat32 = 1 << 14,
};

struct OperatorFacts {
  uint32_t facts = 0; // bits of Fact
  /// Dtypes that CUDA has a kernel for and the CPU has not: one bit each.
  uint64_t missing_dtypes = 0;
  /// Dtypes whose kernel of the CPU takes more than twice the time of float32.
  uint64_t slow_dtypes = 0;

  bool has(Fact fact) const {
    return (facts & fact) != 0;
  }
};

/// The facts about an operator, of all rows that name it.
OperatorFacts facts_of(const std::string& name, const std::string& overload);

/// The names of operators that have slow dtypes.
std::vector<std::string> slow_operators();

/// Whether an argument of an operator has kTakesHost.
bool takes_host(const std::string& name, const std::string& argument);

/// Whether an operator refuses a CPU tensor of no dimensions beside tensors of
/// the device, as on CUDA.
bool checks_devices(const std::string& name);

} // namespace openreg::aten
