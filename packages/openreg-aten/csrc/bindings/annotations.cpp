// SPDX-License-Identifier: BSD-3-Clause
// Observes ranges with callbacks of PyTorch, which exist only while the history
// is recorded.
#include "bindings/annotations.h"

#include "device/device.h"

#include <ATen/record_function.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace openreg::aten {
namespace {

enum class Recorded { kNone, kChosenThreads, kAllThreads };

struct Annotations {
  std::mutex mutex;
  std::deque<Annotation> entries;
  size_t max_entries = 0;
  std::optional<at::CallbackHandle> callback; // of all threads
};

Annotations& kept() {
  static auto* value = new Annotations;
  return *value;
}

std::atomic<Recorded> g_recorded{Recorded::kNone};
std::atomic<uint64_t> g_stops{0};
thread_local std::optional<at::CallbackHandle> t_callback;
thread_local uint64_t t_stops = 0; // when this thread was chosen

void drop_oldest() {
  while (kept().entries.size() > kept().max_entries) {
    kept().entries.pop_front();
  }
}

void add_annotation(const at::RecordFunction& range, bool is_begin) {
  using namespace std::chrono;
  Annotation entry{
      range.name(),
      is_begin,
      current_device(),
      duration_cast<microseconds>(system_clock::now().time_since_epoch())
          .count()};
  const std::lock_guard lock(kept().mutex);
  kept().entries.push_back(std::move(entry));
  drop_oldest();
}

/// A callback for one thread stays if another thread stops the recording, so it
/// compares the state.
template <Recorded kFor>
bool is_recorded() {
  return g_recorded == kFor &&
      (kFor == Recorded::kAllThreads || t_stops == g_stops);
}

template <Recorded kFor>
at::RecordFunctionCallback annotating() {
  at::RecordFunctionCallback made(
      [](const at::RecordFunction& range)
          -> std::unique_ptr<at::ObserverContext> {
        if (is_recorded<kFor>()) {
          add_annotation(range, /*is_begin=*/true);
        }
        return nullptr;
      },
      [](const at::RecordFunction& range, at::ObserverContext*) {
        if (is_recorded<kFor>()) {
          add_annotation(range, /*is_begin=*/false);
        }
      });
  made.scopes({at::RecordScope::USER_SCOPE});
  return made;
}

void remove_callback(std::optional<at::CallbackHandle>& callback) {
  if (callback) {
    at::removeCallback(*callback);
    callback.reset();
  }
}

} // namespace

void record_annotations(bool all_threads, size_t max_entries) {
  const std::lock_guard lock(kept().mutex);
  kept().max_entries = max_entries;
  drop_oldest();
  if (all_threads) {
    if (!kept().callback) {
      kept().callback =
          at::addGlobalCallback(annotating<Recorded::kAllThreads>());
    }
    g_recorded = Recorded::kAllThreads;
    return;
  }
  remove_callback(kept().callback);
  if (!t_callback) {
    t_callback =
        at::addThreadLocalCallback(annotating<Recorded::kChosenThreads>());
  }
  t_stops = g_stops;
  g_recorded = Recorded::kChosenThreads;
}

void stop_annotations() {
  const std::lock_guard lock(kept().mutex);
  g_recorded = Recorded::kNone;
  ++g_stops;
  remove_callback(kept().callback);
  remove_callback(t_callback);
}

void clear_annotations() {
  const std::lock_guard lock(kept().mutex);
  kept().entries.clear();
}

std::vector<Annotation> annotations() {
  const std::lock_guard lock(kept().mutex);
  return {kept().entries.begin(), kept().entries.end()};
}

} // namespace openreg::aten
