// SPDX-License-Identifier: BSD-3-Clause
// The arguments and results of operators as bytes.
//
// Tensors and storages are written when they first appear, and by their number
// afterwards: who reads them gets the same identities. In a call, a storage is
// the address of device memory, or the bytes of the host. In a reply, the
// arguments have their numbers from the call, and a new storage is its size
// alone: its bytes wait with the writer until the reader has memory for them.
#pragma once

#include "codec/wire.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace openreg::aten::codec {

/// CPU tensors and storages by their numbers.
struct Numbered {
  std::vector<at::Tensor> tensors;
  std::vector<c10::Storage> storages;
};

enum class Direction : std::uint8_t { kCall, kReply };

class ValueWriter {
 public:
  ValueWriter(Writer& out, Direction direction, Numbered& numbered)
      : out_(out), direction_(direction), numbered_(numbered) {}

  /// Writes a value; false if it, or a part of it, has no encoding. The bytes
  /// are of no use then.
  bool write(const c10::IValue& value);

  /// Writes geometry, dtype, flags and storage of a strided CPU tensor.
  void write_strided(const c10::TensorImpl& tensor);

 private:
  bool write_tensor(const at::Tensor& tensor);
  bool write_list(const c10::IValue& value);
  void write_storage(const c10::Storage& storage);

  Writer& out_;
  Direction direction_;
  Numbered& numbered_;
};

/// A CPU storage for what a reader meets first.
struct StorageSource {
  /// Over device memory.
  std::function<
      c10::Storage(std::uint64_t address, std::size_t nbytes, bool resizable)>
      device;
  /// With a copy of these bytes.
  std::function<c10::Storage(ByteSpan bytes)> host;
  /// For so many bytes that come later.
  std::function<c10::Storage(std::size_t nbytes)> fresh;
};

class ValueReader {
 public:
  ValueReader(Reader& in, Numbered& numbered, const StorageSource& source)
      : in_(in), numbered_(numbered), source_(source) {}

  /// Throws Malformed.
  c10::IValue read() {
    return read_value(/*depth=*/0);
  }

  /// Gives a tensor what write_strided() wrote.
  void read_strided(c10::TensorImpl& tensor);

 private:
  c10::IValue read_value(int depth);
  c10::IValue read_list(int depth);
  at::Tensor read_tensor();
  at::Tensor read_new_tensor();
  c10::Storage read_storage();

  Reader& in_;
  Numbered& numbered_;
  const StorageSource& source_;
};

/// Throws Malformed unless all elements lie in a storage of `nbytes` bytes.
void check_extent(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    std::int64_t offset,
    std::size_t item,
    std::size_t nbytes);

/// A number that stands for a CPU generator while it lives, and the generator.
std::uint64_t number_of(const at::Generator& generator);
at::Generator find_generator(std::uint64_t number); // throws Malformed

/// The generators of a value that are to live until it is read.
void collect_generators(
    const c10::IValue& value,
    std::vector<at::Generator>& generators);

} // namespace openreg::aten::codec
