// SPDX-License-Identifier: BSD-3-Clause
// Graphs: the implementation of torch.accelerator.Graph.
#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "device/error.h"
#include "device/gil.h"
#include "device/trace.h"
#include "memory/allocator.h"
#include "random/generator.h"
#include "stream/capture.h"
#include "stream/stream.h"
#include "stream/stream_event.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GraphImplInterface.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace openreg::aten {
namespace {

/// Copies the state of `from` to `to`, between two draws of either.
void copy_state(const at::Generator& from, const at::Generator& to) {
  const std::scoped_lock lock(
      from.unsafeGetGeneratorImpl()->mutex_,
      to.unsafeGetGeneratorImpl()->mutex_);
  auto* source = from.get<at::CPUGeneratorImpl>();
  auto* target = to.get<at::CPUGeneratorImpl>();
  target->set_engine(source->engine());
  target->set_next_float_normal_sample(source->next_float_normal_sample());
  target->set_next_double_normal_sample(source->next_double_normal_sample());
}

/// The generators of one replay. Before it, the captured generators get the
/// states of the device generators. After it, the device generators get the
/// states that the replay ended with.
struct Draws {
  struct Each {
    at::Generator cpu;
    at::Generator stand_in;
  };
  std::vector<Each> all;

  using Shared = std::shared_ptr<const Draws>;

  static void begin(void* draws) {
    for (const Each& each : (*static_cast<Shared*>(draws))->all) {
      copy_state(each.cpu, each.stand_in);
    }
  }
  static void end(void* draws) {
    for (const Each& each : (*static_cast<Shared*>(draws))->all) {
      copy_state(each.stand_in, each.cpu);
    }
  }

  /// Enqueues one of the functions above. Each launch keeps the generators,
  /// because a full stream may accept one launch and reject the next.
  static orError_t
  launch(orStream_t stream, void (*run)(void*), const Shared& draws) {
    auto kept = std::make_unique<Shared>(draws);
    const orError_t error =
        orLaunchKernel(stream, run, kept.get(), [](void* args) {
          delete static_cast<Shared*>(args);
        });
    if (error == orSuccess) {
      static_cast<void>(kept.release());
    }
    return error;
  }
};

orStreamCaptureMode mode_of(at::GraphCaptureMode mode) {
  switch (mode) {
    case at::GraphCaptureMode::ThreadLocal:
      return orStreamCaptureModeThreadLocal;
    case at::GraphCaptureMode::Relaxed:
      return orStreamCaptureModeRelaxed;
    default:
      return orStreamCaptureModeGlobal;
  }
}

class Graph final : public at::GraphImplInterface {
 public:
  explicit Graph(const at::GraphImplArgs& args)
      : keep_graph_(args.keep_graph) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() override {
    if (!in_bad_fork()) { // in a forked child, it belongs to the parent
      reset();
    }
  }

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode)
      override {
    TORCH_CHECK(
        graph_ == nullptr && capture_ == nullptr,
        "This Graph instance already owns a captured graph. To capture a new "
        "graph, create a new instance, or call reset().");
    require_reachable_memory(
        "graphs cannot be captured, because a replay cannot access the random "
        "number generators of the device process; set OPENREG_ISOLATION to "
        "thread or loopback");
    const c10::DeviceIndex device = current_device();
    const c10::Stream stream = current_stream(device);
    TORCH_CHECK(
        stream.id() != 0,
        kErrorName,
        " graphs must be captured on a non-default stream. (However, "
        "after capture, it's ok to replay them on the default stream.)");
    const bool shares = pool != c10::MempoolId_t();
    const c10::MempoolId_t own = shares ? pool : new_graph_pool();
    auto capture = std::make_shared<Capture>(own);
    retain_graph_pool(own);
    try {
      openreg::aten::begin_capture(handle_of(stream), mode_of(mode), capture);
    } catch (...) {
      release_graph_pool(own, /*last=*/nullptr);
      throw;
    }
    capture_ = std::move(capture);
    stream_ = stream;
    id_ = capture_id(handle_of(stream));
    trace_graph(GraphEvent::kCaptureBegun, id_, handle_of(stream));
  }

  void capture_end() override {
    TORCH_CHECK(capturing(), "capture_end() called before capture_begin().");
    TORCH_CHECK(
        current_stream(stream_.device_index()) == stream_,
        "Capture must end on the same stream it began on.");
    const orError_t error = end_capture(handle_of(stream_), capture_, &graph_);
    if (error != orSuccess && error != orErrorStreamCaptureWrongThread) {
      drop_capture();
      const uint64_t id = std::exchange(id_, 0);
      const std::string message = orGetErrorMessage();
      trace_graph(GraphEvent::kCaptureFailed, id, handle_of(stream_));
      trace_graph(GraphEvent::kReset, id, nullptr);
    }
    OPENREG_CHECK(error);
    trace_graph(GraphEvent::kCaptureEnded, id_, handle_of(stream_));
    size_t nodes = 0;
    OPENREG_CHECK(orGraphGetNodeCount(graph_, &nodes));
    if (nodes == 0) {
      TORCH_WARN(
          "The ",
          kErrorName,
          " Graph is empty. This usually means that the graph was "
          "attempted to be captured on wrong device or stream.");
    }
    instantiated_ = !keep_graph_;
  }

