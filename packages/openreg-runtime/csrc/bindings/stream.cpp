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
      "When the object goes, work that it holds still runs. Two objects are\n"
      "equal if they name the same stream.",
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
          "Makes a stream.\n\n"
          "Args:\n"
          "    device: Its device, by default the current one.\n"
          "    priority: From 0, the least, to -3, the greatest; clamped.")
      .def_static(
          "from_handle",
          &from_handle,
          "handle"_a,
          "Gives the stream that a C library, PyTorch for one, made.\n\n"
          "It lives as long as its owner keeps it, and no longer.\n\n"
          "Args:\n"
          "    handle: An ``orStream_t`` as a number; 0 is the default stream\n"
          "        of the current device.\n\n"
          "Raises:\n"
          "    OpenRegError: If there is no such stream.")
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
          "Its number among the streams of the device, as records of activity\n"
          "have it; that of the default stream is 0.")
      .def_prop_ro(
          "device",
          [](const Stream& self) { return Device{device_of(self)}; },
          "The device that it belongs to.")
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
          "        reported once; if the device has failed, until it is "
          "reset;\n"
          "        or if the wait takes longer than its wait timeout.")
      .def(
          "wait_event",
          [](const Stream& self, const Event& event) {
            check(orStreamWaitEvent(self.handle, event.handle, 0));
          },
          "event"_a,
          "Lets later work of this stream wait for what ``event`` recorded.\n"
          "\n"
          "Args:\n"
          "    event: Its last record so far counts; none holds nothing.\n\n"
          "Raises:\n"
          "    OpenRegError: If the device has failed.")
      .def(
          "begin_capture",
          [](const Stream& self, const std::string& mode) {
            check(orStreamBeginCapture(self.handle, capture_mode(mode)));
          },
          "mode"_a = "global",
          "Begins to make a graph of what this stream is given.\n\n"
          "Nothing of it runs until the graph is launched. What would wait\n"
          "for the stream fails the capture.\n\n"
          "Args:\n"
          "    mode: Which threads may meanwhile not wait for the whole\n"
          "        device: ``\"global\"``, all; ``\"thread_local\"``, this "
          "one;\n"
          "        ``\"relaxed\"``, none, and any may end the capture.\n\n"
          "Raises:\n"
          "    ValueError: If the mode is another.\n"
          "    OpenRegError: If it is captured already, or is the default\n"
          "        stream of its device, or the device has failed.")
      .def(
          "end_capture",
          [](const Stream& self) {
            orGraph_t graph = nullptr;
            check(orStreamEndCapture(self.handle, &graph));
            return Graph(graph);
          },
          "Ends the capture, and returns the graph.\n\n"
          "Raises:\n"
          "    OpenRegError: If the stream is not captured, the capture has\n"
          "        failed, it began on another stream or thread, or a stream\n"
          "        that was captured too has work that this one did not wait\n"
          "        for.")
      .def_prop_ro(
          "capture_status",
          &capture_status,
          "``\"none\"``, ``\"active\"``, or ``\"invalidated\"``: the capture "
          "has\n"
          "failed, and is to be ended.")
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
          "Runs ``kernel(*args)`` in the order of this stream.\n\n"
          "The call returns at once. The kernel runs on a thread of the\n"
          "stream, or on one that waits for it. An exception in it becomes\n"
          "the failure of the stream, which the next wait raises.\n\n"
          "Args:\n"
          "    kernel: What to call; it may not wait for this stream.\n"
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
          "Runs ``function(*args)`` in the order of this stream.\n\n"
          "As ``launch``, but it is work of the host, not of the device: no\n"
          "injected failure counts or hits it.\n\n"
          "Args:\n"
          "    function: What to call; it may not wait for this stream.\n"
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
