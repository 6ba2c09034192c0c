// SPDX-License-Identifier: BSD-3-Clause
// The scheduler, its random numbers, and the watcher that releases workers.
#include "schedule/scheduler.h"

#include "base/process.h"
#include "base/system_thread.h"
#include "platform/thread.h"
#include "schedule/random.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

namespace openreg::schedule {
namespace {

// The chance, in 64ths, that a submission runs a further entry. One of them is
// drawn for each seed, so that some seeds keep streams far behind the host.
constexpr std::uint64_t kChances[] = {0, 8, 24, 48};
// The chance, in 64ths, that a wait runs any entry rather than a needed one.
constexpr std::uint64_t kChancesInWaits[] = {0, 0, 16, 64};
// The weights of streams. A stream that is chosen rarely falls behind others.
constexpr std::uint64_t kWeights[] = {1, 4, 16};
constexpr std::uint64_t kFull = 64;

// A program that queries this often without another call polls, and so does one
// that queries even more often without a wait.
constexpr std::uint32_t kQueriesInARow = 16;
constexpr std::uint32_t kQueriesWithoutWait = 1024;

// The time without work after which an entry counts as blocked. Long, because
// a collective blocks until its peers run theirs.
constexpr std::chrono::milliseconds kEntryBlocked{1000};
// The same for the host, after its last call.
constexpr std::chrono::milliseconds kHostBlocked{200};
constexpr std::chrono::milliseconds kLongest{5000};

struct Scheduler {
  std::mutex mutex; // locked within that of a queue
  Schedule schedule;
  Random random;
  std::uint64_t weight_seed = 0;
  std::uint64_t chance = 0;         // of kFull
  std::uint64_t chance_in_wait = 0; // of kFull
  std::vector<Queue*>
      queues; // since the start, in the order of their first use
  std::unordered_set<std::string> names; // that name() has returned
  bool watched = false;

  std::atomic<bool> released{false};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint32_t> queries{0};     // in a row
  std::atomic<std::uint32_t> all_queries{0}; // since the last wait

