// SPDX-License-Identifier: BSD-3-Clause
// What the device's generators draw from.
//
// A position is how many numbers of 32 bits the Mersenne Twister gave since it
// was seeded. Kernels do not say how many they take, so it is found when
// someone asks: by going on from the last known one.
//
// An offset says the position as CUDA's do, in multiples of 4. DTensor adds an
// element to it for an element that another rank draws, and the kernels take
// one to four numbers for an element: so 4 of an offset are 16 numbers, and the
// rest of a position, which is less than 16, is in the bits from 2^58 on.
//
// Bit 62 marks the offset of a generator that keeps a normal (kept_normal.h).
// Such an offset also holds the distance, in numbers, from the position of that
// normal to the generator's. The distance takes as many bits as it needs, below
// five bits that hold their count:
//
//   bit    63  62  61..57  57-n..56    53-n..56-n  2..52-n   1..0
//   holds  0   1   n       distance    rest        position  0
#pragma once

#include "random/mersenne.h"

#include <openreg/openreg.h>

#include <ATen/core/Generator.h>

#include <mutex>
#include <optional>
#include <vector>

namespace openreg::aten {

/// A CPU generator, and what is known of its position. Safe in all threads.
class GeneratorState {
 public:
  /// The normal that the CPU generator keeps, and the position behind the
  /// numbers that it is made of.
  struct Normal {
    double value;
    uint64_t draws;
  };
  struct Position {
    at::mt19937_data_pod engine;
    uint64_t draws;
    std::optional<Normal> normal;
  };
  /// The CPU generator at some time, who drew from it last, and a position that
  /// it had before.
  struct Snapshot {
    at::Generator cpu;
    orStream_t last; // whose kernel uses it last; null if none does
    std::optional<Position> origin;
  };

  /// A generator at the start of `seed`.
  explicit GeneratorState(uint64_t seed);
  /// A generator with the state of `cpu`, which has had `origin`.
  GeneratorState(at::Generator cpu, std::optional<Position> origin);

  /// The CPU generator for the next kernel of `stream`, which then waits for
  /// the kernels that draw before it.
  at::Generator for_kernel(orStream_t stream);
  Snapshot snapshot() const;

  // Enqueued kernels keep the CPU generator that they have, so a new beginning
  // waits for none of them.
  void set_seed(uint64_t seed);
  /// Throws unless `offset` is a multiple of 4 from 0 to 2^62 - 1, or that of a
  /// generator that keeps a normal.
  void set_offset(uint64_t seed, uint64_t offset);
  /// Takes the CPU generator `cpu`, whose position is not known.
  void set_generator(at::Generator cpu);

  /// The offset of a snapshot whose kernels have drawn. Nothing if the state
  /// was set as a whole and the seed does not reach it soon, or if the
  /// generator keeps a normal from numbers too far back for an offset to hold
  /// both positions.
  std::optional<uint64_t> offset_of(const Snapshot& snapshot);

 private:
  void put(at::Generator cpu, std::optional<Position> origin);
  void remember(const Position& position);
  /// The nearest known position of `seed` that is not behind `draws`.
  Position nearest(uint64_t seed, uint64_t draws) const;

  mutable std::mutex mutex_;
  at::Generator cpu_;
  orStream_t last_ = nullptr;
  std::optional<Position> origin_;
  bool lost_ = false; // a search for the offset failed
  // Recent positions, of any seed: states are mostly set back to one of these.
  std::vector<Position> recent_;
};

} // namespace openreg::aten
