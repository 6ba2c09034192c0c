// SPDX-License-Identifier: BSD-3-Clause
// The Python class Stream.
#include "bindings/bindings.h"

#include <openreg/activity.h>

#include <nanobind/stl/string.h>

#include <cstdint>
#include <functional>

namespace openreg::python {
namespace {

using namespace nb::literals;

int device_of(const Stream& stream) {
  int device = 0;
  check(orStreamGetDevice(stream.handle, &device));
  return device;
}

int priority_of(const Stream& stream) {
  int priority = 0;
  check(orStreamGetPriority(stream.handle, &priority));
  return priority;
}

Stream from_handle(std::uintptr_t handle) {
  auto* stream = reinterpret_cast<orStream_t>(handle);
  int device = 0;
  check(orStreamGetDevice(stream, &device));
  if (stream == nullptr) { // the current device's, now and not at each use
    check(orStreamGetDefault(&stream, device));
  }
  return {stream, false};
}

bool query(const Stream& stream) {
  const orError_t error = orStreamQuery(stream.handle);
  if (error == orErrorNotReady) {
    return false;
  }
  check(error);
  return true;
}

orStreamCaptureMode capture_mode(const std::string& name) {
  if (name == "global") {
    return orStreamCaptureModeGlobal;
  }
  if (name == "thread_local") {
    return orStreamCaptureModeThreadLocal;
  }
  if (name == "relaxed") {
    return orStreamCaptureModeRelaxed;
  }
  throw nb::value_error(
      ("mode: expected 'global', 'thread_local' or 'relaxed', got '" + name +
       "'")
          .c_str());
}

const char* capture_status(const Stream& stream) {
  orStreamCaptureStatus status = orStreamCaptureStatusNone;
  std::uint64_t id = 0;
  check(orStreamGetCaptureInfo(stream.handle, &status, &id));
  switch (status) {
    case orStreamCaptureStatusActive:
      return "active";
    case orStreamCaptureStatusInvalidated:
      return "invalidated";
    default:
      return "none";
  }
}

} // namespace

void init_stream(nb::module_& m) {
  nb::class_<Stream>(
      m,
      "Stream",
      "An ordered queue of work of one device.\n\n"
      "Work of a deleted stream still runs. Two objects are equal if they\n"
      "name the same stream.",
      nb::is_weak_referenceable())
      .def(
          "__init__",
          [](Stream* self, const DeviceLike& device, int priority) {
            const DeviceScope scope(index_of(device));
            orStream_t handle = nullptr;
            check(orStreamCreateWithPriority(&handle, 0, priority));
            new (self) Stream(handle, true);
          },
          "device"_a = nb::none(),
          "priority"_a = 0,
          "Creates a stream.\n\n"
          "Args:\n"
          "    device: Its device, by default the current one.\n"
          "    priority: From 0, the least, to -3, the greatest; clamped.")
      .def_static(
          "from_handle",
          &from_handle,
          "handle"_a,
          "Returns the stream of a C library, such as PyTorch.\n\n"
          "The stream ends when its owner destroys it.\n\n"
          "Args:\n"
          "    handle: An ``orStream_t`` as a number; 0 is the default stream\n"
          "        of the current device.\n\n"
          "Raises:\n"
          "    OpenRegError: If the stream does not exist.")
      .def_prop_ro(
          "handle",
          [](const Stream& self) {
            return reinterpret_cast<std::uintptr_t>(self.handle);
          },
          "Its ``orStream_t`` as a number, for C libraries and for\n"
          "``torch.openreg.ExternalStream``.")
      .def_prop_ro(
          "number",
          [](const Stream& self) {
            int number = 0;
            check(orStreamGetNumber(self.handle, &number));
            return number;
          },
          "Its number on the device, as in activity records; the default\n"
          "stream has number 0.")
      .def_prop_ro(
          "device",
          [](const Stream& self) { return Device{device_of(self)}; },
          "The device of the stream.")
      .def_prop_ro(
          "priority", &priority_of, "Its priority; smaller is more urgent.")
      .def(
          "query",
          &query,
          "True if all its work is done.\n\n"
          "Raises:\n"
          "    OpenRegError: If a kernel of the stream, or the device, failed.")
      .def(
          "synchronize",
          [](const Stream& self) {
            check(
                without_gil([&] { return orStreamSynchronize(self.handle); }));
          },
          "Waits for the work enqueued so far.\n\n"
          "Raises:\n"
          "    OpenRegError: If a kernel of the stream failed, which is\n"
          "        reported once; if the device has failed, until it is\n"
          "        reset; or if the wait exceeds its wait timeout.")
      .def(
          "wait_event",
          [](const Stream& self, const Event& event) {
            check(orStreamWaitEvent(self.handle, event.handle, 0));
          },
          "event"_a,
          "Makes later work of this stream wait for ``event``.\n\n"
          "Args:\n"
          "    event: The event. Its last record counts; without a record\n"
          "        the stream does not wait.\n\n"
          "Raises:\n"
          "    OpenRegError: If the device has failed.")
      .def(
          "begin_capture",
          [](const Stream& self, const std::string& mode) {
            check(orStreamBeginCapture(self.handle, capture_mode(mode)));
          },
          "mode"_a = "global",
          "Begins to capture the work of this stream into a graph.\n\n"
          "The work does not run until the graph is launched. A call that\n"
          "waits for the stream fails the capture.\n\n"
          "Args:\n"
          "    mode: The threads that may not wait for the whole device\n"
          "        during the capture: ``\"global\"``, all;\n"
          "        ``\"thread_local\"``, this one; ``\"relaxed\"``, none,\n"
          "        and any may end the capture.\n\n"
          "Raises:\n"
          "    ValueError: If the mode is unknown.\n"
          "    OpenRegError: If the stream is already captured or is the\n"
          "        default stream of its device, or the device has failed.")
      .def(
          "end_capture",
          [](const Stream& self) {
            orGraph_t graph = nullptr;
            check(orStreamEndCapture(self.handle, &graph));
            return Graph(graph);
          },
          "Ends the capture and returns the graph.\n\n"
          "Raises:\n"
          "    OpenRegError: If the stream is not captured, the capture has\n"
          "        failed, it began on another stream or thread, or another\n"
          "        captured stream has work that this stream did not wait\n"
          "        for.")
      .def_prop_ro(
          "capture_status",
          &capture_status,
          "``\"none\"``, ``\"active\"``, or ``\"invalidated\"``: the "
          "capture\n"
          "has failed and must be ended.")
      .def(
          "launch",
          [](const Stream& self, const nb::callable& kernel, nb::args args) {
            launch(self.handle, kernel, args);
          },
          "kernel"_a,
          "args"_a,
          nb::sig(
              "def launch(self, kernel: collections.abc.Callable[..., object],"
              " *args: object) -> None"),
          "Enqueues ``kernel(*args)`` on this stream.\n\n"
          "The call does not block. The kernel runs on a thread of the\n"
          "stream, or on a thread that waits for it. An exception becomes\n"
          "the failure of the stream, which the next wait raises.\n\n"
          "Args:\n"
          "    kernel: The callable; it may not wait for this stream.\n"
          "    *args: Its arguments, which are kept until it has run.\n\n"
          "Raises:\n"
          "    OpenRegError: If the device has failed.")
      .def(
          "launch_host",
          [](const Stream& self, const nb::callable& function, nb::args args) {
            launch_host(self.handle, function, args);
          },
          "function"_a,
          "args"_a,
          nb::sig(
              "def launch_host(self, function: "
              "collections.abc.Callable[..., object], *args: object) -> None"),
          "Enqueues the host function ``function(*args)`` on this stream.\n\n"
          "As ``launch``, but the function is not work of the device:\n"
          "injected failures do not count or hit it.\n\n"
          "Args:\n"
          "    function: The callable; it may not wait for this stream.\n"
          "    *args: Its arguments, which are kept until it has run.\n\n"
          "Raises:\n"
          "    OpenRegError: If the device has failed.")
      .def(
          "__eq__",
          [](const Stream& self, const Stream& other) {
            return self.handle == other.handle;
          },
          nb::is_operator())
      .def(
          "__hash__",
          [](const Stream& self) {
            return std::hash<orStream_t>()(self.handle);
          })
      .def("__repr__", [](const Stream& self) {
        return "Stream(device=" + std::to_string(device_of(self)) +
            ", priority=" + std::to_string(priority_of(self)) + ")";
      });
}

} // namespace openreg::python
