// SPDX-License-Identifier: BSD-3-Clause
// The Python class Event.
#include "bindings/bindings.h"

#include <functional>

namespace openreg::python {
namespace {

using namespace nb::literals;

bool query(const Event& event) {
  const orError_t error = orEventQuery(event.handle);
  if (error == orErrorNotReady) {
    return false;
  }
  check(error);
  return true;
}

float elapsed_time(const Event& start, const Event& end) {
  float ms = 0;
  const orError_t error = orEventElapsedTime(&ms, start.handle, end.handle);
  if (error == orErrorNotReady) {
    raise(
        error,
        "orEventElapsedTime: the work before the events is still queued or "
        "running; synchronize the later one first");
  }
  check(error);
  return ms;
}

Event create(std::optional<bool> timing, bool interprocess) {
  unsigned int flags =
      timing.value_or(!interprocess) ? orEventDefault : orEventDisableTiming;
  if (interprocess) {
    flags |= orEventInterprocess;
  }
  orEvent_t handle = nullptr;
  check(orEventCreateWithFlags(&handle, flags));
  return Event(handle);
}

nb::bytes ipc_handle(const Event& event) {
  orIpcEventHandle_t handle;
  check(orIpcGetEventHandle(&handle, event.handle));
  return nb::bytes(handle.reserved, sizeof(handle.reserved));
}

Event from_ipc(const nb::bytes& bytes) {
  orIpcEventHandle_t ipc;
  checked_handle("Event.from_ipc", bytes, ipc.reserved);
  orEvent_t handle = nullptr;
  check(without_gil([&] { return orIpcOpenEventHandle(&handle, ipc); }));
  return Event(handle);
}

} // namespace

void init_event(nb::module_& m) {
  nb::class_<Event>(
      m,
      "Event",
      "A point in the order of a stream that others can wait for.\n\n"
      "Two objects are equal if they name the same event.",
      nb::is_weak_referenceable())
      .def(
          "__init__",
          [](Event* self, std::optional<bool> timing, bool interprocess) {
            new (self) Event(create(timing, interprocess));
          },
          nb::kw_only(),
          "timing"_a = nb::none(),
          "interprocess"_a = false,
          "Creates an event.\n\n"
          "Args:\n"
          "    timing: Whether ``elapsed_time`` may use it; by default true,\n"
          "        unless ``interprocess`` is.\n"
          "    interprocess: Whether ``ipc_handle`` may share it.\n\n"
          "Raises:\n"
          "    OpenRegError: If both are true.")
      .def(
          "record",
          [](const Event& self, const Stream* stream) {
            check(orEventRecord(self.handle, handle_of(stream)));
          },
          "stream"_a = nb::none(),
          "Marks the end of the present work of a stream.\n\n"
          "The last record counts.\n\n"
          "Args:\n"
          "    stream: By default the default stream of the current device.\n\n"
          "Raises:\n"
          "    OpenRegError: If the device of the stream has failed.")
      .def(
          "query",
          &query,
          "True if the last record was reached, or there was none.\n\n"
          "Raises:\n"
          "    OpenRegError: If the device of the record has failed.")
      .def(
          "synchronize",
          [](const Event& self) {
            check(without_gil([&] { return orEventSynchronize(self.handle); }));
          },
          "Waits until the last record is reached.\n\n"
          "Raises:\n"
          "    OpenRegError: If the wait exceeds the wait timeout of the\n"
          "        device, or the device has failed.")
      .def(
          "elapsed_time",
          &elapsed_time,
          "end"_a,
          "Milliseconds from this event to ``end``.\n\n"
          "Raises:\n"
          "    OpenRegError: If an event was not recorded, not reached yet,\n"
          "        or created without timing, or if they were recorded on\n"
          "        different devices.")
      .def(
          "__eq__",
          [](const Event& self, const Event& other) {
            return self.handle == other.handle;
          },
          nb::is_operator())
      .def(
          "__hash__",
          [](const Event& self) { return std::hash<orEvent_t>()(self.handle); })
      .def(
          "ipc_handle",
          &ipc_handle,
          "Returns a handle with which another process opens the event.\n\n"
          "Returns:\n"
          "    64 bytes for ``Event.from_ipc``.\n\n"
          "Raises:\n"
          "    OpenRegError: If it was created without ``interprocess``.")
      .def_static(
          "from_ipc",
          &from_ipc,
          "handle"_a,
          "Opens an event of another process; both may record it.\n\n"
          "Args:\n"
          "    handle: 64 bytes from ``ipc_handle`` in that process.\n\n"
          "Raises:\n"
          "    ValueError: If the handle has a different length.\n"
          "    OpenRegError: If the process has ended, or this process\n"
          "        created the handle.");
}

} // namespace openreg::python
