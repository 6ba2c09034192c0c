// SPDX-License-Identifier: BSD-3-Clause
// Per-thread buffers, sessions, correlation ids and call records.
#include "activity/recorder.h"

#include "base/api_observer.h"
#include "base/error.h"
#include "base/process.h"
#include "base/thread_local.h"
#include "platform/process.h"
#include "platform/thread.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace openreg::activity {

std::atomic<unsigned int> g_kinds{0};

namespace {

constexpr std::size_t kCapacity = std::size_t{1} << 20;

/// The records of one thread. A buffer is reused when its thread has ended.
struct Buffer {
  std::mutex mutex;
  std::vector<orActivity> records;
  std::uint64_t dropped = 0;
  bool has_thread = true; // under the lock of all buffers
};

struct Recorder {
  std::mutex mutex; // before that of a buffer
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::atomic<std::uint64_t> session{0};
  std::atomic<std::size_t> capacity{kCapacity};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> homeless{0}; // of threads that have no buffer
  std::atomic<std::int64_t> tickets{0};
  std::mutex names_mutex;
  std::unordered_set<std::string> names; // whose texts stay where they are
};

/// Never destroyed: threads outlive static objects.
Recorder& recorder() {
  static auto* value = new Recorder;
  return *value;
}

/// A thread's view of the session.
struct ThreadState {
  std::uint64_t session = 0; // of the ids
  std::array<std::vector<std::uint64_t>, 2> ids;
  Buffer* buffer = nullptr;
  int number = 0;

  ThreadState() = default;
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;
  ~ThreadState();
};

OPENREG_THREAD_LOCAL ThreadState* t_state = nullptr;
OPENREG_THREAD_LOCAL bool t_ended = false;
OPENREG_THREAD_LOCAL std::uint64_t t_call = 0; // that the thread is in

ThreadState::~ThreadState() {
  t_state = nullptr;
  t_ended = true;
  if (buffer != nullptr && !process::in_bad_fork()) {
    const std::lock_guard lock(recorder().mutex);
    buffer->has_thread = false;
  }
}

/// Null at the end of a thread, in the destructors of its other variables.
ThreadState* thread_state() {
  if (t_state == nullptr && !t_ended) {
    static thread_local ThreadState state;
    state.number = platform::thread_number();
    t_state = &state;
  }
  return t_state;
}

Buffer& buffer_of(ThreadState& state) {
  if (state.buffer == nullptr) {
    Recorder& all = recorder();
    const std::lock_guard lock(all.mutex);
    const auto free = std::find_if(
        all.buffers.begin(), all.buffers.end(), [](const auto& each) {
          return !each->has_thread;
        });
    if (free != all.buffers.end()) {
      (*free)->has_thread = true;
      state.buffer = free->get();
    } else {
      all.buffers.push_back(std::make_unique<Buffer>());
      state.buffer = all.buffers.back().get();
    }
  }
  return *state.buffer;
}

/// Copies the name and keeps it forever, because its library may be unloaded.
const char* keep(const char* name) {
  Recorder& all = recorder();
  const std::lock_guard lock(all.names_mutex);
  return all.names.emplace(name).first->c_str();
}

void publish(const orActivity& record, std::uint64_t session) noexcept {
  Recorder& all = recorder();
  try {
    ThreadState* state = thread_state();
    if (state == nullptr) {
      ++all.homeless;
      return;
    }
    Buffer& buffer = buffer_of(*state);
    const std::lock_guard lock(buffer.mutex);
    // The lock makes enable() see every record of the previous session.
    if (session != all.session.load(std::memory_order_relaxed)) {
      return;
    }
    if (buffer.records.size() >= all.capacity.load(std::memory_order_relaxed)) {
      ++buffer.dropped;
      return;
    }
    buffer.records.push_back(record);
  } catch (...) { // no memory for a record
    ++all.homeless;
  }
}

std::uint64_t last_id(ThreadState& state, orActivityIdKind kind) {
  const auto& ids = state.ids[kind];
  return ids.empty() ? 0 : ids.back();
}

/// Returns a record that starts now on this thread.
orActivity start_record(orActivityKind kind, int device) {
  orActivity record{};
  record.kind = kind;
  record.device = device;
  record.stream = -1;
  record.process = platform::process_number();
  record.correlation = t_call;
  record.name = "";
  if (ThreadState* state = thread_state()) {
    record.thread = state->number;
    if (state->session == recorder().session.load(std::memory_order_relaxed)) {
      record.externalId = last_id(*state, orActivityIdExternal);
      record.userId = last_id(*state, orActivityIdUser);
    }
  }
  record.enqueued = now();
  return record;
}

void begin_call(ApiCall& call) noexcept {
  if (process::in_bad_fork()) {
    return; // who held a lock when it was forked is not there
  }
  if (std::string_view(call.function).starts_with("orActivity")) {
    return; // the recorder's own
  }
  call.outer = t_call;
  call.number = t_call = ++recorder().calls;
  call.started = now();
}

void end_call(const ApiCall& call, orError_t error) noexcept {
  if (call.number == 0) {
    return;
  }
  t_call = call.outer;
  if (!is_on(orActivityCall)) {
    return;
  }
  const std::uint64_t session = recorder().session;
  orActivity record = start_record(orActivityCall, -1);
  record.correlation = call.number;
  record.enqueued = record.started = call.started;
  record.ended = now();
  record.name = call.function;
  record.error = error;
  publish(record, session);
}

constexpr ApiObserver kObserver{&begin_call, &end_call};

} // namespace

