// SPDX-License-Identifier: BSD-3-Clause
// A table with each function of the C API and arguments that it accepts.
//
// The parameter types determine which arguments are handles or pointers that
// must not be null. The codes of a function are read from the header.
#pragma once

#include "support.h"

#include <openreg/activity.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

inline constexpr orMemPoolProps kPoolProps = OPENREG_MEM_POOL_PROPS_INIT;

/// A failure that matches no call of a test.
inline constexpr orFailureSpec kHarmlessFailure{
    sizeof(orFailureSpec),
    orFailureMalloc,
    -1,
    orErrorMemoryAllocation,
    0,
    1u << 30,
    0,
    0,
    0};

/// The objects of the functions: valid objects of device 0.
class World {
 public:
  World();
  /// Objects without devices: handles are null, pointers are host pointers.
  struct Empty {};
  explicit World(Empty);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  /// Resets device 0 and destroys the objects that survive the reset.
  ~World();

  /// Blocks the streams of device 0 from now on, with `later` recorded behind.
  void hold();

  // The preparation of some functions.
  int enabled_peer() const;
  void* registered() const;
  orIpcMemHandle_t exported_memory() const;
  orIpcEventHandle_t exported_event() const;

  static constexpr std::size_t kBytes = 64; // of each block

  orStream_t stream = nullptr;
  orEvent_t start = nullptr;     // recorded and reached
  orEvent_t later = nullptr;     // the same, until hold()
  orEvent_t shared = nullptr;    // for other processes
  orFailure_t failure = nullptr; // matches nothing
  orMemPool_t pool = nullptr;
  orGraph_t graph = nullptr; // has one kernel
  orFailureSpec spec = kHarmlessFailure;
  void* block = nullptr;
  void* other_block = nullptr;
  void* pinned = nullptr;
  void* page = nullptr; // pageable host memory
  char host[kBytes] = {};

  // The outputs of calls.
  void* made_block = nullptr;
  void* made_pinned = nullptr;
  orStream_t made_stream = nullptr;
  orEvent_t made_event = nullptr;
  orFailure_t made_failure = nullptr;
  orMemPool_t made_pool = nullptr;
  orGraph_t made_graph = nullptr;
  orStreamCaptureStatus capture_status = orStreamCaptureStatusNone;
  void* addresses[2] = {};
  int numbers[2] = {};
  std::size_t sizes[2] = {};
  std::uint64_t counts[2] = {};
  const std::uint64_t* counter = nullptr;
  const char* schedule = nullptr;
  const int* schedule_flag = nullptr;
  std::ptrdiff_t distance = 0;
  float milliseconds = 0;
  orSetting setting = OPENREG_SETTING_INIT;
  orDeviceProp properties = OPENREG_DEVICE_PROP_INIT;
  orDeviceProp
      model{sizeof(orDeviceProp), "OpenReg simulated device", 0, 1, 0, 1};
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  orActivity activity{};
  const unsigned int* kinds = nullptr;
  orIpcMemHandle_t memory_handle{};
  orIpcEventHandle_t event_handle{};

 private:
  bool live_;
  std::vector<std::unique_ptr<Latch>> latches_;
};

enum Trait : unsigned {
  kRejectsNull = 1,      // a pointer must not be null: orErrorInvalidValue
  kNeedsSettings = 2,    // fails while a variable of the environment is wrong
  kAnswersAfterFork = 4, // works in a child forked after use, too
};

using Call = std::function<orError_t()>;

/// The change of one argument of a call.
enum class Instead { kItself, kNull, kEnded };

struct Row {
  std::string name;
  unsigned traits = 0;
  std::vector<std::size_t> pointers; // arguments that must not be null
  std::vector<std::size_t> handles;  // arguments: a stream, an event, ...
  orError_t result = orSuccess;      // what the call returns without a failure
  /// Prepares a world, and returns a call with arguments from it.
  std::function<Call(World&, Instead, std::size_t argument)> bind;

  Call call(World& world) const {
    return bind(world, Instead::kItself, 0);
  }
  bool has(Trait trait) const {
    return (traits & trait) != 0;
  }
  /// Lists the pointers that may be null.
  Row may_be_null(std::initializer_list<std::size_t> arguments) &&;
  /// Marks a call that cannot succeed with arguments of this process.
  Row returns(orError_t code) &&;
};

const std::vector<Row>& rows();
/// The functions without a row, with the reason.
const std::map<std::string, std::string>& exempt_functions();
