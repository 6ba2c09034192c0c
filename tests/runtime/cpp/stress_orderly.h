// SPDX-License-Identifier: BSD-3-Clause
// A thread that uses devices correctly, and knows the contents of its blocks
// unless a failure has hit the work that wrote them.
#pragma once

#include "stress_world.h"

#include <optional>
#include <vector>

namespace stress::orderly {

/// The numbers first + i * step.
struct Numbers {
  std::uint32_t first;
  std::uint32_t step;

  std::uint32_t at(std::size_t i) const {
    return first + static_cast<std::uint32_t>(i) * step;
  }
  void write(std::uint32_t* to, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = at(i);
    }
  }
};

struct Buffer {
  void* data = nullptr;
  std::optional<Numbers> content; // empty if unknown
};

/// A stream of one device, with the blocks it orders.
struct Lane {
  int device = 0;
  std::uint64_t epoch = ~std::uint64_t{0};
  std::uint64_t taken = 0;
  orStream_t stream = nullptr;
  orEvent_t event = nullptr;
  Buffer buffers[2];
  std::uint32_t* in = nullptr; // pinned; read by copies until the next wait
  bool in_is_read = false;
  std::uint64_t host_calls = 0;
  std::atomic<std::uint64_t> host_calls_run{0};
  bool dropped = false; // work since the last wait, perhaps
};

class Worker {
 public:
  Worker(World& world, Log& log, std::uint64_t seed)
      : world_(world), log_(log), random_(seed) {
    static constexpr std::size_t kSizes[] = {64, 4096, 65536};
    words_ = kSizes[below(random_, std::size(kSizes))];
    host_.resize(words_);
    for (Lane& lane : lanes_) {
      lane.device = static_cast<int>(below(random_, kOrderlyDevices));
    }
  }

  void run();

 private:
  std::size_t bytes() const {
    return words_ * sizeof(std::uint32_t);
  }
  Numbers new_numbers() {
    return {
        static_cast<std::uint32_t>(random_()),
        static_cast<std::uint32_t>(random_())};
  }
  Lane& other(Lane& lane) {
    return &lane == &lanes_[0] ? lanes_[1] : lanes_[0];
  }

  bool ok(Lane& lane, orError_t error, std::initializer_list<orError_t> = {});
  void spoil(Lane& lane);
  bool ready(Lane& lane);
  bool learn(Lane& lane);
  bool wait(Lane& lane);
  void step();
  void end();

  void fill(Lane& lane);
  void fill_and_wait(Lane& lane);
  void upload(Lane& lane);
  void upload_pinned(Lane& lane);
  void upload_registered(Lane& lane);
  void add(Lane& lane);
  void add_and_wait(Lane& lane);
  void copy(Lane& lane);
  void copy_to_other(Lane& lane);
  void call_host(Lane& lane);
  void hold(Lane& lane);
  void use_events(Lane& lane);
  void use_shared_stream(Lane& lane);
  void replace_buffer(Lane& lane);
  void replace_stream(Lane& lane);
  void change_peer_access(Lane& lane);
  void ask(Lane& lane);
  void check(Lane& lane);

  World& world_;
  Log& log_;
  Random random_;
  std::size_t words_ = 0;
  std::vector<std::uint32_t> host_;
  Lane lanes_[2];
  int lost_ = -1; // a device to reset
};

} // namespace stress::orderly

// Makes a call in a member function.
#define CALL(function, ...) STRESS_CALL(log_, function, __VA_ARGS__)
