// SPDX-License-Identifier: BSD-3-Clause
// The positions of generators: found by going on from known ones.
#include "device/generator_state.h"

#include "device/stream_event.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>

#include <utility>

namespace openreg::aten {
namespace {

constexpr std::size_t kRecent = 32;
// A state that was set as a whole says its seed. About a second of searching.
constexpr uint64_t kSoon = uint64_t{1} << 30;
constexpr uint64_t kMostDraws = uint64_t{1} << 60;

constexpr uint64_t kDrawsOfFour = 16;
constexpr int kRestBit = 58;

uint64_t to_draws(uint64_t offset) {
  TORCH_CHECK(
      offset < uint64_t{kDrawsOfFour} << kRestBit,
      "expected an offset from 0 to 2^62 - 1, got ",
      static_cast<int64_t>(offset));
  TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4, got ", offset);
  const uint64_t fours = offset % (uint64_t{1} << kRestBit) / 4;
  return fours * kDrawsOfFour + (offset >> kRestBit);
}

uint64_t to_offset(uint64_t draws) {
  return draws / kDrawsOfFour * 4 | (draws % kDrawsOfFour) << kRestBit;
}

GeneratorState::Position start_of(uint64_t seed) {
  return {at::mt19937(seed).data(), 0};
}

at::Generator generator_at(const at::mt19937_data_pod& engine) {
  auto made = at::make_generator<at::CPUGeneratorImpl>(engine.seed_);
  at::mt19937 set;
  set.set_data(engine);
  made.get<at::CPUGeneratorImpl>()->set_engine(set);
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

at::Generator GeneratorState::for_kernel(orStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (last_ != nullptr && last_ != stream) {
    StreamEvent(last_).hold(stream);
  }
  last_ = stream;
  return cpu_;
}

GeneratorState::Snapshot GeneratorState::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {cpu_, last_, origin_};
}

void GeneratorState::set_seed(uint64_t seed) {
  put(at::make_generator<at::CPUGeneratorImpl>(seed), start_of(seed));
}

void GeneratorState::set_offset(
    uint64_t seed,
    uint64_t offset,
    const Normals& kept) {
  const uint64_t draws = to_draws(offset);
  Position best = start_of(seed);
  {
    const std::lock_guard lock(mutex_);
    for (const Position& each : recent_) {
      if (each.engine.seed_ == seed && each.draws >= best.draws &&
          each.draws <= draws) {
        best = each;
      }
    }
  }
  skip(best.engine, draws - best.draws);
  best.draws = draws;
  at::Generator made = generator_at(best.engine);
  auto* cpu = made.get<at::CPUGeneratorImpl>();
  cpu->set_next_float_normal_sample(kept.of_float);
  cpu->set_next_double_normal_sample(kept.of_double);
  put(std::move(made), best);
  remember(best);
}

void GeneratorState::set_generator(at::Generator cpu) {
  put(std::move(cpu), std::nullopt);
}

std::optional<uint64_t> GeneratorState::offset_of(const Snapshot& snapshot) {
  const at::mt19937_data_pod engine = [&snapshot] {
    const std::lock_guard lock(snapshot.cpu.unsafeGetGeneratorImpl()->mutex_);
    return snapshot.cpu.get<at::CPUGeneratorImpl>()->engine().data();
  }();
  {
    const std::lock_guard lock(mutex_);
    if (lost_ && cpu_ == snapshot.cpu) {
      return std::nullopt;
    }
  }
  const Position from = snapshot.origin.value_or(start_of(engine.seed_));
  const auto more =
      draws_between(from.engine, engine, snapshot.origin ? kMostDraws : kSoon);
  if (more) {
    remember({engine, from.draws + *more});
  }
  const std::lock_guard lock(mutex_);
  if (cpu_ == snapshot.cpu) {
    lost_ = !more;
    if (more) {
      origin_ = Position{engine, from.draws + *more};
    }
  }
  return more ? std::optional(to_offset(from.draws + *more)) : std::nullopt;
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
