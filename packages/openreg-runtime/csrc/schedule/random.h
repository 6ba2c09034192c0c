// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that are the same on every machine (SplitMix64).
#pragma once

#include <cstdint>

namespace openreg {

class Random {
 public:
  explicit Random(std::uint64_t seed = 0) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    return mix(state_ += kStep);
  }
  /// A number below `bound`, which is small.
  std::uint64_t below(std::uint64_t bound) noexcept {
    return next() % bound;
  }
  /// A different number for each value.
  static constexpr std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31);
  }
  /// The distance of states, an odd number.
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15U;

 private:
  std::uint64_t state_;
};

} // namespace openreg
