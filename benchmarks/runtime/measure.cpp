// SPDX-License-Identifier: BSD-3-Clause
// Rounds of batches, and statistics of their samples.
#include "measure.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <ranges>
#include <utility>

namespace bench {
namespace {

constexpr std::size_t kRounds = 31;
constexpr std::size_t kFewestRounds = 7;
constexpr double kMostMicroseconds = 2e6; // then stops at kFewestRounds

double quantile(const Samples& sorted, double part) {
  const double where = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(where);
  const auto above = std::min(below + 1, sorted.size() - 1);
  const double weight = where - static_cast<double>(below);
  return sorted[below] * (1 - weight) + sorted[above] * weight;
}

/// Returns no value if a round has no ratio.
std::optional<Summary> ratio_of(const Samples& ours, const Samples& theirs) {
  Samples ratios;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i] == 0) {
      return std::nullopt;
    }
    ratios.push_back(ours[i] / theirs[i]);
  }
  return summarize(std::move(ratios));
}

/// The values of one contender in one row.
struct Values {
  Samples all;
  Samples medians; // one per round
};

/// The values of all contenders in one row.
std::vector<Result> results_of(
    const std::vector<Contender>& contenders,
    const std::vector<std::vector<Values>>& values,
    std::size_t row) {
  std::vector<Result> results;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Result result{
        contenders[i].name, std::nullopt, std::nullopt, contenders[i].skipped};
    if (contenders[i].run) {
      result.values = summarize(values[i][row].all);
      if (i > 0 && contenders.front().run) {
        result.ratio = ratio_of(values[0][row].medians, values[i][row].medians);
      }
    }
    results.push_back(std::move(result));
  }
  return results;
}

Batches one_row(Batch batch) {
  return [batch = std::move(batch)] { return std::vector<Samples>{batch()}; };
}

} // namespace

Summary summarize(Samples samples) {
  std::ranges::sort(samples);
  return {
      quantile(samples, 0.25),
      quantile(samples, 0.5),
      quantile(samples, 0.75),
      samples.size()};
}

Bench::Bench(bool quick, Library library, std::optional<Library> peer)
    : quick_(quick), libraries_{std::move(library)} {
  if (peer) {
    libraries_.push_back(std::move(*peer));
  }
}

void Bench::section(std::string name) {
  section_ = std::move(name);
}

std::vector<Contender> Bench::contenders(const MakeBatches& make) const {
  std::vector<Contender> result;
  for (const Library& library : libraries_) {
    try {
      result.push_back({library.name(), make(library), ""});
    } catch (const Missing& missing) {
      result.push_back({library.name(), nullptr, missing.what()});
    }
  }
  return result;
}

void Bench::measure(
    Subject subject,
    const MakeBatch& make,
    const std::optional<std::pair<std::string, Batch>>& other) {
  std::vector<Contender> all = contenders(
      [&make](const Library& library) { return one_row(make(library)); });
  if (other) {
    all.push_back({other->first, one_row(other->second), ""});
  }
  run({std::move(subject)}, all);
}

void Bench::measure_together(
    const std::vector<Subject>& subjects,
    const MakeBatches& make) {
  run(subjects, contenders(make));
}

void Bench::run(
    const std::vector<Subject>& subjects,
    const std::vector<Contender>& contenders) {
  for (const Subject& subject : subjects) {
    std::fprintf(stderr, "%s: %s\n", section_.c_str(), subject.name.c_str());
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (contenders[i].run) {
      order.push_back(i);
      if (!quick_) {
        static_cast<void>(contenders[i].run()); // warm
      }
    }
  }
  std::vector values(contenders.size(), std::vector<Values>(subjects.size()));
  const auto start = Clock::now();
  for (std::size_t round = 0; round < some(kRounds, 1); ++round) {
    if (round >= kFewestRounds &&
        microseconds(Clock::now() - start) > kMostMicroseconds) {
      break;
    }
    for (const std::size_t i : order) {
      const std::vector<Samples> batch = contenders[i].run();
      for (std::size_t row = 0; row < subjects.size(); ++row) {
        Values& of_row = values[i][row];
        of_row.all.insert(
            of_row.all.end(), batch[row].begin(), batch[row].end());
        of_row.medians.push_back(summarize(batch[row]).median);
      }
    }
    std::ranges::reverse(order); // alternates who goes first
  }
  for (std::size_t row = 0; row < subjects.size(); ++row) {
    rows_.push_back(
        {section_, subjects[row], results_of(contenders, values, row)});
  }
}

double resident_mebibytes() {
  // Counts all mappings, because device memory is shared memory.
  const char* path = "/proc/self/smaps_rollup";
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (word == "Rss:") {
      double kibibytes = 0;
      file >> kibibytes;
      return kibibytes / static_cast<double>(kKiB);
    }
  }
  throw Missing(std::string("this system has no ") + path);
}

std::string size_name(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (bytes >= kKiB && unit < 3) {
    bytes /= kKiB;
    ++unit;
  }
  return std::to_string(bytes) + " " + kUnits[unit];
}

} // namespace bench
