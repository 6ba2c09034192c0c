// SPDX-License-Identifier: BSD-3-Clause
// Computes the positions of generators from known positions.
#include "random/generator_state.h"

#include "device/device.h"
#include "random/kept_normal.h"
#include "stream/stream_event.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>

#include <bit>
#include <tuple>
#include <utility>

namespace openreg::aten {
namespace {

constexpr std::size_t kRecent = 32;
// The search limit for a state set with set_state(), whose seed is known. It
// takes about a second.
constexpr uint64_t kSearchLimit = uint64_t{1} << 30;
constexpr uint64_t kMaxDraws = uint64_t{1} << 60;

constexpr uint64_t kDrawsOfFour = 16;
constexpr int kRestBits = 4;
constexpr int kRestBit = 58;
constexpr int kKeptBit = 62;  // the generator caches a normal
constexpr int kWidthBit = 57; // the bits of its distance are below
constexpr uint64_t kMaxWidth = 31;

constexpr uint64_t low_bits(uint64_t value, int count) {
  return value & ((uint64_t{1} << count) - 1);
}

/// The contents of an offset.
struct Draws {
  uint64_t count;                       // the position
  std::optional<uint64_t> since_normal; // since the cached normal was drawn
};

Draws to_draws(uint64_t offset) {
  const bool kept = (offset >> kKeptBit) == 1;
  const int width =
      kept ? static_cast<int>(low_bits(offset >> kWidthBit, 5)) : 0;
  const int rest_bit = kept ? kWidthBit - width - kRestBits : kRestBit;
  const uint64_t fours = low_bits(offset, rest_bit) / 4;
  Draws draws{
      fours * kDrawsOfFour + low_bits(offset >> rest_bit, kRestBits), {}};
  if (kept) {
    draws.since_normal = low_bits(offset >> (kWidthBit - width), width);
  }
  TORCH_CHECK(
      offset >> kKeptBit == 0 ||
          (kept && draws.count >= *draws.since_normal + kDrawsOfNormals),
      "expected an offset from 0 to 2^62 - 1, or one that get_offset() "
      "returned, got ",
      static_cast<int64_t>(offset));
  TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4, got ", offset);
  return draws;
}

/// Returns nothing if an offset cannot hold both numbers. DTensor adds to an
/// offset, so one bit above the position stays free.
std::optional<uint64_t> to_offset(const Draws& draws) {
  const uint64_t fours = draws.count / kDrawsOfFour * 4;
  const uint64_t rest = draws.count % kDrawsOfFour;
  if (!draws.since_normal) {
    return fours | rest << kRestBit;
  }
  const auto width = static_cast<uint64_t>(std::bit_width(*draws.since_normal));
  if (width > kMaxWidth) {
    return std::nullopt;
  }
  const int distance_bit = kWidthBit - static_cast<int>(width);
  const int rest_bit = distance_bit - kRestBits;
  if (fours >> (rest_bit - 1) != 0) {
    return std::nullopt;
  }
  return uint64_t{1} << kKeptBit | width << kWidthBit |
      *draws.since_normal << distance_bit | rest << rest_bit | fours;
}

GeneratorState::Position start_of(uint64_t seed) {
  return {at::mt19937(seed).data(), 0, std::nullopt};
}

at::Generator generator_at(const GeneratorState::Position& position) {
  auto made = at::make_generator<at::CPUGeneratorImpl>(position.engine.seed_);
  at::mt19937 twister;
  twister.set_data(position.engine);
  auto* cpu = made.get<at::CPUGeneratorImpl>();
  cpu->set_engine(twister);
  if (position.normal) {
    cpu->set_next_double_normal_sample(position.normal->value);
  }
  return made;
}

} // namespace

GeneratorState::GeneratorState(uint64_t seed)
    : GeneratorState(
          at::make_generator<at::CPUGeneratorImpl>(seed),
          start_of(seed)) {}

GeneratorState::GeneratorState(
    at::Generator cpu,
    std::optional<Position> origin)
    : cpu_(std::move(cpu)), origin_(std::move(origin)) {}

at::Generator GeneratorState::for_kernel(
    c10::DeviceIndex device,
    orStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (last_ != nullptr && last_ != stream) {
    if (device != device_ && !kernels_reach_memory()) {
      return {};
    }
    StreamEvent(last_).hold(stream);
  }
  last_ = stream;
  device_ = device;
  return cpu_;
}

void GeneratorState::move_from(const Snapshot& snapshot) {
  at::Generator copy = [&snapshot] {
    const std::lock_guard lock(snapshot.cpu.unsafeGetGeneratorImpl()->mutex_);
    return snapshot.cpu.clone();
  }();
  const std::lock_guard lock(mutex_);
  if (cpu_ == snapshot.cpu && last_ == snapshot.last) {
    cpu_ = std::move(copy);
    last_ = nullptr;
  }
}

GeneratorState::Snapshot GeneratorState::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {cpu_, last_, device_, origin_};
}

