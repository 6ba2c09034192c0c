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
#pragma once

#include "device/mersenne.h"

#include <openreg/openreg.h>

#include <ATen/core/Generator.h>

#include <mutex>
#include <optional>
#include <vector>

namespace openreg::aten {

/// A CPU generator, and what is known of its position. Safe in all threads.
class GeneratorState {
 public:
  struct Position {
    at::mt19937_data_pod engine;
    uint64_t draws;
  };
  /// Normals that are drawn one by one come in pairs: the second ones, which
  /// the CPU generator keeps for the next draw.
  struct Normals {
    std::optional<float> of_float;
    std::optional<double> of_double;
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
  /// Throws unless `offset` is a multiple of 4 from 0 to 2^62 - 1.
  void set_offset(uint64_t seed, uint64_t offset, const Normals& kept);
  /// Takes the CPU generator `cpu`, whose position is not known.
  void set_generator(at::Generator cpu);

  /// The offset of a snapshot whose kernels have drawn; nothing if the state
  /// was set as a whole, and is none that the seed reaches soon.
  std::optional<uint64_t> offset_of(const Snapshot& snapshot);

 private:
  void put(at::Generator cpu, std::optional<Position> origin);
  void remember(const Position& position);

  mutable std::mutex mutex_;
  at::Generator cpu_;
  orStream_t last_ = nullptr;
  std::optional<Position> origin_;
  bool lost_ = false; // a search for the offset failed
  // Recent positions, of any seed: states are mostly set back to one of these.
  std::vector<Position> recent_;
};

} // namespace openreg::aten
