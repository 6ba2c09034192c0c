// SPDX-License-Identifier: BSD-3-Clause
// Searches for the numbers of a normal.
//
// The cached normal of two uniform numbers u1 and u2 is
// sqrt(-2 log(1 - u2)) sin(2 pi u1). Computing it at every position would take
// ten times as long as drawing. A table therefore lists the values of u2 that
// match the leading bits of u1, and the formula is computed at only about one
// position in a hundred.
#include "random/kept_normal.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/DistributionsHelper.h>
#include <c10/util/MathConstants.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace openreg::aten {
namespace {

// A uniform number of 53 bits consists of two draws. The first draw has the
// upper 21 bits.
constexpr int kUpperBits = 21;
constexpr uint32_t kUpper = (uint32_t{1} << kUpperBits) - 1;
constexpr int kBucketBits = 8;
constexpr std::size_t kBuckets = std::size_t{1} << kBucketBits;

/// The possible upper bits of u2 for the leading bits of u1 and the cached
/// normal. Empty if `from` is above `to`.
struct Bounds {
  uint32_t from = 1;
  uint32_t to = 0;
};

std::array<Bounds, kBuckets> bounds_of(double normal) {
  std::array<Bounds, kBuckets> all;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    const bool positive = bucket < kBuckets / 2; // the sine in this range
    if (normal != 0 && positive != (normal > 0)) {
      continue;
    }
    const auto sine = [](std::size_t step) {
      return std::abs(
          std::sin(2 * c10::pi<double> * static_cast<double>(step) / kBuckets));
    };
    // The extremes of the sine are ends of ranges.
    const double one = sine(bucket);
    const double other = sine(bucket + 1);
    const auto upper_bits = [normal](double magnitude) {
      const double ratio = normal / magnitude;
      const double u2 = magnitude == 0 ? 1 : -std::expm1(-ratio * ratio / 2);
      return static_cast<uint32_t>(u2 * (kUpper + 1));
    };
    const uint32_t least = upper_bits(std::max(one, other));
    all[bucket] = {
        least - std::min(least, uint32_t{1}), // rounding
        upper_bits(std::min(one, other)) + 1};
  }
  return all;
}

/// Four numbers, as a generator for at::normal_distribution.
class FourNumbers {
 public:
  using Numbers = std::array<uint32_t, kDrawsOfNormals>;

  explicit FourNumbers(const Numbers& numbers) : numbers_(numbers) {}

  uint64_t random64() {
    const uint64_t upper = numbers_[next_];
    const uint64_t lower = numbers_[next_ + 1];
    next_ += 2;
    return upper << 32 | lower;
  }
  void set_next_double_normal_sample(double normal) {
    kept_ = normal;
  }
  double kept() {
    static_cast<void>(at::normal_distribution<double>(0.0, 1.0)(this));
    return kept_;
  }

 private:
  Numbers numbers_;
  std::size_t next_ = 0;
  double kept_ = 0;
};

} // namespace

double kept_normal_at(const at::mt19937_data_pod& engine) {
  at::mt19937 twister;
  twister.set_data(engine);
  FourNumbers::Numbers numbers{};
  for (uint32_t& each : numbers) {
    each = twister();
  }
  return FourNumbers(numbers).kept();
}

std::optional<uint64_t> draws_to_kept_normal(
    const at::mt19937_data_pod& engine,
    uint64_t count,
    double normal) {
  const std::array<Bounds, kBuckets> bounds = bounds_of(normal);
  at::mt19937 twister;
  twister.set_data(engine);
  FourNumbers::Numbers last{};
  for (uint64_t draws = 1; draws <= count; ++draws) {
    last = {last[1], last[2], last[3], twister()};
    const Bounds& passes =
        bounds[(last[0] & kUpper) >> (kUpperBits - kBucketBits)];
    const uint32_t second = last[2] & kUpper;
    if (draws >= kDrawsOfNormals && second >= passes.from &&
        second <= passes.to && FourNumbers(last).kept() == normal) {
      return draws;
    }
  }
  return std::nullopt;
}

} // namespace openreg::aten
