// SPDX-License-Identifier: BSD-3-Clause
// Event.
#include "bindings.h"

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

} // namespace

Event::Event(unsigned int flags) {
  check(orEventCreateWithFlags(&handle, flags));
}

void init_event(nb::module_& m) {
  nb::class_<Event>(
      m, "Event", "A point in the order of a stream that others can wait for.")
      .def(
          "__init__",
          [](Event* self, bool timing) {
            new (self) Event(timing ? orEventDefault : orEventDisableTiming);
          },
          nb::kw_only(),
          "timing"_a = true,
          "Makes an event.\n\n"
          "Args:\n"
          "    timing: Whether ``elapsed_time`` may use it.")
      .def(
          "record",
          [](const Event& self, const Stream* stream) {
            check(orEventRecord(self.handle, handle_of(stream)));
          },
          "stream"_a = nb::none(),
          "Marks the end of the work that a stream has now, by default the\n"
          "default stream of the current device. The last record counts.")
      .def(
          "query",
          &query,
          "True if the last record was reached, or there was none.")
      .def(
          "synchronize",
          [](const Event& self) {
            check(without_gil([&] { return orEventSynchronize(self.handle); }));
          },
          "Waits until the last record is reached.")
      .def(
          "elapsed_time",
          &elapsed_time,
          "end"_a,
          "Milliseconds from this event to ``end``.\n\n"
          "Raises:\n"
          "    OpenRegError: If one was not recorded, not reached yet, or "
          "made\n"
          "        without timing.");
}

} // namespace openreg::python
