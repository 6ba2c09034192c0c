// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API for captures and graphs.
#include "base/error.h"
#include "device/graph_handles.h"
#include "device/runtime.h"
#include "device/stream_handles.h"
#include "stream/capture.h"

#include <fstream>
#include <string>

using namespace openreg;

namespace {

void check_mode(orStreamCaptureMode mode) {
  if (mode != orStreamCaptureModeGlobal &&
      mode != orStreamCaptureModeThreadLocal &&
      mode != orStreamCaptureModeRelaxed) {
    throw Failure(
        orErrorInvalidValue,
        "mode " + std::to_string(static_cast<int>(mode)) +
            " is not orStreamCaptureModeGlobal, orStreamCaptureModeThreadLocal "
            "or orStreamCaptureModeRelaxed");
  }
}

} // namespace

extern "C" {

orError_t orStreamBeginCapture(
    orStream_t stream,
    orStreamCaptureMode mode) noexcept {
  return api_call("orStreamBeginCapture", [&] {
    check_mode(mode);
    Stream& object = stream_of(stream);
    const auto epoch = object.check_usable();
    if (is_default(object)) {
      throw Failure(
          orErrorStreamCaptureUnsupported,
          std::string(describe(orErrorStreamCaptureUnsupported).text) +
              ": stream is the default stream of its device");
    }
    object.begin_capture(epoch, mode);
  });
}

orError_t orStreamEndCapture(orStream_t stream, orGraph_t* graph) noexcept {
  return api_call("orStreamEndCapture", [&] {
    check_not_null(graph, "graph");
    *graph = nullptr;
    *graph = make_graph(stream_of(stream).end_capture());
  });
}

orError_t orStreamGetCaptureInfo(
    orStream_t stream,
    orStreamCaptureStatus* status,
    uint64_t* id) noexcept {
  return api_call("orStreamGetCaptureInfo", [&] {
    check_not_null(status, "status");
    check_not_null(id, "id");
    const auto capture = stream_of(stream).capture();
    *status = !capture       ? orStreamCaptureStatusNone
        : capture->invalid() ? orStreamCaptureStatusInvalidated
                             : orStreamCaptureStatusActive;
    *id = capture ? capture->id() : 0;
  });
}

orError_t orGraphGetNodeCount(orGraph_t graph, size_t* count) noexcept {
  return api_call("orGraphGetNodeCount", [&] {
    check_not_null(count, "count");
    *count = graph_of(graph)->node_count();
  });
}

orError_t orGraphLaunch(orGraph_t graph, orStream_t stream) noexcept {
  return api_call("orGraphLaunch", [&] {
    Stream& object = stream_of(stream);
    object.check_usable();
    launch_graph(graph, object);
  });
}

orError_t orGraphDebugDotPrint(orGraph_t graph, const char* path) noexcept {
  return api_call("orGraphDebugDotPrint", [&] {
    check_not_null(path, "path");
    const std::string text = graph_of(graph)->dot();
    std::ofstream file(path);
    if (!(file << text << std::flush)) {
      throw Failure(
          orErrorInvalidValue,
          std::string("path ") + path + " cannot be written");
    }
  });
}

orError_t orGraphDestroy(orGraph_t graph) noexcept {
  return api_call("orGraphDestroy", [&] { destroy_graph(graph); });
}

} // extern "C"
