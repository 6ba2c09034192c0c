// SPDX-License-Identifier: BSD-3-Clause
// The stream functions of openreg_aten._C, which torch.Stream lacks.
#include "stream/stream.h"

#include "base/keys.h"
#include "bindings/bindings.h"
#include "device/error.h"

#include <torch/csrc/Event.h>

#include <nanobind/stl/pair.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

namespace nb = nanobind;

namespace openreg::aten {
namespace {

c10::Stream stream_of(int64_t id, int device) {
  return c10::Stream(
      c10::Stream::UNSAFE, c10::Device(kDeviceType, to_index(device)), id);
}

std::pair<int, int> priority_range() {
  int least = 0;
  int greatest = 0;
  OPENREG_CHECK(orDeviceGetStreamPriorityRange(&least, &greatest));
  return {least, greatest};
}

const c10::Event& event_of(nb::handle value) {
  if (PyObject_TypeCheck(value.ptr(), THPEventClass) == 0) {
    throw nb::type_error("expected a torch.Event");
  }
  return reinterpret_cast<THPEvent*>(value.ptr())->event;
}

/// Enqueues a kernel that takes `cycles` of a 1 GHz clock.
void sleep(uintptr_t stream, int64_t cycles) {
  TORCH_CHECK_VALUE(cycles >= 0, "cycles is ", cycles, ", expected 0 or more");
  const nb::gil_scoped_release released; // a full stream may run Python
  OPENREG_CHECK(orLaunchKernel(
      reinterpret_cast<orStream_t>(stream),
      [](void* nanoseconds) {
        std::this_thread::sleep_for(
            std::chrono::nanoseconds(reinterpret_cast<intptr_t>(nanoseconds)));
      },
      reinterpret_cast<void*>(static_cast<intptr_t>(cycles)),
      nullptr));
}

} // namespace

void define_streams(nb::module_& m) {
  m.def(
      "check_stream",
      [](int64_t id, int device) {
        translated([&] { check_stream(stream_of(id, device)); });
      },
      nb::arg("id"),
      nb::arg("device"));
  m.def(
      "external_stream",
      [](uintptr_t handle, int device) {
        return translated([&] {
          const auto stream = external_stream(
              to_index(device), reinterpret_cast<orStream_t>(handle));
          return static_cast<int64_t>(stream.id());
        });
      },
      nb::arg("handle"),
      nb::arg("device"));
  m.def(
      "stream_priority",
      [](int64_t id, int device) {
        return translated([&] { return priority_of(stream_of(id, device)); });
      },
      nb::arg("id"),
      nb::arg("device"));
  m.def(
      "sleep",
      [](uintptr_t stream, int64_t cycles) {
        translated([&] { sleep(stream, cycles); });
      },
      nb::arg("stream"),
      nb::arg("cycles"));
  m.def(
      "elapsed_time",
      [](nb::handle start, nb::handle end) {
        return translated(
            [&] { return event_of(start).elapsedTime(event_of(end)); });
      },
      nb::arg("start"),
      nb::arg("end"),
      nb::sig(
          "def elapsed_time(start: torch.Event, end: torch.Event) -> float"));
  m.def("stream_priority_range", [] { return translated(&priority_range); });
}

} // namespace openreg::aten
