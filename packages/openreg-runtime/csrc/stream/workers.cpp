// SPDX-License-Identifier: BSD-3-Clause
// Looks for workers without work.
#include "stream/workers.h"

#include "base/system_thread.h"
#include "stream/stream.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace openreg::workers {
namespace {

// A worker that had nothing to do between two looks ends.
constexpr std::chrono::milliseconds kBetweenLooks{500};

struct Workers {
  std::mutex mutex; // locked within that of a stream
  std::vector<Stream*> streams;
  bool watched = false;
};

Workers& all() {
  static auto* value = new Workers; // the watcher may outlive the statics
  return *value;
}

void watch() {
  Workers& workers = all();
  for (;;) {
    std::this_thread::sleep_for(kBetweenLooks);
    const std::lock_guard lock(workers.mutex);
    if (workers.streams.empty()) {
      workers.watched = false;
      return;
    }
    for (Stream* stream : workers.streams) {
      stream->end_idle_worker();
    }
  }
}

} // namespace

void add(Stream& stream) {
  Workers& workers = all();
  const std::lock_guard lock(workers.mutex);
  workers.streams.push_back(&stream);
  if (!workers.watched) {
    try {
      start_thread(watch);
      workers.watched = true;
    } catch (...) {
      // Idle workers stay until one is added when the system has a thread.
    }
  }
}

void remove(Stream& stream) noexcept {
  Workers& workers = all();
  const std::lock_guard lock(workers.mutex);
  workers.streams.erase(
      std::find(workers.streams.begin(), workers.streams.end(), &stream));
}

std::size_t count() {
  Workers& workers = all();
  const std::lock_guard lock(workers.mutex);
  return workers.streams.size();
}

} // namespace openreg::workers
