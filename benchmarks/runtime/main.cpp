// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of C API calls, in one library or in two.
#include "report.h"
#include "sections.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>

namespace {

using namespace bench;

constexpr const char* kUsage =
    "usage: runtime_benchmark [options] [section...]\n"
    "\n"
    "Sections: launch, events, streams, malloc, copy, start (default: all).\n"
    "\n"
    "  --library FILE  the library to measure (default: the one built here)\n"
    "  --peer FILE     another library with the same API, measured in turn\n"
    "  --json FILE     also write the figures to this file\n"
    "  --quick         a test run that measures nothing\n";

struct Section {
  const char* name;
  void (*measure)(Bench&);
};

constexpr Section kSections[] = {
    {"launch", measure_launches},
    {"events", measure_events},
    {"streams", measure_streams},
    {"malloc", measure_allocations},
    {"copy", measure_copies},
    {"start", measure_start}};

struct Options {
  std::string library = OPENREG_BENCHMARK_LIBRARY;
  std::string peer;
  std::string json;
  bool quick = false;
  std::vector<Section> sections;
};

[[noreturn]] void end_with_usage(const std::string& error) {
  std::fprintf(stderr, "%s\n\n%s", error.c_str(), kUsage);
  std::exit(2);
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      if (i + 1 == count) {
        end_with_usage(word + " needs a value");
      }
      return std::string(words[++i]);
    };
    const auto* section = std::ranges::find_if(
        kSections, [&](const Section& one) { return word == one.name; });
    if (word == "--library") {
      options.library = value();
    } else if (word == "--peer") {
      options.peer = value();
    } else if (word == "--json") {
      options.json = value();
    } else if (word == "--quick") {
      options.quick = true;
    } else if (word == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else if (section != std::end(kSections)) {
      options.sections.push_back(*section);
    } else {
      end_with_usage("'" + word + "' is not an option or a section");
    }
  }
  if (options.sections.empty()) {
    options.sections.assign(std::begin(kSections), std::end(kSections));
  }
  return options;
}

/// Prints the number of processors and the load, which disturbs the figures.
void print_machine(const char* when) {
  double load = 0;
  getloadavg(&load, 1);
  std::cout << when << ": " << std::thread::hardware_concurrency()
            << " processors, load " << load << '\n';
}

int run(const Options& options) {
  setenv("OPENREG_ALLOW_COPIES", "1", 1); // before the first device starts
  Library library("openreg", options.library);
  std::optional<Library> peer;
  std::cout << "openreg: " << library.path() << '\n';
  if (!options.peer.empty()) {
    peer.emplace("peer", options.peer);
    std::cout << "peer: " << peer->path() << '\n';
  }
  print_machine("before");
  Bench bench(options.quick, std::move(library), std::move(peer));
  for (const Section& section : options.sections) {
    section.measure(bench);
  }
  print_machine("after");
  std::cout << '\n';
  print_table(std::cout, bench.rows());
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    print_json(file, bench.rows());
    if (!file.flush()) {
      throw std::runtime_error("cannot write " + options.json);
    }
  }
  return 0;
}

} // namespace

int main(int count, char** words) {
  try {
    if (count > 2 && std::strcmp(words[1], kStartChild) == 0) {
      return run_start_child(words[2], count > 3);
    }
    return run(parse(count, words));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "runtime_benchmark: %s\n", exception.what());
    return 1;
  }
}
