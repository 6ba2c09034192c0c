// SPDX-License-Identifier: BSD-3-Clause
// The largest numbers of dtypes.
#include "facts/numbers.h"

#include <cmath>
#include <limits>

namespace openreg::aten {
namespace {

double largest_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Double:
      return std::numeric_limits<double>::max();
    case c10::ScalarType::Float:
    case c10::ScalarType::BFloat16:
      return 0x1.fep127;
    case c10::ScalarType::Half:
      return 65504;
    default:
      return 0; // small floats: the kernel decides
  }
}

int64_t largest_integer_of(c10::ScalarType dtype) {
  const auto bits = static_cast<int>(c10::elementSize(dtype)) * 8 -
      (c10::isSignedType(dtype) ? 1 : 0);
  return dtype == c10::ScalarType::Bool ? 1
      : bits >= 63                      ? std::numeric_limits<int64_t>::max()
                                        : (int64_t{1} << bits) - 1;
}

} // namespace

bool can_represent(c10::ScalarType dtype, const c10::Scalar& value) {
  if (value.isComplex()) {
    return c10::isComplexType(dtype);
  }
  if (c10::isIntegralType(dtype, /*includeBool=*/true)) {
    const int64_t largest = largest_integer_of(dtype);
    return value.isIntegral(/*includeBool=*/true) &&
        value.type() != c10::ScalarType::UInt64 && value.toLong() <= largest &&
        value.toLong() >= (c10::isSignedType(dtype) ? -largest - 1 : 0);
  }
  const double magnitude = std::abs(value.toDouble());
  return !std::isfinite(magnitude) ||
      magnitude <= largest_of(c10::toRealValueType(dtype));
}

} // namespace openreg::aten
