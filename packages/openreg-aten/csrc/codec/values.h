// SPDX-License-Identifier: BSD-3-Clause
// The arguments and results of operators as bytes.
//
// Tensors and storages are written when they first appear, and by their number
// afterwards: who reads them gets the same identities. In a call, a storage is
// the address of device memory, or the bytes of the host. In a reply, the
// arguments have their numbers from the call, and a new storage is its size
// alone: its bytes wait with the writer until the reader has memory for them.
#pragma once

#include "base/pointer_table.h"
#include "codec/generators.h"
#include "codec/wire.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/quantized/Quantizer.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace openreg::aten::codec {

/// CPU tensors, storages and quantizers by their numbers. Null ones have a
/// number that no message may name.
struct Numbered {
  std::vector<at::Tensor> tensors;
  std::vector<c10::Storage> storages;
  std::vector<at::QuantizerPtr> quantizers;
  std::vector<SentGenerator> generators;
  c10::DeviceIndex device = -1; // whose kernel takes them; known to the host
};

/// Whether none is a tensor of zeros without data.
bool have_data(const Numbered& numbered);

enum class Direction : std::uint8_t { kCall, kReply };

class ValueWriter {
 public:
  ValueWriter(Writer& out, Direction direction, Numbered& numbered)
      : out_(out), direction_(direction), numbered_(numbered) {}

  /// Writes a value; false if it, or a part of it, has no encoding. The bytes
  /// are of no use then.
  bool write(const c10::IValue& value);

  /// Writes what a kernel can change of a CPU tensor: geometry, dtype, flags,
  /// storage and quantizer, or its components. False as write().
  bool write_metadata(const at::Tensor& tensor);

 private:
  bool write_tensor(const at::Tensor& tensor);
  bool write_composed(const at::Tensor& tensor);
  bool write_list(const c10::IValue& value);
  void write_storage(const c10::Storage& storage);
  bool write_quantizer(const at::QuantizerPtr& quantizer);

  Writer& out_;
  Direction direction_;
  Numbered& numbered_;
  PointerTable tensors_; // their numbers
  PointerTable storages_;
  PointerTable quantizers_;
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
  /// Without memory, for a tensor of zeros that has so many bytes.
  std::function<c10::Storage(std::size_t nbytes)> nowhere;
};

/// A storage of the host's with a copy of `bytes`, from the CPU's allocator of
/// this process, whoever stands in front of it.
c10::Storage make_host_storage(ByteSpan bytes);

class ValueReader {
 public:
  ValueReader(Reader& in, Numbered& numbered, const StorageSource& source)
      : in_(in), numbered_(numbered), source_(source) {}

  /// Throws Malformed.
  c10::IValue read() {
    return read_value(/*depth=*/0);
  }

  /// Gives a tensor of the same dtype what write_metadata() wrote. Throws
  /// Malformed.
  void read_metadata(const at::Tensor& tensor);

 private:
  c10::IValue read_value(int depth);
  c10::IValue read_list(int depth);
  at::Tensor read_tensor();
  at::Tensor read_plain(at::Tensor&& tensor);
  void read_strided(const at::Tensor& tensor);
  at::Tensor read_sparse();
  at::Tensor read_compressed();
  at::Tensor read_nested();
  at::Tensor read_composed();
  c10::Storage read_storage();
  at::QuantizerPtr read_quantizer();

  Reader& in_;
  Numbered& numbered_;
  const StorageSource& source_;
};

/// Throws Malformed unless it is a dtype of PyTorch's.
c10::ScalarType read_dtype(Reader& in);

/// Throws Malformed unless a tensor can have these sizes.
std::vector<std::int64_t> read_sizes(Reader& in);

/// Whether a value is of the type of an argument or result, and a number that
/// stands for a dtype and the like is one. Tensors are not looked at.
bool is_of_type(const c10::IValue& value, const c10::Argument& argument);

} // namespace openreg::aten::codec