  /// Notes a call of the program, which ends a release of the workers.
  void note_call() noexcept {
    calls.fetch_add(1, std::memory_order_relaxed);
    queries.store(0, std::memory_order_relaxed);
    released.store(false, std::memory_order_relaxed);
  }
  /// Returns whether a program with one more query polls.
  bool note_query() noexcept {
    const auto row = queries.fetch_add(1, std::memory_order_relaxed);
    const auto all = all_queries.fetch_add(1, std::memory_order_relaxed);
    return row >= kQueriesInARow || all >= kQueriesWithoutWait;
  }
  std::vector<Queue*> list() {
    const std::lock_guard lock(mutex);
    return queues;
  }
  /// Draws whether a submission, or a wait, runs any entry.
  bool draw(bool in_wait) {
    const std::lock_guard lock(mutex);
    return random.below(kFull) < (in_wait ? chance_in_wait : chance);
  }
  /// The weight of the queue with that place in the list.
  std::uint64_t weight_of(std::size_t place) const noexcept {
    const auto drawn = Random::mix(weight_seed + place * Random::kStep);
    return kWeights[drawn % std::size(kWeights)];
  }
};

Scheduler& scheduler() {
  static auto* value = new Scheduler; // the watcher may outlive the statics
  return *value;
}

bool any_waits(const std::vector<Queue*>& queues) {
  return std::any_of(queues.begin(), queues.end(), [](Queue* queue) {
    return queue->next().state != Queue::State::kEmpty;
  });
}

/// Releases the workers while the program makes no calls and does not compute.
void watch() {
  Scheduler& own = scheduler();
  while (!process::exiting()) {
    const auto calls = own.calls.load(std::memory_order_relaxed);
    StallCheck check(kHostBlocked, kLongest);
    do {
      std::this_thread::sleep_for(StallCheck::kLook);
      if (!is_on()) {
        const std::lock_guard lock(own.mutex);
        if (!is_on()) {
          own.watched = false;
          return;
        }
      }
    } while (calls == own.calls.load(std::memory_order_relaxed) &&
             !check.stalled());
    if (calls != own.calls.load(std::memory_order_relaxed)) {
      continue;
    }
    const auto queues = own.list();
    if (any_waits(queues)) {
      own.released = true;
      for (Queue* queue : queues) {
        queue->release_worker();
      }
    }
  }
  // The thread_local variables of this thread may use destroyed objects.
  platform::sleep_forever();
}

/// The queue whose next entry leads to the completion of the target's.
Queue* needed_for(const Queue& target, const std::vector<Queue*>& queues) {
  const Queue* needed = &target;
  for (std::size_t steps = 0; steps <= queues.size(); ++steps) {
    const auto found = std::find(queues.begin(), queues.end(), needed);
    if (found == queues.end()) {
      return nullptr;
    }
    const Queue::Next next = (*found)->next();
    if (next.state == Queue::State::kReady) {
      return *found;
    }
    if (next.state != Queue::State::kBlocked) {
      return nullptr;
    }
    needed = next.awaited;
  }
  return nullptr; // queues that wait for each other
}

/// Draws one of the queues that can run an entry; null if there is none.
Queue* draw(Scheduler& own) {
  struct Candidate {
    Queue* queue;
    std::uint64_t weight;
  };
  std::vector<Candidate> ready;
  std::uint64_t sum = 0;
  const auto queues = own.list();
  for (std::size_t place = 0; place < queues.size(); ++place) {
    if (queues[place]->next().state == Queue::State::kReady) {
      ready.push_back({queues[place], own.weight_of(place)});
      sum += ready.back().weight;
    }
  }
  if (ready.empty()) {
    return nullptr;
  }
  const std::lock_guard lock(own.mutex);
  std::uint64_t drawn = own.random.below(sum);
  for (const Candidate& each : ready) {
    if (drawn < each.weight) {
      return each.queue;
    }
    drawn -= each.weight;
  }
  return nullptr;
}

bool is_random() noexcept {
  return __atomic_load_n(&g_mode, __ATOMIC_RELAXED) ==
      static_cast<int>(Schedule::Mode::kRandom);
}

std::uint64_t rank() {
  const char* text = std::getenv("RANK");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
}

} // namespace

void start(const Schedule& schedule) {
  Scheduler& own = scheduler();
  const std::lock_guard lock(own.mutex);
  if (schedule.mode != Schedule::Mode::kEager && !own.watched) {
    start_thread(watch);
    own.watched = true;
  }
  own.schedule = schedule;
  own.random =
      Random(Random::mix(Random::mix(schedule.seed) + rank() * Random::kStep));
  own.weight_seed = own.random.next();
  own.chance = kChances[own.random.below(std::size(kChances))];
  own.chance_in_wait =
      kChancesInWaits[own.random.below(std::size(kChancesInWaits))];
  own.queues.clear();
  own.released = false;
  own.queries = 0;
  own.all_queries = 0;
  __atomic_store_n(&g_mode, static_cast<int>(schedule.mode), __ATOMIC_RELAXED);
}

const char* name() {
  Scheduler& own = scheduler();
  const std::lock_guard lock(own.mutex);
  return own.names.insert(name_of(own.schedule)).first->c_str();
}

bool lets_workers_run() noexcept {
  return !is_on() || scheduler().released.load(std::memory_order_relaxed);
}

void note_progress() noexcept {
  scheduler().calls.fetch_add(1, std::memory_order_relaxed);
}

void note_wait() noexcept {
  scheduler().note_call();
  scheduler().all_queries = 0;
}

void add(Queue& queue) {
  Scheduler& own = scheduler();
  own.note_call();
  const std::lock_guard lock(own.mutex);
  auto& queues = own.queues;
  if (std::find(queues.begin(), queues.end(), &queue) == queues.end()) {
    queues.push_back(&queue);
  }
}

void interleave() {
  Scheduler& own = scheduler();
  if (!is_random()) {
    return;
  }
  try {
    while (own.draw(/*in_wait=*/false)) {
      Queue* queue = draw(own);
      if (queue == nullptr ||
          !queue->run_chosen(StallCheck(kEntryBlocked, kLongest))) {
        return;
      }
    }
  } catch (const std::exception&) {
    // The submission has succeeded. If no worker can be started, the wait for
    // the entry reports it.
    return;
  }
}

bool run_next(const Queue& target) {
  Scheduler& own = scheduler();
  Queue* queue = nullptr;
  if (!is_random() || !own.draw(/*in_wait=*/true)) {
    queue = needed_for(target, own.list());
  }
  if (queue == nullptr && is_random()) {
    queue = draw(own);
  }
  const bool ran = queue != nullptr &&
      queue->run_chosen(StallCheck(kEntryBlocked, kLongest));
  if (ran) {
    own.calls.fetch_add(1, std::memory_order_relaxed);
  }
  return ran;
}

void note_query(const Queue& target) {
  Scheduler& own = scheduler();
  if (!own.note_query()) {
    return;
  }
  // Short, because the caller may hold a lock that the entry needs.
  constexpr std::chrono::milliseconds kMost{20};
  if (Queue* queue = needed_for(target, own.list())) {
    queue->run_chosen(StallCheck(kMost, kMost));
  }
}

} // namespace openreg::schedule
