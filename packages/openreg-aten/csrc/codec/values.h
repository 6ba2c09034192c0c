// SPDX-License-Identifier: BSD-3-Clause
// Encodes the arguments and results of operators as bytes.
//
// The first occurrence of a tensor or storage is written in full, and later
// ones by number, so that the reader restores the same identities. In a call, a
// storage is an address in device memory, or the bytes of host memory. In a
// reply, arguments keep their numbers from the call, and a new storage is only
// its size: the writer keeps the bytes until the reader has allocated memory
// for them.
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

/// CPU tensors, storages and quantizers, indexed by number. A message must not
/// use the number of a null entry.
struct NumberedObjects {
  std::vector<at::Tensor> tensors;
  std::vector<c10::Storage> storages;
  std::vector<at::QuantizerPtr> quantizers;
  std::vector<SentGenerator> generators;
  c10::DeviceIndex device = -1; // of the kernel; only the host sets it
};

/// Whether no tensor is a tensor of zeros without data.
bool have_data(const NumberedObjects& objects);

enum class Direction : std::uint8_t { kCall, kReply };

class ValueWriter {
 public:
  ValueWriter(Writer& out, Direction direction, NumberedObjects& objects)
      : out_(out), direction_(direction), objects_(objects) {}

  /// Writes a value. Returns false if the value or a part of it cannot be
  /// encoded. The written bytes are then invalid.
  bool write(const c10::IValue& value);

  /// Writes what a kernel can change about a CPU tensor: geometry, dtype,
  /// flags, storage and quantizer, or its components. Returns false as write()
  /// does.
  bool write_metadata(const at::Tensor& tensor);

 private:
  bool write_tensor(const at::Tensor& tensor);
  bool write_composed(const at::Tensor& tensor);
  bool write_list(const c10::IValue& value);
  void write_storage(const c10::Storage& storage);
  bool write_quantizer(const at::QuantizerPtr& quantizer);

  Writer& out_;
  Direction direction_;
  NumberedObjects& objects_;
  PointerTable tensors_; // the index is the number
  PointerTable storages_;
  PointerTable quantizers_;
};

/// Creates CPU storages for the storages that a message contains.
struct StorageSource {
  /// Over device memory.
  std::function<
      c10::Storage(std::uint64_t address, std::size_t nbytes, bool resizable)>
      device;
  /// With a copy of these bytes.
  std::function<c10::Storage(ByteSpan bytes)> host;
  /// With `nbytes` bytes that are copied later.
  std::function<c10::Storage(std::size_t nbytes)> fresh;
  /// Without memory, for a tensor of zeros that would need `nbytes` bytes.
  std::function<c10::Storage(std::size_t nbytes)> without_memory;
};

/// Returns a host storage with a copy of `bytes`, from the default CPU
/// allocator of PyTorch.
c10::Storage make_host_storage(ByteSpan bytes);

class ValueReader {
 public:
  ValueReader(Reader& in, NumberedObjects& objects, const StorageSource& source)
      : in_(in), objects_(objects), source_(source) {}

  /// Throws Malformed.
  c10::IValue read() {
    return read_value(/*depth=*/0);
  }

  /// Assigns a tensor of the same dtype the metadata that write_metadata()
  /// wrote. Throws Malformed.
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
  NumberedObjects& objects_;
  const StorageSource& source_;
};

/// Throws Malformed unless the value is a PyTorch dtype.
c10::ScalarType read_dtype(Reader& in);

/// Throws Malformed unless a tensor can have these sizes.
std::vector<std::int64_t> read_sizes(Reader& in);

/// Whether a value has the type of an argument or result. A number that
/// represents a dtype or another enum must be in range. Tensor properties are
/// not checked.
bool is_of_type(const c10::IValue& value, const c10::Argument& argument);

} // namespace openreg::aten::codec
