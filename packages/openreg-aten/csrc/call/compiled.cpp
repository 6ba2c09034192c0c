// SPDX-License-Identifier: BSD-3-Clause
// Launches of compiled kernels, inline or enqueued.
#include "call/compiled.h"

#include "call/dispatch_paths.h"
#include "device/activity.h"
#include "device/device.h"
#include "device/error.h"
#include "device/gil.h"
#include "stream/launch.h"
#include "stream/pace.h"
#include "stream/stream.h"

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

namespace openreg::aten {
namespace {

/// A call that waits in a stream, with its own copy of the arguments.
class LaterCall {
 public:
  explicit LaterCall(const CompiledCall& call)
      : call_(call), args_(call.copy(call.args)) {}
  LaterCall(const LaterCall&) = delete;
  LaterCall& operator=(const LaterCall&) = delete;
  ~LaterCall() {
    call_.destroy(args_);
  }

  void run() const {
    try {
      call_.run(args_);
    } catch (const c10::Error& error) {
      fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error(std::string(call_.name) + ": " + what);
  }

  CompiledCall call_;
  void* args_;
};

bool is_enqueued(const CompiledCall& call, c10::DeviceIndex device) {
  const auto place = call.must_run ? pace::Place::kInTurn : pace::Place::kAny;
  return pace::decide(device, place, call.bytes, call.may_raise) !=
      pace::Verdict::kRun;
}

} // namespace

void launch_compiled(const CompiledCall& call) {
  TORCH_CHECK(
      call.struct_size == sizeof(CompiledCall),
      "launch_compiled: the caller was built for another version of "
      "openreg-aten; reinstall openreg-aten and openreg-inductor with the same "
      "version");
  require_reachable_memory(
      "the compiled kernel ",
      call.name,
      " cannot access device memory in another process; set OPENREG_ISOLATION "
      "to thread or loopback");
  check_device(static_cast<int>(call.device));
  const auto device = static_cast<c10::DeviceIndex>(call.device);
  const GilRelease released; // a full stream waits, possibly for Python
  const bool enqueued = is_enqueued(call, device);
  if (counts_paths()) {
    count_path(
        {std::string("compiled::") + call.name, ""},
        enqueued ? DispatchPath::kEnqueued : DispatchPath::kCompiled);
  }
  if (!enqueued) {
    const orLaunchInfo info = describe_launch(call.name, call.bytes);
    run_on_current_stream(device, [&] { call.run(call.args); }, &info);
    note_inline_run(device);
    return;
  }
  auto later = std::make_unique<LaterCall>(call);
  const orLaunchInfo info = describe_launch(call.name, call.bytes);
  OPENREG_CHECK(orLaunchKernelWithInfo(
      current_handle(device),
      [](void* args) {
        const KernelOperators hidden;
        static_cast<const LaterCall*>(args)->run();
      },
      later.get(),
      [](void* args) { delete static_cast<LaterCall*>(args); },
      &info));
  static_cast<void>(later.release()); // the stream deletes it
}

} // namespace openreg::aten
