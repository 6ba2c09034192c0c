// SPDX-License-Identifier: BSD-3-Clause
// Empty kernels: in sequence, with a wait after each, and on many streams.
#include "sections.h"

#include <barrier>
#include <thread>

namespace bench {
namespace {

// Long enough for an idle worker to fall asleep.
constexpr std::chrono::milliseconds kNap{1};

Batch pipelined(const Library& library, std::size_t count) {
  const Launcher launch(library);
  const auto synchronize = OPENREG_CALL(library, orStreamSynchronize);
  const auto stream = make_stream(library);
  return [=]() -> Samples {
    const double time = time_of([&] {
      for (std::size_t i = 0; i < count; ++i) {
        launch(stream.get());
      }
      synchronize(stream.get());
    });
    return {time / static_cast<double>(count)};
  };
}

Batch round_trips(const Library& library, std::size_t count, bool asleep) {
  const Launcher launch(library);
  const auto synchronize = OPENREG_CALL(library, orStreamSynchronize);
  const auto stream = make_stream(library);
  return [=] {
    Samples samples;
    for (std::size_t i = 0; i < count; ++i) {
      if (asleep) {
        std::this_thread::sleep_for(kNap);
      }
      samples.push_back(time_of([&] {
        launch(stream.get());
        synchronize(stream.get());
      }));
    }
    return samples;
  };
}

Batch calls_to_a_sleeper(const Library& library, std::size_t count) {
  const Launcher launch(library);
  const auto synchronize = OPENREG_CALL(library, orStreamSynchronize);
  const auto stream = make_stream(library);
  return [=] {
    Samples samples;
    for (std::size_t i = 0; i < count; ++i) {
      std::this_thread::sleep_for(kNap);
      samples.push_back(time_of([&] { launch(stream.get()); }));
      synchronize(stream.get());
    }
    return samples;
  };
}

std::vector<Stream> make_streams(const Library& library, std::size_t count) {
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < count; ++i) {
    streams.push_back(make_stream(library));
  }
  return streams;
}

/// Millions of launches per second.
double rate(std::size_t launches, double time) {
  return static_cast<double>(launches) / time;
}

Batch from_one_thread(
    const Library& library,
    std::size_t stream_count,
    std::size_t launches) {
  const Launcher launch(library);
  const auto synchronize = OPENREG_CALL(library, orStreamSynchronize);
  const auto streams = make_streams(library, stream_count);
  return [=]() -> Samples {
    const double time = time_of([&] {
      for (std::size_t i = 0; i < launches; i += stream_count) {
        for (const Stream& stream : streams) {
          launch(stream.get());
        }
      }
      for (const Stream& stream : streams) {
        synchronize(stream.get());
      }
    });
    return {rate(launches, time)};
  };
}

Batch from_a_thread_each(
    const Library& library,
    std::size_t stream_count,
    std::size_t launches) {
  const Launcher launch(library);
  const auto synchronize = OPENREG_CALL(library, orStreamSynchronize);
  const auto streams = make_streams(library, stream_count);
  return [=]() -> Samples {
    // The last thread to arrive records the time, so that the interval
    // excludes thread creation and covers all launches.
    std::vector<Clock::time_point> times;
    times.reserve(2);
    std::barrier gate(
        static_cast<std::ptrdiff_t>(stream_count),
        [&times]() noexcept { times.push_back(Clock::now()); });
    {
      std::vector<std::jthread> threads;
      for (const Stream& stream : streams) {
        threads.emplace_back([&] {
          gate.arrive_and_wait();
          for (std::size_t i = 0; i < launches / stream_count; ++i) {
            launch(stream.get());
          }
          synchronize(stream.get());
          gate.arrive_and_wait();
        });
      }
    }
    return {rate(launches, microseconds(times[1] - times[0]))};
  };
}

} // namespace

void measure_launches(Bench& bench) {
  bench.section("launch");
  const std::size_t many = bench.some(20000, 200);
  const std::size_t few = bench.some(500, 10);
  const std::size_t naps = bench.some(30, 2);
  bench.measure(
      {"launch, pipelined", "us", "<= 0.5"},
      [=](const Library& library) { return pipelined(library, many); });
  bench.measure(
      {"launch + synchronize", "us", "<= 6"},
      [=](const Library& library) { return round_trips(library, few, false); });
  bench.measure(
      {"launch + synchronize after 1 ms idle", "us", ""},
      [=](const Library& library) { return round_trips(library, naps, true); });
  bench.measure(
      {"launch after 1 ms idle, the call", "us", ""},
      [=](const Library& library) {
        return calls_to_a_sleeper(library, naps);
      });
}

void measure_streams(Bench& bench) {
  bench.section("streams");
  const std::size_t launches = bench.some(32000, 160);
  for (const std::size_t count : {1, 2, 4, 8, 16}) {
    const std::string streams =
        std::to_string(count) + (count == 1 ? " stream" : " streams");
    bench.measure(
        {streams + ", one thread", "M/s", ""}, [=](const Library& library) {
          return from_one_thread(library, count, launches);
        });
    bench.measure(
        {streams + ", a thread each", "M/s", ""}, [=](const Library& library) {
          return from_a_thread_each(library, count, launches);
        });
  }
}

} // namespace bench
