// SPDX-License-Identifier: BSD-3-Clause
// The time until a new process has a usable device of 64 GiB, and its resident
// memory, measured in processes without other work.
#include "sections.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace bench {
namespace {

constexpr std::size_t kFigures = 5;

std::size_t written(bool quick) {
  return quick ? 16 * kMiB : kGiB;
}

/// Returns the figures of a process that runs run_start_child().
std::vector<Samples> run_child(const Library& library, bool quick) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) {
    throw std::runtime_error("cannot create a pipe to the child process");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::array<std::string, 3> words{
      "runtime_benchmark", kStartChild, library.path()};
  std::vector<char*> arguments{words[0].data(), words[1].data()};
  arguments.push_back(words[2].data());
  std::string flag = "--quick";
  if (quick) {
    arguments.push_back(flag.data());
  }
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(
      &child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::vector<Samples> figures;
  FILE* file = fdopen(ends[0], "r");
  double value = 0;
  while (std::fscanf(file, "%lf", &value) == 1) {
    figures.push_back({value});
  }
  std::fclose(file);
  int status = 1;
  if (error != 0 || waitpid(child, &status, 0) != child || status != 0 ||
      figures.size() != kFigures) {
    throw std::runtime_error("the process that measures the start failed");
  }
  return figures;
}

} // namespace

int run_start_child(const char* path, bool quick) {
  setenv("OPENREG_DEVICE_MEMORY", "64GiB", 1);
  const std::size_t size = written(quick);
  const Library library("library", path);
  const std::vector<std::byte> host(kMiB);
  const auto malloc = OPENREG_CALL(library, orMalloc);
  const auto free = OPENREG_CALL(library, orFree);
  const auto copy = OPENREG_CALL(library, orMemcpy);
  std::array<double, kFigures> figures{};
  figures[1] = resident_mebibytes();
  void* pointer = nullptr;
  figures[0] = time_of([&] {
    if (library.find("orInit") != nullptr) {
      OPENREG_CALL(library, orInit)();
    }
    malloc(&pointer, size);
  });
  figures[0] /= 1000; // ms
  figures[2] = resident_mebibytes();
  for (std::size_t done = 0; done < size; done += host.size()) {
    copy(
        static_cast<std::byte*>(pointer) + done,
        host.data(),
        host.size(),
        orMemcpyHostToDevice);
  }
  figures[3] = resident_mebibytes();
  free(pointer);
  figures[4] = resident_mebibytes();
  for (const double figure : figures) {
    std::printf("%.6f\n", figure);
  }
  return 0;
}

void measure_start(Bench& bench) {
  bench.section("start with 64 GiB");
  bench.measure_together(
      {{"orInit + first orMalloc", "ms", "< 50"},
       {"resident before", "MiB", ""},
       {"resident after", "MiB", "as before"},
       {"resident with " + size_name(written(bench.quick())) + " written",
        "MiB",
        ""},
       {"resident after orFree", "MiB", "as before"}},
      [quick = bench.quick()](const Library& library) {
        return [=] { return run_child(library, quick); };
      });
}

} // namespace bench
