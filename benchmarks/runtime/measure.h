// SPDX-License-Identifier: BSD-3-Clause
// Measures the same work in several libraries, in turn.
#pragma once

#include "library.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;
using Samples = std::vector<double>;

inline double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// Runs `work` and returns its time in microseconds.
template <typename Work>
double time_of(Work&& work) {
  const auto start = Clock::now();
  work();
  return microseconds(Clock::now() - start);
}

struct Summary {
  double low = 0; // quartiles
  double median = 0;
  double high = 0;
  std::size_t count = 0;
};
Summary summarize(Samples samples);

/// The result of one contender of a row.
struct Result {
  std::string name;
  std::optional<Summary> values;
  /// The library's values divided by this contender's, batch by batch.
  std::optional<Summary> ratio;
  std::string skipped; // the reason why values are missing
};

/// The quantity that a row measures, and its target value.
struct Subject {
  std::string name;
  std::string unit;
  std::string aim;
};

struct Row {
  std::string section;
  Subject subject;
  std::vector<Result> results; // starts with the library
};

/// One batch of a contender: its samples, in the unit of the row.
using Batch = std::function<Samples()>;
using MakeBatch = std::function<Batch(const Library&)>;
/// A batch that measures several rows: returns the samples of each.
using Batches = std::function<std::vector<Samples>()>;
using MakeBatches = std::function<Batches(const Library&)>;

struct Contender {
  std::string name;
  Batches run;
  std::string skipped; // the reason why it does not run
};

class Bench {
 public:
  Bench(bool quick, Library library, std::optional<Library> peer);

  bool quick() const noexcept {
    return quick_;
  }
  /// Returns `full`, or `little` in a test run.
  std::size_t some(std::size_t full, std::size_t little) const noexcept {
    return quick_ ? little : full;
  }
  const std::vector<Row>& rows() const noexcept {
    return rows_;
  }

  void section(std::string name);
  /// Measures a row in rounds. The libraries and `other` take turns.
  void measure(
      Subject subject,
      const MakeBatch& make,
      const std::optional<std::pair<std::string, Batch>>& other = {});
  void measure_together(
      const std::vector<Subject>& subjects,
      const MakeBatches& make);

 private:
  std::vector<Contender> contenders(const MakeBatches& make) const;
  void run(
      const std::vector<Subject>& subjects,
      const std::vector<Contender>& contenders);

  bool quick_;
  std::vector<Library> libraries_;
  std::string section_;
  std::vector<Row> rows_;
};

/// Returns the resident memory of this process. Throws Missing.
double resident_mebibytes();

/// Returns a size as text, such as "4 KiB".
std::string size_name(std::size_t bytes);

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kGiB = 1024 * kMiB;

} // namespace bench
