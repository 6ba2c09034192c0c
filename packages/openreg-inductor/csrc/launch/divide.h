// SPDX-License-Identifier: BSD-3-Clause
// Integer division that rounds towards zero and notes a division by zero like
// PyTorch's floor_divide_integral(). This text is copied into each kernel that
// uses it, after PyTorch's prefix.
#pragma once

#include <type_traits>

namespace openreg::inductor {

template <typename T, typename U>
std::common_type_t<T, U> truncate_divide_integral(T a, U b) {
  using Common = std::common_type_t<T, U>;
  static_assert(std::is_integral_v<Common>, "of integers");
  if (b == 0) {
    inductor_cpu_note_integer_div_by_zero();
    return Common(0);
  }
  return static_cast<Common>(static_cast<Common>(a) / static_cast<Common>(b));
}

#if INDUCTOR_USE_VECTOR_TYPES()
template <typename T>
at::vec::Vectorized<T> truncate_divide_integral(
    const at::vec::Vectorized<T>& a,
    const at::vec::Vectorized<T>& b) {
  constexpr int kLength = at::vec::Vectorized<T>::size();
  T quotients[kLength];
  T divisors[kLength];
  a.store(quotients);
  b.store(divisors);
  for (int i = 0; i < kLength; ++i) {
    quotients[i] = truncate_divide_integral(quotients[i], divisors[i]);
  }
  return at::vec::Vectorized<T>::loadu(quotients);
}

template <typename T, int N>
at::vec::VectorizedN<T, N> truncate_divide_integral(
    const at::vec::VectorizedN<T, N>& a,
    const at::vec::VectorizedN<T, N>& b) {
  at::vec::VectorizedN<T, N> quotients;
  for (int i = 0; i < N; ++i) {
    quotients[i] = truncate_divide_integral(a[i], b[i]);
  }
  return quotients;
}
#endif

} // namespace openreg::inductor
