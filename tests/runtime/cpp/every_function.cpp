// SPDX-License-Identifier: BSD-3-Clause
// The table, in the order of the header.
#include "every_function.h"

#include <openreg/activity.h>

#include <tuple>
#include <type_traits>
#include <utility>

namespace {

template <typename T>
constexpr bool kIsHandle = std::is_same_v<T, orStream_t> ||
    std::is_same_v<T, orEvent_t> || std::is_same_v<T, orFailure_t> ||
    std::is_same_v<T, orMemPool_t> || std::is_same_v<T, orGraph_t>;
template <typename T>
constexpr bool kIsPointer = std::is_pointer_v<T> && !kIsHandle<T>;

void end(orStream_t& handle) {
  EXPECT_OK(orStreamCreate(&handle));
  EXPECT_OK(orStreamDestroy(handle));
}
void end(orEvent_t& handle) {
  EXPECT_OK(orEventCreate(&handle));
  EXPECT_OK(orEventDestroy(handle));
}
void end(orMemPool_t& handle) {
  EXPECT_OK(orMemPoolCreate(&handle, &kPoolProps));
  EXPECT_OK(orMemPoolDestroy(handle));
}
void end(orGraph_t& handle) {
  EXPECT_OK(orGraphDestroy(handle));
}
void end(orFailure_t& handle) {
  EXPECT_OK(orFailureInject(&handle, &kHarmlessFailure));
  EXPECT_OK(orFailureRemove(handle));
}

template <typename T>
void replace(T& argument, Instead instead) {
  if constexpr (kIsHandle<T>) {
    if (instead == Instead::kEnded) {
      end(argument);
    }
  } else if constexpr (kIsPointer<T>) {
    if (instead == Instead::kNull) {
      argument = nullptr;
    }
  }
}

template <typename... Args, typename Arguments, std::size_t... Indices>
Row make_row(
    const char* name,
    orError_t (*function)(Args...),
    Arguments arguments,
    unsigned traits,
    std::index_sequence<Indices...>) {
  Row row;
  row.name = name;
  row.traits = traits;
  (void(kIsPointer<Args> ? row.pointers.push_back(Indices) : void()), ...);
  (void(kIsHandle<Args> ? row.handles.push_back(Indices) : void()), ...);
  row.bind = [=](World& world,
                 [[maybe_unused]] Instead instead,
                 [[maybe_unused]] std::size_t argument) -> Call {
    std::tuple<Args...> values = arguments(world);
    (void(
         Indices == argument ? replace(std::get<Indices>(values), instead)
                             : void()),
     ...);
    return [=] { return std::apply(function, values); };
  };
  return row;
}

/// `arguments` prepares a world for the call and returns a tuple.
template <typename... Args, typename Arguments>
Row row(
    const char* name,
    orError_t (*function)(Args...),
    Arguments arguments,
    unsigned traits = 0) {
  return make_row(
      name,
      function,
      std::move(arguments),
      traits,
      std::index_sequence_for<Args...>());
}

void nothing(void*) {}
void ignore(void* /*args*/, const void* /*reply*/, size_t /*size*/) {}
constexpr const char* kLauncher[] = {"program"};
constexpr orLaunchInfo kInfo{
    sizeof(orLaunchInfo),
    "a test",
    orActivityKernel,
    orMemcpyHostToHost,
    orMemoryTypeUnmanaged,
    0};

} // namespace

/// Arguments, which may use the world `w`.
#define GIVE(...)                        \
  [](World& w) {                         \
    static_cast<void>(w);                \
    return std::make_tuple(__VA_ARGS__); \
  }

