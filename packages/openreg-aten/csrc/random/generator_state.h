// SPDX-License-Identifier: BSD-3-Clause
// The state of the device generators.
//
// A position is the count of 32-bit numbers that the Mersenne Twister has
// returned since it was seeded. Kernels do not report how many they draw, so
// the position is computed on demand, by a search from the last known position.
//
// An offset represents the position as CUDA's offsets do, in multiples of 4.
// DTensor adds one to it per element that another rank draws, and kernels draw
// one to four numbers per element. An offset of 4 is therefore 16 numbers, and
// the remainder of a position, which is less than 16, is stored in the bits
// from 2^58 on.
//
// Bit 62 marks the offset of a generator that caches a normal number
// (kept_normal.h). This offset also contains the distance, in numbers, from the
// position of that normal to the position of the generator. The distance uses
// as many bits as it needs, below five bits that contain their count:
//
//   bit    63  62  61..57  57-n..56    53-n..56-n  2..52-n   1..0
//   holds  0   1   n       distance    rest        position  0
#pragma once

#include "random/mersenne.h"

#include <openreg/openreg.h>

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <mutex>
#include <optional>
#include <vector>

namespace openreg::aten {

/// A CPU generator and its known positions. Thread safe.
class GeneratorState {
 public:
  /// The normal that the CPU generator caches, and the position after the
  /// numbers that it was computed from.
  struct Normal {
    double value;
    uint64_t draws;
  };
  struct Position {
    at::mt19937_data_pod engine;
    uint64_t draws;
    std::optional<Normal> normal;
  };
  /// The CPU generator at some time, the stream that last drew from it, and an
  /// earlier position.
  struct Snapshot {
    at::Generator cpu;
    orStream_t last;         // stream of its last kernel, or null
    c10::DeviceIndex device; // of `last`
    std::optional<Position> origin;
  };

  /// A generator at the start of `seed`.
  explicit GeneratorState(uint64_t seed);
  /// A generator with the state of `cpu`, which once had the position `origin`.
  GeneratorState(at::Generator cpu, std::optional<Position> origin);

  /// Returns the CPU generator for the next kernel of `stream`, which then
  /// waits for the kernels that draw before it. Returns an undefined generator
  /// if the process of another device has the state: call move_from() first.
  at::Generator for_kernel(c10::DeviceIndex device, orStream_t stream);
  /// Continues with a copy of the CPU generator of a snapshot whose kernels
  /// have drawn. No device has the copy. Has no effect if the generator has
  /// changed since.
  void move_from(const Snapshot& snapshot);
  Snapshot snapshot() const;

  // Enqueued kernels keep their CPU generator, so reseeding waits for none of
  // them.
  void set_seed(uint64_t seed);
  /// Throws unless `offset` is a multiple of 4 from 0 to 2^62 - 1, or the
  /// offset of a generator that caches a normal.
  void set_offset(uint64_t seed, uint64_t offset);
  /// Takes the CPU generator `cpu`, whose position is unknown.
  void set_generator(at::Generator cpu);

  /// Returns the offset of a snapshot whose kernels have drawn. Returns nothing
  /// if the state was set with set_state() and the seed does not reach it soon,
  /// or if the generator caches a normal from numbers too far back for an
  /// offset to hold both positions.
  std::optional<uint64_t> offset_of(const Snapshot& snapshot);

 private:
  void put(at::Generator cpu, std::optional<Position> origin);
  void remember(const Position& position);
  /// Returns the nearest known position of `seed` up to `draws`.
  Position nearest(uint64_t seed, uint64_t draws) const;

  mutable std::mutex mutex_;
  at::Generator cpu_;
  orStream_t last_ = nullptr;
  c10::DeviceIndex device_ = -1; // of last_
  std::optional<Position> origin_;
  bool lost_ = false; // a search for the offset failed
  // Recent positions of any seed. States are usually restored to one of them.
  std::vector<Position> recent_;
};

} // namespace openreg::aten