void GeneratorState::set_seed(uint64_t seed) {
  put(at::make_generator<at::CPUGeneratorImpl>(seed), start_of(seed));
}

void GeneratorState::set_offset(uint64_t seed, uint64_t offset) {
  const Draws draws = to_draws(offset);
  const auto go_on = [](Position& position, uint64_t to) {
    skip(position.engine, to - position.draws);
    position.draws = to;
  };
  Position position;
  if (draws.since_normal) {
    const uint64_t behind = draws.count - *draws.since_normal;
    position = nearest(seed, behind - kDrawsOfNormals);
    go_on(position, behind - kDrawsOfNormals);
    position.normal = Normal{kept_normal_at(position.engine), behind};
  } else {
    position = nearest(seed, draws.count);
    position.normal.reset();
  }
  go_on(position, draws.count);
  put(generator_at(position), position);
  remember(position);
}

void GeneratorState::set_generator(at::Generator cpu) {
  put(std::move(cpu), std::nullopt);
}

std::optional<uint64_t> GeneratorState::offset_of(const Snapshot& snapshot) {
  auto* cpu = snapshot.cpu.get<at::CPUGeneratorImpl>();
  const auto [engine, kept, kept_float] = [cpu] {
    const std::lock_guard lock(cpu->mutex_);
    return std::tuple(
        cpu->engine().data(),
        cpu->next_double_normal_sample(),
        cpu->next_float_normal_sample());
  }();
  {
    const std::lock_guard lock(mutex_);
    if (lost_ && cpu_ == snapshot.cpu) {
      return std::nullopt;
    }
  }
  const std::optional<Position> found = [&]() -> std::optional<Position> {
    const Position from = snapshot.origin.value_or(start_of(engine.seed_));
    const auto more = draws_between(
        from.engine, engine, snapshot.origin ? kMaxDraws : kSearchLimit);
    if (!more || kept_float) { // no PyTorch kernel caches a float
      return std::nullopt;
    }
    Position position{engine, from.draws + *more, std::nullopt};
    if (kept && from.normal && from.normal->value == *kept) {
      position.normal = from.normal;
    } else if (kept) {
      const auto draws = draws_to_kept_normal(from.engine, *more, *kept);
      if (!draws) {
        return std::nullopt;
      }
      position.normal = Normal{*kept, from.draws + *draws};
    }
    return position;
  }();
  if (found) {
    remember(*found);
  }
  const std::lock_guard lock(mutex_);
  if (cpu_ == snapshot.cpu) {
    lost_ = !found;
    if (found) {
      origin_ = found;
    }
  }
  if (!found) {
    return std::nullopt;
  }
  Draws draws{found->draws, std::nullopt};
  if (found->normal) {
    draws.since_normal = found->draws - found->normal->draws;
  }
  return to_offset(draws);
}

GeneratorState::Position GeneratorState::nearest(uint64_t seed, uint64_t draws)
    const {
  Position best = start_of(seed);
  const std::lock_guard lock(mutex_);
  for (const Position& each : recent_) {
    if (each.engine.seed_ == seed && each.draws >= best.draws &&
        each.draws <= draws) {
      best = each;
    }
  }
  return best;
}

void GeneratorState::put(at::Generator cpu, std::optional<Position> origin) {
  const std::lock_guard lock(mutex_);
  cpu_ = std::move(cpu);
  origin_ = std::move(origin);
  last_ = nullptr;
  lost_ = false;
}

void GeneratorState::remember(const Position& position) {
  const std::lock_guard lock(mutex_);
  if (recent_.size() == kRecent) {
    recent_.erase(recent_.begin());
  }
  recent_.push_back(position);
}

} // namespace openreg::aten
