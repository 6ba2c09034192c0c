// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads message bytes in order. The reader checks every bound.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace openreg::aten::codec {

/// Thrown for an invalid message.
class Malformed : public std::runtime_error {
 public:
  explicit Malformed(const std::string& what)
      : std::runtime_error("malformed message: " + what) {}
};

using Bytes = std::vector<std::uint8_t>;
using ByteSpan = std::span<const std::uint8_t>;

class Writer {
 public:
  explicit Writer(Bytes& bytes) : bytes_(bytes) {}

  template <typename Value>
  void put(Value value) {
    static_assert(std::is_arithmetic_v<Value> || std::is_enum_v<Value>);
    put_raw(&value, sizeof(value));
  }
  void put_raw(const void* data, std::size_t size) {
    if (size > 0) {
      const auto* first = static_cast<const std::uint8_t*>(data);
      bytes_.insert(bytes_.end(), first, first + size);
    }
  }
  void put_count(std::size_t count) {
    if (count > std::numeric_limits<std::uint32_t>::max()) {
      throw std::length_error(
          "a message cannot hold " + std::to_string(count) +
          " elements: at most 2^32 - 1");
    }
    put(static_cast<std::uint32_t>(count));
  }
  void put_text(std::string_view text) {
    put_count(text.size());
    put_raw(text.data(), text.size());
  }
  template <typename Numbers>
  void put_numbers(const Numbers& numbers) {
    put_count(numbers.size());
    for (const auto number : numbers) {
      put(number);
    }
  }

 private:
  Bytes& bytes_;
};

/// Reads bytes, which must not change during the lifetime of the reader.
class Reader {
 public:
  explicit Reader(ByteSpan bytes) : rest_(bytes) {}

  template <typename Value>
  Value get() {
    static_assert(std::is_arithmetic_v<Value>);
    static_assert(!std::is_same_v<Value, bool>, "read a byte and check it");
    Value value{};
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  /// Reads a value of an enumeration whose last value is kLast.
  template <typename Enum>
  Enum get_enum() {
    const auto value = get<std::underlying_type_t<Enum>>();
    if (value > static_cast<std::underlying_type_t<Enum>>(Enum::kLast)) {
      throw Malformed("unknown tag " + std::to_string(value));
    }
    return static_cast<Enum>(value);
  }
  bool get_flag() {
    const auto value = get<std::uint8_t>();
    if (value > 1) {
      throw Malformed("expected a flag (0 or 1), got " + std::to_string(value));
    }
    return value == 1;
  }
  /// Reads a count of elements that take at least `size` bytes each.
  std::size_t get_count(std::size_t size = 1) {
    const auto count = get<std::uint32_t>();
    if (count > rest_.size() / size) {
      throw Malformed("a count of " + std::to_string(count) + " is too large");
    }
    return count;
  }
  ByteSpan take(std::size_t size) {
    if (size > rest_.size()) {
      throw Malformed(
          "the message is truncated: expected " + std::to_string(size) +
          " bytes, but " + std::to_string(rest_.size()) + " are left");
    }
    const ByteSpan taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::string get_text() {
    const ByteSpan text = take(get_count());
    return {text.begin(), text.end()};
  }
  template <typename Number>
  std::vector<Number> get_numbers() {
    std::vector<Number> numbers(get_count(sizeof(Number)));
    for (Number& number : numbers) {
      number = get<Number>();
    }
    return numbers;
  }
  bool at_end() const {
    return rest_.empty();
  }
  void expect_end() const {
    if (!rest_.empty()) {
      throw Malformed(
          "the message has " + std::to_string(rest_.size()) +
          " unexpected bytes at its end");
    }
  }

 private:
  ByteSpan rest_;
};

} // namespace openreg::aten::codec