const std::map<std::string, std::string>& exempt_functions() {
  const auto exempt = [](const char* name, const char* reason) {
    return std::pair<const std::string, std::string>(name, reason);
  };
  static const std::map<std::string, std::string> table = {
      exempt("orGetLastError", "returns the error of another call"),
      exempt("orPeekAtLastError", "returns the error of another call"),
      exempt("orGetErrorName", "cannot fail"),
      exempt("orGetErrorString", "cannot fail"),
      exempt("orGetErrorMessage", "cannot fail"),
      exempt("orActivityEnable", "changes what other calls do"),
      exempt("orActivityDisable", "cannot fail"),
      exempt("orActivityFlush", "waits for the recorded activities"),
      exempt("orActivityForget", "only a kernel may call it"),
      exempt("orServeDevice", "makes the process that of a device"),
  };
  return table;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      row("orRuntimeGetVersion",
          orRuntimeGetVersion,
          GIVE(w.numbers),
          kRejectsNull),
      row("orGetSettingCount",
          orGetSettingCount,
          GIVE(w.numbers),
          kRejectsNull | kNeedsSettings),
      row("orGetSetting",
          orGetSetting,
          GIVE(0, &w.setting),
          kRejectsNull | kNeedsSettings),
      row("orGetSettingByName",
          orGetSettingByName,
          GIVE("OPENREG_PEER_ACCESS", &w.setting),
          kRejectsNull | kNeedsSettings),
      row("orRegisterSetting",
          orRegisterSetting,
          GIVE("OPENREG_TEST_ROW", "0", orSettingSwitch, "of the table"),
          kRejectsNull),
      row("orGetResourceUsage",
          orGetResourceUsage,
          GIVE(&w.usage),
          kRejectsNull),
      row("orInit", orInit, GIVE(), kNeedsSettings),
      row("orIsInitialized", orIsInitialized, GIVE(w.numbers), kRejectsNull),
      row("orIsInBadFork",
          orIsInBadFork,
          GIVE(w.numbers),
          kRejectsNull | kAnswersAfterFork),
      row("orGetDeviceCount",
          orGetDeviceCount,
          GIVE(w.numbers),
          kRejectsNull | kNeedsSettings),
      row("orGetDevice", orGetDevice, GIVE(w.numbers), kRejectsNull),
      row("orSetDevice", orSetDevice, GIVE(0), kNeedsSettings),
      row("orGetDeviceProperties",
          orGetDeviceProperties,
          GIVE(&w.properties, 0),
          kRejectsNull | kNeedsSettings),
      row("orSetDeviceModel", orSetDeviceModel, GIVE(&w.model), kRejectsNull),
      row("orDeviceGetAttribute",
          orDeviceGetAttribute,
          GIVE(w.numbers, orDevAttrMemoryAlignment, 0),
          kRejectsNull | kNeedsSettings),
      row("orDeviceSynchronize", orDeviceSynchronize, GIVE(), kNeedsSettings),
      row("orDeviceReset", orDeviceReset, GIVE(), kNeedsSettings),
      row("orDeviceSetLimit",
          orDeviceSetLimit,
          GIVE(orLimitMemory, 1 << 20),
          kNeedsSettings),
      row("orDeviceGetLimit",
          orDeviceGetLimit,
          GIVE(w.sizes, orLimitMemory),
          kRejectsNull | kNeedsSettings),
      row("orDeviceCanAccessPeer",
          orDeviceCanAccessPeer,
          GIVE(w.numbers, 0, 1),
          kRejectsNull | kNeedsSettings),
      row("orDeviceEnablePeerAccess",
          orDeviceEnablePeerAccess,
          GIVE(1, 0),
          kNeedsSettings),
      row("orDeviceDisablePeerAccess",
          orDeviceDisablePeerAccess,
          GIVE(w.enabled_peer()),
          kNeedsSettings),
      row("orMalloc",
          orMalloc,
          GIVE(&w.made_block, World::kBytes),
          kRejectsNull | kNeedsSettings),
      row("orFree", orFree, GIVE(w.block), kNeedsSettings).may_be_null({0}),
      row("orFreeUnused", orFreeUnused, GIVE(w.block), kNeedsSettings)
          .may_be_null({0}),
      row("orMallocHost",
          orMallocHost,
          GIVE(&w.made_pinned, World::kBytes),
          kRejectsNull | kNeedsSettings),
      row("orFreeHost", orFreeHost, GIVE(w.pinned), kNeedsSettings)
          .may_be_null({0}),
      row("orHostRegister",
          orHostRegister,
          GIVE(w.page, World::kBytes, 0),
          kRejectsNull | kNeedsSettings),
      row("orHostUnregister",
          orHostUnregister,
          GIVE(w.registered()),
          kRejectsNull | kNeedsSettings),
      row("orMemGetInfo",
          orMemGetInfo,
          GIVE(&w.sizes[0], &w.sizes[1]),
          kRejectsNull | kNeedsSettings),
      row("orMallocAsync",
          orMallocAsync,
          GIVE(&w.made_block, World::kBytes, w.stream),
          kRejectsNull | kNeedsSettings),
      row("orMallocFromPoolAsync",
          orMallocFromPoolAsync,
          GIVE(&w.made_block, World::kBytes, w.pool, w.stream),
          kRejectsNull | kNeedsSettings),
      row("orFreeAsync", orFreeAsync, GIVE(w.block, w.stream), kNeedsSettings)
          .may_be_null({0}),
      row("orMemPoolCreate",
          orMemPoolCreate,
          GIVE(&w.made_pool, &kPoolProps),
          kRejectsNull | kNeedsSettings),
      row("orMemPoolDestroy", orMemPoolDestroy, GIVE(w.pool), kNeedsSettings),
      row("orDeviceGetDefaultMemPool",
          orDeviceGetDefaultMemPool,
          GIVE(&w.made_pool, 0),
          kRejectsNull | kNeedsSettings),
      row("orDeviceGetMemPool",
          orDeviceGetMemPool,
          GIVE(&w.made_pool, 0),
          kRejectsNull | kNeedsSettings),
      row("orDeviceSetMemPool",
          orDeviceSetMemPool,
          GIVE(0, w.pool),
          kNeedsSettings),
      row("orMemPoolTrimTo", orMemPoolTrimTo, GIVE(w.pool, 0), kNeedsSettings),
      row("orMemPoolGetAttribute",
          orMemPoolGetAttribute,
          GIVE(w.pool, orMemPoolAttrReleaseThreshold, w.counts),
          kRejectsNull | kNeedsSettings),
      row("orMemPoolSetAttribute",
          orMemPoolSetAttribute,
          GIVE(w.pool, orMemPoolAttrReleaseThreshold, w.counts),
          kRejectsNull | kNeedsSettings),
      row("orPointerGetAttributes",
          orPointerGetAttributes,
          GIVE(&w.attributes, w.block),
          kRejectsNull | kNeedsSettings)
          .may_be_null({1}),
      row("orMemoryUnprotect",
          orMemoryUnprotect,
          GIVE(w.block),
          kRejectsNull | kNeedsSettings),
      row("orMemoryProtect",
          orMemoryProtect,
          GIVE(w.block),
          kRejectsNull | kNeedsSettings),
      row("orGetKernelPointer",
          orGetKernelPointer,
          GIVE(w.addresses, w.block),
          kRejectsNull | kNeedsSettings),
      row("orGetAddressRange",
          orGetAddressRange,
          GIVE(&w.addresses[0], &w.addresses[1], &w.distance),
          kRejectsNull | kNeedsSettings),
      row("orMemcpy",
          orMemcpy,
          GIVE(w.block, w.host, World::kBytes, orMemcpyDefault),
          kRejectsNull | kNeedsSettings),
      row("orMemcpyAsync",
          orMemcpyAsync,
          GIVE(w.block, w.host, World::kBytes, orMemcpyDefault, w.stream),
          kRejectsNull | kNeedsSettings),
      row("orMemcpy2D",
          orMemcpy2D,
          GIVE(w.block, 8, w.host, 8, 8, 8, orMemcpyDefault),
          kRejectsNull | kNeedsSettings),
      row("orMemcpy2DAsync",
          orMemcpy2DAsync,
          GIVE(w.block, 8, w.host, 8, 8, 8, orMemcpyDefault, w.stream),
          kRejectsNull | kNeedsSettings),
      row("orMemcpyPeer",
          orMemcpyPeer,
          GIVE(w.block, 0, w.other_block, 0, World::kBytes),
          kRejectsNull | kNeedsSettings),
      row("orMemcpyPeerAsync",
          orMemcpyPeerAsync,
          GIVE(w.block, 0, w.other_block, 0, World::kBytes, w.stream),
          kRejectsNull | kNeedsSettings),
      row("orMemset",
          orMemset,
          GIVE(w.block, 1, World::kBytes),
          kRejectsNull | kNeedsSettings),
      row("orMemsetAsync",
          orMemsetAsync,
          GIVE(w.block, 1, World::kBytes, w.stream),
          kRejectsNull | kNeedsSettings),
      row("orStreamCreate",
          orStreamCreate,
          GIVE(&w.made_stream),
          kRejectsNull | kNeedsSettings),
      row("orStreamCreateWithPriority",
          orStreamCreateWithPriority,
          GIVE(&w.made_stream, 0, 0),
          kRejectsNull | kNeedsSettings),
      row("orStreamDestroy", orStreamDestroy, GIVE(w.stream), kNeedsSettings),
      row("orStreamGetDefault",
          orStreamGetDefault,
          GIVE(&w.made_stream, 0),
          kRejectsNull | kNeedsSettings),
      row("orStreamQuery", orStreamQuery, GIVE(w.stream), kNeedsSettings),
      row("orStreamGetProgress",
          orStreamGetProgress,
          GIVE(w.stream, w.counts, w.counts + 1),
          kRejectsNull | kNeedsSettings),
      row("orDeviceGetEnqueueCounter",
          orDeviceGetEnqueueCounter,
          GIVE(&w.counter, 0),
          kRejectsNull | kNeedsSettings),
      row("orStreamRunsHere",
          orStreamRunsHere,
          GIVE(w.stream, w.numbers),
          kRejectsNull | kNeedsSettings),
      row("orStreamSynchronize",
          orStreamSynchronize,
          GIVE(w.stream),
          kNeedsSettings),
      row("orStreamWaitEvent",
          orStreamWaitEvent,
          GIVE(w.stream, w.later, 0),
          kNeedsSettings),
      row("orStreamGetPriority",
          orStreamGetPriority,
          GIVE(w.stream, w.numbers),
          kRejectsNull | kNeedsSettings),
      row("orStreamGetDevice",
          orStreamGetDevice,
          GIVE(w.stream, w.numbers),
          kRejectsNull | kNeedsSettings),
      row("orDeviceGetStreamPriorityRange",
          orDeviceGetStreamPriorityRange,
          GIVE(&w.numbers[0], &w.numbers[1]),
          kRejectsNull),
      row("orSetSchedule",
          orSetSchedule,
          GIVE("eager"),
          kRejectsNull | kNeedsSettings),
      row("orGetSchedule",
          orGetSchedule,
          GIVE(&w.schedule),
          kRejectsNull | kNeedsSettings),
      row("orGetScheduleFlag",
          orGetScheduleFlag,
          GIVE(&w.schedule_flag),
          kRejectsNull | kNeedsSettings),
      row<orStream_t, orKernel_t, void*, orKernel_t>(
          "orLaunchKernel",
          orLaunchKernel,
          GIVE(w.stream, nothing, nullptr, nothing),
          kRejectsNull | kNeedsSettings)
          .may_be_null({2, 3}),
      row("orLaunchKernelBlocking",
          orLaunchKernelBlocking,
          GIVE(w.stream, nothing, nullptr),
          kRejectsNull | kNeedsSettings)
          .may_be_null({2}),
      row("orLaunchHostFunc",
          orLaunchHostFunc,
          GIVE(w.stream, nothing, nullptr, nullptr),
          kRejectsNull | kNeedsSettings)
          .may_be_null({2, 3}),
      row("orSetExecutor", orSetExecutor, GIVE(&kEchoExecutor), kRejectsNull),
      row<orStream_t,
          const char*,
          const void*,
          size_t,
          orReply_t,
          void*,
          orKernel_t>(
          "orLaunchMessage",
          orLaunchMessage,
          GIVE(w.stream, "", w.host, 1, ignore, nullptr, nothing),
          kRejectsNull | kNeedsSettings)
          .may_be_null({5, 6}),
      row("orLaunchMessageBlocking",
          orLaunchMessageBlocking,
          GIVE(w.stream, "", w.host, 1, ignore, nullptr),
          kRejectsNull | kNeedsSettings)
          .may_be_null({5}),
      row("orSetDeviceLauncher",
          orSetDeviceLauncher,
          GIVE(kLauncher, 1),
          kRejectsNull),
      row("orEventCreate",
          orEventCreate,
          GIVE(&w.made_event),
          kRejectsNull | kNeedsSettings),
      row("orEventCreateWithFlags",
          orEventCreateWithFlags,
          GIVE(&w.made_event, 0),
          kRejectsNull | kNeedsSettings),
      row("orEventRecord", orEventRecord, GIVE(w.later, w.stream)),
      row("orEventQuery", orEventQuery, GIVE(w.later)),
      row("orEventSynchronize", orEventSynchronize, GIVE(w.later)),
      row("orEventElapsedTime",
          orEventElapsedTime,
          GIVE(&w.milliseconds, w.start, w.later),
          kRejectsNull),
      row("orEventDestroy", orEventDestroy, GIVE(w.later)),
      row("orStreamBeginCapture",
          orStreamBeginCapture,
          GIVE(w.stream, orStreamCaptureModeRelaxed),
          kNeedsSettings),
      row("orStreamEndCapture",
          orStreamEndCapture,
          GIVE(w.stream, &w.made_graph),
          kRejectsNull | kNeedsSettings)
          .returns(orErrorInvalidValue),
      row("orStreamGetCaptureInfo",
          orStreamGetCaptureInfo,
          GIVE(w.stream, &w.capture_status, &w.counts[0]),
          kRejectsNull | kNeedsSettings),
      row("orGraphGetNodeCount",
          orGraphGetNodeCount,
          GIVE(w.graph, w.sizes),
          kRejectsNull),
      row("orGraphLaunch",
          orGraphLaunch,
          GIVE(w.graph, w.stream),
          kNeedsSettings),
      row("orGraphDebugDotPrint",
          orGraphDebugDotPrint,
          GIVE(w.graph, "/dev/null"),
          kRejectsNull),
      row("orGraphDestroy", orGraphDestroy, GIVE(w.graph)),
      row("orIpcGetMemHandle",
          orIpcGetMemHandle,
          GIVE(&w.memory_handle, w.block),
          kRejectsNull | kNeedsSettings),
      row("orIpcOpenMemHandle",
          orIpcOpenMemHandle,
          GIVE(w.addresses, w.exported_memory(), 0),
          kRejectsNull | kNeedsSettings)
          .returns(orErrorNotPermitted),
      row("orIpcCloseMemHandle",
          orIpcCloseMemHandle,
          GIVE(w.block),
          kRejectsNull | kNeedsSettings)
          .returns(orErrorInvalidValue),
      row("orIpcGetEventHandle",
          orIpcGetEventHandle,
          GIVE(&w.event_handle, w.shared),
          kRejectsNull),
      row("orIpcOpenEventHandle",
          orIpcOpenEventHandle,
          GIVE(&w.made_event, w.exported_event()),
          kRejectsNull | kNeedsSettings)
          .returns(orErrorNotPermitted),
      row("orFailureInject",
          orFailureInject,
          GIVE(&w.made_failure, &w.spec),
          kRejectsNull | kNeedsSettings),
      row("orFailureGetCounts",
          orFailureGetCounts,
          GIVE(w.failure, &w.counts[0], &w.counts[1]),
          kRejectsNull),
      row("orFailureRemove", orFailureRemove, GIVE(w.failure)),
      row("orDeviceLose", orDeviceLose, GIVE(0), kNeedsSettings),
      row("orDeviceAssertFail",
          orDeviceAssertFail,
          GIVE(0, "an assertion"),
          kRejectsNull | kNeedsSettings),
      row("orActivityTake",
          orActivityTake,
          GIVE(&w.activity, sizeof(orActivity), 0, w.sizes, w.counts),
          kRejectsNull),
      row("orActivityGetState",
          orActivityGetState,
          GIVE(&w.kinds),
          kRejectsNull),
      row("orActivityPushId", orActivityPushId, GIVE(orActivityIdExternal, 1)),
      row("orActivityPopId",
          orActivityPopId,
          GIVE(orActivityIdExternal, w.counts),
          kRejectsNull),
      row("orStreamGetNumber",
          orStreamGetNumber,
          GIVE(w.stream, w.numbers),
          kRejectsNull | kNeedsSettings),
      row("orLaunchKernelWithInfo",
          orLaunchKernelWithInfo,
          GIVE(w.stream, nothing, nullptr, nullptr, &kInfo),
          kRejectsNull | kNeedsSettings)
          .may_be_null({2, 3, 4}),
      row("orLaunchKernelBlockingWithInfo",
          orLaunchKernelBlockingWithInfo,
          GIVE(w.stream, nothing, nullptr, &kInfo),
          kRejectsNull | kNeedsSettings)
          .may_be_null({2, 3}),
      row("orLaunchMessageWithInfo",
          orLaunchMessageWithInfo,
          GIVE(w.stream, "x", 1, ignore, nullptr, nullptr, &kInfo),
          kRejectsNull | kNeedsSettings)
          .may_be_null({4, 5}),
      row("orLaunchMessageBlockingWithInfo",
          orLaunchMessageBlockingWithInfo,
          GIVE(w.stream, "x", 1, ignore, nullptr, &kInfo),
          kRejectsNull | kNeedsSettings)
          .may_be_null({4}),
  };
  return table;
}