std::uint64_t now() noexcept {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

void enable(unsigned int kinds, std::size_t capacity) {
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  if (is_on()) {
    throw Failure(
        orErrorNotPermitted,
        "activity recording is already enabled: call orActivityDisable() "
        "first");
  }
  ++all.session;
  all.capacity = capacity == 0 ? kCapacity : capacity;
  all.homeless = 0;
  for (const auto& buffer : all.buffers) {
    const std::lock_guard buffer_lock(buffer->mutex);
    buffer->records = {};
    buffer->dropped = 0;
  }
  g_kinds = kinds;
  g_api_observer = &kObserver;
}

void disable() noexcept {
  g_api_observer = nullptr;
  g_kinds = 0;
}

std::size_t
take(orActivity* records, std::size_t capacity, std::uint64_t& dropped) {
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  std::size_t count = 0;
  dropped = all.homeless.exchange(0);
  for (const auto& buffer : all.buffers) {
    const std::lock_guard buffer_lock(buffer->mutex);
    dropped += std::exchange(buffer->dropped, 0);
    auto& kept = buffer->records;
    while (count < capacity && !kept.empty()) {
      records[count] = kept.back();
      kept.pop_back();
      ++count;
    }
    if (kept.empty()) {
      kept = {}; // with its memory
    }
  }
  return count;
}

void push_id(orActivityIdKind kind, std::uint64_t id) {
  ThreadState* state = thread_state();
  if (state == nullptr || !is_on()) {
    return;
  }
  const std::uint64_t session = recorder().session;
  if (state->session != session) {
    state->ids = {};
    state->session = session;
  }
  state->ids[kind].push_back(id);
}

std::uint64_t pop_id(orActivityIdKind kind) noexcept {
  ThreadState* state = t_state;
  if (state == nullptr || state->ids[kind].empty()) {
    return 0;
  }
  const std::uint64_t id = state->ids[kind].back();
  state->ids[kind].pop_back();
  return id;
}

std::unique_ptr<Ticket>
make_ticket(orActivityKind kind, int device, const char* name) {
  if (!is_on(kind) || process::in_bad_fork()) {
    return nullptr;
  }
  const std::uint64_t session = recorder().session;
  auto ticket = std::make_unique<Ticket>(start_record(kind, device), session);
  ticket->record.name = keep(name);
  return ticket;
}

void end(Ticket& ticket, orError_t error) noexcept {
  if (ticket.forgotten) {
    return;
  }
  orActivity& record = ticket.record;
  if (record.ended == 0) {
    record.ended = now();
  }
  if (record.started == 0) {
    record.started = record.ended;
  }
  record.error = error;
  publish(record, ticket.session_);
}

Ticket::Ticket(const orActivity& started, std::uint64_t session) noexcept
    : record(started), session_(session) {
  ++recorder().tickets;
}

Ticket::~Ticket() {
  --recorder().tickets;
}

bool wait_for_tickets(const Deadline& deadline) {
  constexpr std::chrono::microseconds kPause{100};
  while (recorder().tickets > 0) {
    if (deadline.at && Deadline::Clock::now() >= *deadline.at) {
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

void note_block(
    orActivityKind kind,
    int device,
    const void* address,
    std::size_t bytes) noexcept {
  if (!is_on(kind) || process::in_bad_fork()) {
    return;
  }
  const std::uint64_t session = recorder().session;
  orActivity record = start_record(kind, device);
  record.started = record.ended = record.enqueued;
  record.address = address;
  record.bytes = bytes;
  publish(record, session);
}

} // namespace openreg::activity
