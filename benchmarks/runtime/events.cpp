// SPDX-License-Identifier: BSD-3-Clause
// Events: record, wait on another stream, query.
#include "sections.h"

namespace bench {
namespace {

/// Returns a batch that calls `work(i)` many times and waits for the stream.
template <typename Work>
Batch repeat(
    const Library& library,
    Stream last,
    std::size_t count,
    Work work) {
  const auto synchronize = OPENREG_CALL(library, orStreamSynchronize);
  return [=]() -> Samples {
    const double time = time_of([&] {
      for (std::size_t i = 0; i < count; ++i) {
        work();
      }
      synchronize(last.get());
    });
    return {time / static_cast<double>(count)};
  };
}

} // namespace

void measure_events(Bench& bench) {
  bench.section("events");
  const std::size_t count = bench.some(10000, 100);
  bench.measure(
      {"record on an idle stream", "us", ""}, [=](const Library& library) {
        const auto record = OPENREG_CALL(library, orEventRecord);
        const auto stream = make_stream(library);
        const auto event = make_event(library);
        return repeat(
            library, stream, count, [=] { record(event.get(), stream.get()); });
      });
  bench.measure({"launch, record", "us", ""}, [=](const Library& library) {
    const Launcher launch(library);
    const auto record = OPENREG_CALL(library, orEventRecord);
    const auto stream = make_stream(library);
    const auto event = make_event(library);
    return repeat(library, stream, count, [=] {
      launch(stream.get());
      record(event.get(), stream.get());
    });
  });
  bench.measure(
      {"launch, record, wait and launch elsewhere", "us", ""},
      [=](const Library& library) {
        const Launcher launch(library);
        const auto record = OPENREG_CALL(library, orEventRecord);
        const auto wait = OPENREG_CALL(library, orStreamWaitEvent);
        const auto first = make_stream(library);
        const auto second = make_stream(library);
        const auto event = make_event(library);
        return repeat(library, second, count, [=] {
          launch(first.get());
          record(event.get(), first.get());
          wait(second.get(), event.get(), 0);
          launch(second.get());
        });
      });
  bench.measure(
      {"query a reached event", "us", ""}, [=](const Library& library) {
        const auto record = OPENREG_CALL(library, orEventRecord);
        const auto synchronize = OPENREG_CALL(library, orEventSynchronize);
        const auto query = OPENREG_CALL(library, orEventQuery);
        const auto stream = make_stream(library);
        const auto event = make_event(library);
        record(event.get(), stream.get());
        synchronize(event.get());
        return repeat(library, stream, count, [=] { query(event.get()); });
      });
}

} // namespace bench
