// SPDX-License-Identifier: BSD-3-Clause
// Tables and JSON.
#include "report.h"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <set>
#include <sstream>

namespace bench {
namespace {

using Line = std::vector<std::string>;

std::string number(double value) {
  std::ostringstream text;
  const double size = value < 0 ? -value : value;
  text << std::fixed
       << std::setprecision(
              size < 1          ? 3
                  : size < 10   ? 2
                  : size < 1000 ? 1
                                : 0)
       << value;
  return text.str();
}

/// "median (low to high)".
std::string spread(const std::optional<Summary>& values) {
  if (!values) {
    return "-";
  }
  return number(values->median) + " (" + number(values->low) + " to " +
      number(values->high) + ")";
}

/// Returns the lines of a section, whose rows all have the same contenders.
std::vector<Line> lines_of(const std::vector<const Row*>& rows) {
  const Row& first = *rows.front();
  std::vector<Line> lines{{first.section, "unit", first.results[0].name}};
  bool any_aim = false;
  for (const Row* row : rows) {
    any_aim = any_aim || !row->subject.aim.empty();
  }
  if (any_aim) {
    lines[0].push_back("aim");
  }
  for (std::size_t i = 1; i < first.results.size(); ++i) {
    lines[0].push_back(first.results[i].name);
    lines[0].push_back("x " + first.results[i].name);
  }
  for (const Row* row : rows) {
    Line line{
        row->subject.name, row->subject.unit, spread(row->results[0].values)};
    if (any_aim) {
      line.push_back(row->subject.aim);
    }
    for (std::size_t i = 1; i < row->results.size(); ++i) {
      line.push_back(spread(row->results[i].values));
      line.push_back(spread(row->results[i].ratio));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void print_lines(std::ostream& out, const std::vector<Line>& lines) {
  std::vector<std::size_t> widths(lines.front().size(), 0);
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  for (const Line& line : lines) {
    std::ostringstream text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      text << std::left << std::setw(static_cast<int>(widths[i]) + 2)
           << line[i];
    }
    std::string trimmed = text.str();
    trimmed.erase(trimmed.find_last_not_of(' ') + 1);
    out << trimmed << '\n';
  }
  out << '\n';
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result + '"';
}

void print_summary(
    std::ostream& out,
    const char* name,
    const std::optional<Summary>& values) {
  out << ", " << quoted(name) << ": ";
  if (!values) {
    out << "null";
    return;
  }
  out << "{\"low\": " << values->low << ", \"median\": " << values->median
      << ", \"high\": " << values->high << ", \"count\": " << values->count
      << '}';
}

} // namespace

void print_table(std::ostream& out, const std::vector<Row>& rows) {
  std::set<std::string> notes;
  for (auto row = rows.begin(); row != rows.end();) {
    std::vector<const Row*> section;
    const std::string& name = row->section;
    for (; row != rows.end() && row->section == name; ++row) {
      section.push_back(&*row);
      for (const Result& result : row->results) {
        if (!result.skipped.empty()) {
          notes.insert(name + ", " + row->subject.name + ": " + result.skipped);
        }
      }
    }
    print_lines(out, lines_of(section));
  }
  for (const std::string& note : notes) {
    out << "Left out: " << note << '\n';
  }
}

void print_json(std::ostream& out, const std::vector<Row>& rows) {
  out << "{\"rows\": [";
  const char* comma = "";
  for (const Row& row : rows) {
    for (const Result& result : row.results) {
      out << comma << "\n  {\"section\": " << quoted(row.section)
          << ", \"name\": " << quoted(row.subject.name)
          << ", \"unit\": " << quoted(row.subject.unit)
          << ", \"aim\": " << quoted(row.subject.aim)
          << ", \"contender\": " << quoted(result.name);
      print_summary(out, "values", result.values);
      print_summary(out, "ratio", result.ratio);
      out << ", \"skipped\": " << quoted(result.skipped) << '}';
      comma = ",";
    }
  }
  out << "\n]}\n";
}

} // namespace bench
