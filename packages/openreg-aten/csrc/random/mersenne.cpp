// SPDX-License-Identifier: BSD-3-Clause
// Skips numbers of a Mersenne Twister.
//
// An engine holds a block of 624 words. When all are used, it twists them into
// the next block. Each bit of the words is a sequence over GF(2) of the same
// recurrence, so the block n words ahead is a sum of nearby blocks. x^n modulo
// the characteristic polynomial of the recurrence gives their positions.
#include "random/mersenne.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <vector>

namespace openreg::aten {
namespace {

constexpr int kWords = at::MERSENNE_STATE_N;
constexpr int kMiddle = at::MERSENNE_STATE_M;
constexpr int kDegree = 19937; // 624 words without the low 31 bits of one word
using Words = std::array<uint32_t, kWords>;

uint32_t twisted(uint32_t first, uint32_t second, uint32_t middle) {
  const uint32_t mixed = (first & at::UMASK) | (second & at::LMASK);
  return middle ^ (mixed >> 1) ^ (-(second & 1U) & at::MATRIX_A);
}

/// Twists a block into the next one. The loops operate on whole vectors.
void twist(Words& block) {
  uint32_t* word = block.data();
  constexpr int kRest = kWords - kMiddle;
  const auto early = [word](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      word[i] = twisted(word[i], word[i + 1], word[i + kMiddle]);
    }
  };
  early(0, kRest / 4 * 4);
  early(kRest / 4 * 4, kRest);
  for (int i = kRest; i < kWords - 1; ++i) {
    word[i] = twisted(word[i], word[i + 1], word[i - kRest]);
  }
  word[kWords - 1] = twisted(word[kWords - 1], word[0], word[kMiddle - 1]);
}

/// A polynomial over GF(2), with one bit per coefficient.
class Polynomial {
 public:
  explicit Polynomial(int degree) : bits_(degree / 64 + 1) {}

  bool operator[](int power) const {
    return (bits_[power / 64] >> (power % 64) & 1) != 0;
  }
  void flip(int power) {
    bits_[power / 64] ^= uint64_t{1} << (power % 64);
  }
  /// Adds `coefficients` to the coefficients of x^power to x^(power + 63).
  void add(uint64_t coefficients, int power) {
    const int shift = power % 64;
    bits_[power / 64] ^= coefficients << shift;
    if (shift != 0 && coefficients >> (64 - shift) != 0) {
      bits_[power / 64 + 1] ^= coefficients >> (64 - shift);
    }
  }
  /// Removes and returns the coefficients of x^power to x^(power + 63).
  uint64_t take(int power) {
    const int shift = power % 64;
    const auto word = bits_.begin() + power / 64;
    uint64_t taken = word[0] >> shift;
    if (shift != 0 && word + 1 != bits_.end()) {
      taken |= word[1] << (64 - shift);
    }
    add(taken, power);
    return taken;
  }

 private:
  std::vector<uint64_t> bits_;
};

/// The powers of x in the characteristic polynomial below x^kDegree. It is
/// (x^624 + x^397) (s^31 + a0 s^30 + ... + a30) + a31 with s = x^623 + x^396
/// and the bits a0 to a31 of the matrix (Matsumoto and Nishimura 1998, appendix
/// A).
std::vector<int> lower_powers() {
  const auto times = [](const Polynomial& factor, int degree, int gap) {
    Polynomial product(kDegree);
    for (int power = 0; power <= kDegree - degree; ++power) {
      if (factor[power]) {
        product.flip(power + degree);
        product.flip(power + degree - gap);
      }
    }
    return product;
  };
  constexpr int kGap = kWords - kMiddle;
  Polynomial sum(kDegree);
  sum.flip(0);
  for (int bit = 0; bit < 31; ++bit) {
    sum = times(sum, kWords - 1, kGap);
    if ((at::MATRIX_A >> bit & 1) != 0) {
      sum.flip(0);
    }
  }
  sum = times(sum, kWords, kGap);
  if ((at::MATRIX_A >> 31 & 1) != 0) {
    sum.flip(0);
  }
  std::vector<int> powers;
  for (int power = 0; power < kDegree; ++power) {
    if (sum[power]) {
      powers.push_back(power);
    }
  }
  return powers;
}

/// Returns x^exponent modulo the characteristic polynomial.
Polynomial power_of_x(uint64_t exponent) {
  static const std::vector<int> lower = lower_powers();
  Polynomial result(kDegree);
  result.flip(0);
  for (int bit = static_cast<int>(std::bit_width(exponent)) - 1; bit >= 0;
       --bit) {
    // Squaring over GF(2) doubles every power.
    const int step = static_cast<int>(exponent >> bit & 1);
    Polynomial square(2 * kDegree + 64);
    for (int power = 0; power < kDegree; ++power) {
      if (result[power]) {
        square.flip(2 * power + step);
      }
    }
    // The next lower power is more than 64 away, so whole words can be reduced.
    for (int power = (kDegree / 64 + 1) * 64; power >= 0; power -= 64) {
      const uint64_t high = square.take(kDegree + power);
      for (const int other : lower) {
        square.add(high, power + other);
      }
    }
    result = std::move(square);
  }
  return result;
}

/// Turns a twisted block into the block that starts `words` later.
void jump(Words& block, uint64_t words) {
  const Polynomial chosen = power_of_x(words);
  std::vector<uint32_t> near;
  near.reserve(kDegree + 2 * kWords);
  Words moving = block;
  while (near.size() < kDegree + kWords) {
    near.insert(near.end(), moving.begin(), moving.end());
    twist(moving);
  }
  block.fill(0);
  for (int start = 0; start < kDegree; ++start) {
    if (chosen[start]) {
      for (int i = 0; i < kWords; ++i) {
        block[i] ^= near[start + i];
      }
    }
  }
}

// From here on, a jump costs less than twisting.
constexpr uint64_t kJumpThreshold = 1 << 14;

int given(const at::mt19937_data_pod& engine) {
  return kWords + 1 - engine.left_;
}

} // namespace

void skip(at::mt19937_data_pod& engine, uint64_t count) {
  if (count == 0) {
    return;
  }
  uint64_t blocks = count / kWords;
  auto next = static_cast<uint64_t>(given(engine)) + count % kWords;
  if (next > kWords) {
    next -= kWords;
    ++blocks;
  }
  if (blocks >= kJumpThreshold) {
    // The low bits of the first word of a seed are not part of the recurrence.
    twist(engine.state_);
    jump(engine.state_, (blocks - 1) * kWords);
    blocks = 0;
  }
  for (; blocks > 0; --blocks) {
    twist(engine.state_);
  }
  engine.next_ = static_cast<uint32_t>(next);
  engine.left_ = static_cast<int>(kWords + 1 - next);
}

std::optional<uint64_t> draws_between(
    const at::mt19937_data_pod& from,
    const at::mt19937_data_pod& to,
    uint64_t limit) {
  Words block = from.state_;
  for (uint64_t before = 0; before <= limit; before += kWords) {
    if (block == to.state_) {
      const uint64_t end = before + static_cast<uint64_t>(given(to));
      const auto start = static_cast<uint64_t>(given(from));
      return end < start ? std::nullopt : std::optional(end - start);
    }
    twist(block);
  }
  return std::nullopt;
}

} // namespace openreg::aten