  void instantiate() override {
    check_captured("instantiate");
    TORCH_CHECK(
        keep_graph_ || !instantiated_,
        "instantiate() is intended to be called by the user only when "
        "keep_graph=true");
    instantiated_ = true; // the runtime needs no instantiation
  }

  // [docs: replay]
  void replay() override {
    check_captured("replay");
    instantiated_ = true;
    const c10::DeviceIndex device = stream_.device_index();
    const CurrentDevice scope(device);
    const orStream_t stream = current_handle(device);
    const bool refused = is_captured(device); // by the runtime
    if (!refused) {
      trace_graph(GraphEvent::kReplay, id_, stream);
    }
    const GilRelease released; // a full stream waits
    const std::lock_guard lock(replaying_);
    if (refused) {
      OPENREG_CHECK(orGraphLaunch(graph_, stream));
      return;
    }
    // Set even if a launch fails, because the stream may have accepted a part.
    const orStream_t before = std::exchange(last_, stream);
    if (capture_->drawn().empty()) {
      OPENREG_CHECK(orGraphLaunch(graph_, stream));
    } else {
      replay_drawing(stream, before);
    }
  }
  // [docs: end]

  void reset() override {
    if (capturing()) {
      // A capture that is not ended would continue forever.
      orGraph_t graph = nullptr;
      if (end_capture(handle_of(stream_), capture_, &graph) != orSuccess) {
        static_cast<void>(orGetLastError());
      } else {
        graph_ = graph;
      }
    }
    if (graph_ != nullptr) {
      const orError_t error = orGraphDestroy(std::exchange(graph_, nullptr));
      if (error != orSuccess) {
        warn_runtime_error(error);
      }
    }
    drop_capture();
    instantiated_ = false;
    if (const uint64_t id = std::exchange(id_, 0)) {
      trace_graph(GraphEvent::kReset, id, nullptr);
    }
  }

  c10::MempoolId_t pool() const override {
    check_captured("pool");
    return capture_->pool();
  }

  void enable_debug_mode() override {
    debug_ = true;
  }

  void debug_dump(const std::string& path) override {
    if (!debug_ && !keep_graph_) {
      TORCH_WARN(
          kErrorName,
          " Graphs debug not enabled, set with "
          "[graph].enable_debug_mode()");
      return;
    }
    check_captured("debug_dump");
    OPENREG_CHECK(orGraphDebugDotPrint(graph_, path.c_str()));
  }

 private:
  bool capturing() const {
    return capture_ != nullptr && graph_ == nullptr;
  }

  void check_captured(const char* call) const {
    TORCH_CHECK(
        graph_ != nullptr,
        "Called Graph::",
        call,
        " without a preceding successful capture.");
  }

  void drop_capture() {
    if (capture_ != nullptr) {
      release_graph_pool(
          std::exchange(capture_, nullptr)->pool(),
          std::exchange(last_, nullptr));
    }
  }

  void replay_drawing(orStream_t stream, orStream_t before) {
    // A generator that was reseeded does not wait for the last replay, and the
    // captured generators are in use until that ends.
    if (before != nullptr && before != stream) {
      StreamEvent(before).hold(stream);
    }
    auto draws = std::make_shared<Draws>();
    for (const Capture::Drawn& each : capture_->drawn()) {
      draws->all.push_back(
          {cpu_generator_for(*each.state, stream_.device_index(), stream),
           each.stand_in});
    }
    OPENREG_CHECK(Draws::launch(stream, &Draws::begin, draws));
    const orError_t error = orGraphLaunch(graph_, stream);
    OPENREG_CHECK(Draws::launch(stream, &Draws::end, draws));
    OPENREG_CHECK(error);
  }

  const bool keep_graph_;
  bool debug_ = false;
  bool instantiated_ = false;
  std::shared_ptr<Capture> capture_;
  orGraph_t graph_ = nullptr; // null until the capture has ended
  c10::Stream stream_ = default_stream(0);
  uint64_t id_ = 0; // of the capture
  std::mutex replaying_;
  orStream_t last_ = nullptr; // of the last replay, which follows all others
};

} // namespace

OPENREG_MECHANISM(
    graph,
    "at::GraphImplInterface, REGISTER_GRAPH_IMPL",
    "no torch.accelerator.Graph") {
  // The key is the device name in upper case.
  at::GraphImplRegistry()->Register(
      kIsCuda ? "CUDA" : "OPENREG",
      [](const at::GraphImplArgs& args)
          -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<Graph>(args);
      });
}

} // namespace openreg::aten
