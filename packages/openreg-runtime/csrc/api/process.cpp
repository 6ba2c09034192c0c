// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that describes the library in this process.
#include "base/process.h"

#include "base/error.h"
#include "base/struct_size.h"
#include "device/graph_handles.h"
#include "device/runtime.h"
#include "device/stream_handles.h"
#include "failures/failure_injection.h"
#include "memory/host_access.h"
#include "memory/host_memory.h"
#include "stream/workers.h"

using namespace openreg;

namespace {

orResourceUsage usage_now() {
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  const auto host = host_memory::usage();
  usage.hostBlocks = host.blocks;
  usage.hostBytes = host.bytes;
  usage.hostRegistrations = host.registrations;
  if (!process::in_use()) {
    return usage; // asking starts no device
  }
  for (int index = 0; index < runtime().device_count(); ++index) {
    const auto memory = runtime().device(index).memory().usage();
    usage.deviceBlocks += memory.blocks;
    usage.deviceBytes += memory.requested;
    usage.ipcMappings += memory.openings;
  }
  usage.unprotectedBlocks = host_access::open_count();
  usage.streams = live_stream_count();
  usage.events = live_event_count();
  usage.failures = failure_injection::live_count();
  usage.threads = workers::count();
  usage.graphs = live_graph_count();
  return usage;
}

} // namespace

extern "C" {

orError_t orRuntimeGetVersion(int* version) noexcept {
  return api_call("orRuntimeGetVersion", [&] {
    check_not_null(version, "version");
    *version = 10000 * OPENREG_VERSION_MAJOR + 100 * OPENREG_VERSION_MINOR +
        OPENREG_VERSION_PATCH;
  });
}

orError_t orInit() noexcept {
  return api_call("orInit", [&] { runtime(); });
}

orError_t orIsInitialized(int* initialized) noexcept {
  return api_call("orIsInitialized", [&] {
    check_not_null(initialized, "initialized");
    *initialized = process::in_use() ? 1 : 0;
  });
}

orError_t orIsInBadFork(int* badFork) noexcept {
  // Works in a forked child, where every api_call() fails.
  if (badFork == nullptr) {
    return set_last_error(
        "orIsInBadFork", orErrorInvalidValue, "badFork must not be null");
  }
  *badFork = process::in_bad_fork() ? 1 : 0;
  return orSuccess;
}

orError_t orGetResourceUsage(orResourceUsage* usage) noexcept {
  return api_call("orGetResourceUsage", [&] {
    check_struct_size(usage, "usage");
    write_struct(usage, "usage", usage_now());
  });
}

} // extern "C"
