// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes values, and checks everything it reads.
#include "codec/values.h"

#include "codec/components.h"
#include "codec/extent.h"
#include "codec/generators.h"
#include "device/device.h"

#include <ATen/core/jit_type.h>
#include <ATen/quantized/QTensorImpl.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

namespace openreg::aten::codec {
namespace {

enum class Tag : std::uint8_t {
  kNone,
  kTensor,
  kInt,
  kDouble,
  kBool,
  kComplex,
  kText,
  kDevice,
  kGenerator,
  kList,
  kUnsigned, // above the range of int64
  kLast = kUnsigned,
};

enum class TensorTag : std::uint8_t {
  kUndefined,
  kKnown,
  kNew,
  kQuantized,
  kZero, // zeros without data
  kComposed,
  kLast = kComposed,
};

enum class StorageTag : std::uint8_t {
  kKnown,
  kDevice,
  kHost,
  kFresh,
  kWithoutMemory,
  kLast = kWithoutMemory,
};

enum class QuantizerTag : std::uint8_t {
  kKnown,
  kTensor,
  kChannels,
  kChannelsFloat,
  kLast = kChannelsFloat,
};

enum class ElementTag : std::uint8_t {
  kTensor,
  kOptionalTensor,
  kInt,
  kDouble,
  kBool,
  kComplex,
  kNumber,
  kText,
  kLast = kText,
};

enum Flag : std::uint8_t {
  kConj = 1,
  kNeg = 2,
  kWrapped = 4,
  kRequiresGrad = 8,
  kAllFlags = 15,
};

// PyTorch has no limit. Many operators accept at most 64 dimensions and raise
// an error otherwise.
constexpr std::size_t kMaxDimensions = 4096;
// Operators with plain types have no arguments of type list of lists.
constexpr int kMaxDepth = 2;

c10::TypePtr type_of(ElementTag tag) {
  switch (tag) {
    case ElementTag::kTensor:
      return c10::TensorType::get();
    case ElementTag::kOptionalTensor:
      return c10::OptionalType::ofTensor();
    case ElementTag::kInt:
      return c10::IntType::get();
    case ElementTag::kDouble:
      return c10::FloatType::get();
    case ElementTag::kBool:
      return c10::BoolType::get();
    case ElementTag::kComplex:
      return c10::ComplexType::get();
    case ElementTag::kNumber:
      return c10::NumberType::get();
    case ElementTag::kText:
      return c10::StringType::get();
  }
  throw Malformed("unknown element type");
}

/// Returns the tag of the elements of a list, or none.
std::optional<ElementTag> tag_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return ElementTag::kTensor;
    case c10::TypeKind::OptionalType:
      return *type.containedType(0) == *c10::TensorType::get()
          ? std::optional(ElementTag::kOptionalTensor)
          : std::nullopt;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return ElementTag::kInt;
    case c10::TypeKind::FloatType:
      return ElementTag::kDouble;
    case c10::TypeKind::BoolType:
      return ElementTag::kBool;
    case c10::TypeKind::ComplexType:
      return ElementTag::kComplex;
    case c10::TypeKind::NumberType:
      return ElementTag::kNumber;
    case c10::TypeKind::StringType:
      return ElementTag::kText;
    default:
      return std::nullopt;
  }
}

/// Whether a value has a type. Tensor properties are not checked.
bool has_type(const c10::IValue& value, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return value.isNone() || has_type(value, *type.containedType(0));
    case c10::TypeKind::TensorType:
      return value.isTensor();
    case c10::TypeKind::NumberType:
      return value.isScalar() || value.isUnsigned();
    case c10::TypeKind::ListType:
      return value.isList() &&
          *value.toList().elementType() == *type.containedType(0);
    default:
      return !value.isTensor() && value.type()->isSubtypeOf(type);
  }
}

/// Whether a number that represents a dtype or another enum is in range.
bool is_in_range(const c10::IValue& value, const c10::Type& type) {
  const auto below = [&](std::int64_t end) {
    return value.isInt() && value.toInt() >= 0 && value.toInt() < end;
  };
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return value.isNone() || is_in_range(value, *type.containedType(0));
    case c10::TypeKind::ScalarTypeType:
      return below(static_cast<std::int64_t>(c10::ScalarType::NumOptions)) &&
          value.toScalarType() != c10::ScalarType::Undefined;
    case c10::TypeKind::LayoutType:
      return below(static_cast<std::int64_t>(c10::Layout::NumOptions));
    case c10::TypeKind::MemoryFormatType:
      return below(static_cast<std::int64_t>(c10::MemoryFormat::NumOptions));
    default:
      return true;
  }
}

/// Whether a list of bools, which kernels read as an array, has the declared
/// length. Other lists may be shorter, because kernels expand them.
bool has_length(const c10::IValue& value, const c10::Argument& argument) {
  return !argument.N() || !value.isBoolList() ||
      value.toBoolList().size() == static_cast<std::size_t>(*argument.N());
}

/// Whether a tensor is dense and strided, and has no state besides its
/// geometry, dtype and flags.
bool is_plain(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kPlain =
      c10::DispatchKeySet(
          {c10::DispatchKey::CPU,
           c10::DispatchKey::Conjugate,
           c10::DispatchKey::Negative,
           c10::DispatchKey::Quantized,
           c10::DispatchKey::ZeroTensor,
           c10::DispatchKey::ADInplaceOrView}) |
      c10::DispatchKeySet(c10::DispatchKey::AutogradCPU) |
      c10::DispatchKeySet(c10::DispatchKey::AutocastCPU);
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return tensor.device().is_cpu() && tensor.layout() == c10::kStrided &&
      tensor.has_storage() && !impl.has_symbolic_sizes_strides() &&
      (impl.key_set().raw_repr() & ~kPlain.raw_repr()) == 0;
}

at::QTensorImpl& as_quantized(const at::Tensor& tensor) {
  return static_cast<at::QTensorImpl&>(*tensor.unsafeGetTensorImpl());
}

at::Tensor make_plain(c10::DispatchKeySet keys) {
  return at::detail::make_tensor<c10::TensorImpl>(
      keys, caffe2::TypeMeta::Make<float>(), c10::Device(c10::kCPU));
}

at::Tensor make_quantized() {
  return at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(
          c10::make_intrusive<c10::StorageImpl>(
              c10::StorageImpl::use_byte_size_t(),
              0,
              c10::DataPtr(nullptr, c10::Device(c10::kCPU)),
              /*allocator=*/nullptr,
              /*resizable=*/false)),
      c10::DispatchKeySet(c10::DispatchKey::QuantizedCPU),
      caffe2::TypeMeta::Make<c10::qint8>(),
      /*quantizer=*/nullptr);
}

/// Whether a quantizer has a scale and a zero point per channel, stored
/// contiguously. Kernels read them without checking their number and strides. A
/// slice of a tensor may have more.
bool has_channels(const at::Quantizer& quantizer, at::IntArrayRef sizes) {
  const auto* channels =
      dynamic_cast<const at::PerChannelAffineQuantizer*>(&quantizer);
  if (channels == nullptr) {
    return true;
  }
  const std::int64_t axis = channels->axis();
  if (axis < 0 || axis >= static_cast<std::int64_t>(sizes.size())) {
    return false;
  }
  const auto fits = [&](const at::Tensor& each) {
    return is_component(each) && each.dim() == 1 && each.is_contiguous() &&
        (each.is_floating_point() || each.scalar_type() == at::kLong) &&
        each.numel() >= sizes[static_cast<std::size_t>(axis)];
  };
  return fits(channels->scales()) && fits(channels->zero_points());
}

std::uint8_t flags_of(const c10::TensorImpl& tensor) {
  return static_cast<std::uint8_t>(
      (tensor.is_conj() ? kConj : 0) | (tensor.is_neg() ? kNeg : 0) |
      (tensor.is_wrapped_number() ? kWrapped : 0) |
      (tensor.requires_grad() ? kRequiresGrad : 0));
}

const void* impl_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl();
}
const void* impl_of_quantizer(const at::QuantizerPtr& quantizer) {
  return quantizer.get();
}
const void* impl_of_storage(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl();
}

bool exists(const at::Tensor& tensor) {
  return tensor.defined();
}
bool exists(const c10::Storage& storage) {
  return static_cast<bool>(storage);
}
bool exists(const at::QuantizerPtr& quantizer) {
  return quantizer != nullptr;
}

template <typename Known>
const Known& object_at(
    const std::vector<Known>& known,
    std::uint32_t number,
    const char* if_null =
        "the message names an object that only the host has") {
  if (number >= known.size()) {
    throw Malformed(
        "unknown tensor, storage or quantizer number " +
        std::to_string(number));
  }
  if (!exists(known[number])) {
    throw Malformed(if_null);
  }
  return known[number];
}

} // namespace

bool have_data(const NumberedObjects& objects) {
  return std::none_of(
      objects.tensors.begin(),
      objects.tensors.end(),
      [](const at::Tensor& tensor) { return tensor._is_zerotensor(); });
}

c10::Storage make_host_storage(ByteSpan bytes) {
  c10::Allocator& allocator = *c10::GetDefaultCPUAllocator();
  c10::DataPtr data = allocator.allocate(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(data.get(), bytes.data(), bytes.size());
  }
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      bytes.size(),
      std::move(data),
      &allocator,
      /*resizable=*/true);
}

bool is_of_type(const c10::IValue& value, const c10::Argument& argument) {
  return has_type(value, *argument.type()) &&
      is_in_range(value, *argument.real_type()) && has_length(value, argument);
}

c10::ScalarType read_dtype(Reader& in) {
  const auto dtype = static_cast<c10::ScalarType>(in.get<std::int8_t>());
  if (dtype < c10::ScalarType::Byte || dtype >= c10::ScalarType::NumOptions ||
      dtype == c10::ScalarType::Undefined) {
    throw Malformed("unknown tensor dtype");
  }
  return dtype;
}

std::vector<std::int64_t> read_sizes(Reader& in) {
  auto sizes = in.get_numbers<std::int64_t>();
  if (sizes.size() > kMaxDimensions) {
    throw Malformed(
        "a tensor has too many dimensions: " + std::to_string(sizes.size()) +
        ", expected at most " + std::to_string(kMaxDimensions));
  }
  // As if it had one element, because the storage is still unknown.
  const std::vector<std::int64_t> strides(sizes.size(), 0);
  check_extent(sizes, strides, /*offset=*/0, /*item=*/1, /*nbytes=*/1);
  return sizes;
}

namespace {

bool is_without_memory(const c10::Storage& storage) {
  return storage.data() == nullptr && storage.nbytes() > 0;
}

/// Whether a host tensor is only a part of its storage. The rest of the storage
/// is not sent.
bool is_part_of_host_storage(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  return storage.data() != nullptr && to_device(storage.data()) == nullptr &&
      storage.nbytes() != tensor.nbytes();
}

} // namespace

// ---- writing ----------------------------------------------------------------

bool ValueWriter::write(const c10::IValue& value) {
  if (value.isNone()) {
    out_.put(Tag::kNone);
  } else if (value.isTensor()) {
    out_.put(Tag::kTensor);
    return write_tensor(value.toTensor());
  } else if (value.isInt()) {
    out_.put(Tag::kInt);
    out_.put(value.toInt());
  } else if (value.isUnsigned()) {
    out_.put(Tag::kUnsigned);
    out_.put(value.toUInt());
  } else if (value.isDouble()) {
    out_.put(Tag::kDouble);
    out_.put(value.toDouble());
  } else if (value.isBool()) {
    out_.put(Tag::kBool);
    out_.put(static_cast<std::uint8_t>(value.toBool()));
  } else if (value.isComplexDouble()) {
    out_.put(Tag::kComplex);
    out_.put(value.toComplexDouble().real());
    out_.put(value.toComplexDouble().imag());
  } else if (value.isString()) {
    out_.put(Tag::kText);
    out_.put_text(value.toStringRef());
  } else if (value.isDevice()) {
    // The CPU kernel of a call needs no device index.
    out_.put(Tag::kDevice);
    return value.toDevice().is_cpu();
  } else if (value.isGenerator()) {
    out_.put(Tag::kGenerator);
    write_generator(
        out_, value.toGenerator(), objects_.device, objects_.generators);
  } else if (value.isList()) {
    return write_list(value);
  } else {
    return false;
  }
  return true;
}

bool ValueWriter::write_list(const c10::IValue& value) {
  const c10::List<c10::IValue> list = value.toList();
  const auto tag = tag_of(*list.elementType());
  if (!tag) {
    return false;
  }
  out_.put(Tag::kList);
  out_.put(*tag);
  out_.put_count(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!write(list.get(i))) {
      return false;
    }
  }
  return true;
}

bool ValueWriter::write_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    out_.put(TensorTag::kUndefined);
    return true;
  }
  if (const auto number =
          tensors_.find(objects_.tensors, impl_of(tensor), &impl_of)) {
    out_.put(TensorTag::kKnown);
    out_.put(static_cast<std::uint32_t>(*number));
    return true;
  }
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (has_components(impl)) {
    out_.put(TensorTag::kComposed);
    if (!tensor.device().is_cpu() || !write_composed(tensor)) {
      return false;
    }
    objects_.tensors.push_back(tensor); // after its components
    return true;
  }
  if (!is_plain(tensor) || !lies_in_storage(impl) ||
      (is_without_memory(impl.storage()) && !impl._is_zerotensor())) {
    return false;
  }
  out_.put(
      tensor.is_quantized()       ? TensorTag::kQuantized
          : impl._is_zerotensor() ? TensorTag::kZero
                                  : TensorTag::kNew);
  objects_.tensors.push_back(tensor);
  if (direction_ == Direction::kCall && is_part_of_host_storage(tensor)) {
    const at::Tensor part = tensor.clone();
    if (impl.is_wrapped_number()) {
      part.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return write_metadata(part);
  }
  return write_metadata(tensor);
}

bool ValueWriter::write_metadata(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (has_components(impl)) {
    return write_composed(tensor);
  }
  out_.put(flags_of(impl));
  out_.put(c10::typeMetaToScalarType(impl.dtype()));
  out_.put_numbers(impl.sizes());
  out_.put_numbers(impl.strides());
  out_.put(impl.storage_offset());
  write_storage(impl.storage());
  if (!tensor.is_quantized()) {
    return true;
  }
  const at::QuantizerPtr quantizer = as_quantized(tensor).quantizer();
  return has_channels(*quantizer, impl.sizes()) && write_quantizer(quantizer);
}

bool ValueWriter::write_quantizer(const at::QuantizerPtr& quantizer) {
  if (const auto number = quantizers_.find(
          objects_.quantizers, quantizer.get(), &impl_of_quantizer)) {
    out_.put(QuantizerTag::kKnown);
    out_.put(static_cast<std::uint32_t>(*number));
    return true;
  }
  objects_.quantizers.push_back(quantizer);
  if (const auto* whole =
          dynamic_cast<const at::PerTensorAffineQuantizer*>(quantizer.get())) {
    out_.put(QuantizerTag::kTensor);
    out_.put(whole->scalar_type());
    out_.put(whole->scale());
    out_.put(whole->zero_point());
    return true;
  }
  const auto* channels =
      dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get());
  if (channels == nullptr) {
    return false;
  }
  out_.put(
      channels->qscheme() == at::kPerChannelAffineFloatQParams
          ? QuantizerTag::kChannelsFloat
          : QuantizerTag::kChannels);
  out_.put(channels->scalar_type());
  out_.put(channels->axis());
  return write_tensor(channels->scales()) &&
      write_tensor(channels->zero_points());
}

void ValueWriter::write_storage(const c10::Storage& storage) {
  if (const auto number = storages_.find(
          objects_.storages, impl_of_storage(storage), &impl_of_storage)) {
    out_.put(StorageTag::kKnown);
    out_.put(static_cast<std::uint32_t>(*number));
    return;
  }
  objects_.storages.push_back(storage);
  const c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
  if (is_without_memory(storage)) {
    out_.put(StorageTag::kWithoutMemory);
    out_.put(static_cast<std::uint64_t>(impl.nbytes()));
    return;
  }
  if (direction_ == Direction::kReply) {
    out_.put(StorageTag::kFresh);
    out_.put(static_cast<std::uint64_t>(impl.nbytes()));
    return;
  }
  const void* address = to_device(impl.data());
  if (address != nullptr || impl.data() == nullptr) {
    out_.put(StorageTag::kDevice);
    out_.put(
        static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)));
    out_.put(static_cast<std::uint64_t>(impl.nbytes()));
    out_.put(static_cast<std::uint8_t>(impl.resizable()));
    return;
  }
  out_.put(StorageTag::kHost);
  out_.put(static_cast<std::uint64_t>(impl.nbytes()));
  out_.put_raw(impl.data(), impl.nbytes());
}

// ---- reading ----------------------------------------------------------------

c10::IValue ValueReader::read_value(int depth) {
  switch (in_.get_enum<Tag>()) {
    case Tag::kNone:
      return {};
    case Tag::kTensor:
      return read_tensor();
    case Tag::kInt:
      return in_.get<std::int64_t>();
    case Tag::kDouble:
      return in_.get<double>();
    case Tag::kUnsigned: {
      const auto number = in_.get<std::uint64_t>();
      if (number <= std::numeric_limits<std::int64_t>::max()) {
        throw Malformed(
            "an integer that fits a signed type is encoded as unsigned");
      }
      return c10::IValue(c10::Scalar(number));
    }
    case Tag::kBool:
      return in_.get_flag();
    case Tag::kComplex: {
      const auto real = in_.get<double>();
      return c10::complex<double>(real, in_.get<double>());
    }
    case Tag::kText:
      return in_.get_text();
    case Tag::kDevice:
      return c10::Device(c10::kCPU);
    case Tag::kGenerator:
      return read_generator(in_);
    case Tag::kList:
      return read_list(depth + 1);
  }
  throw Malformed("unknown tag");
}

c10::IValue ValueReader::read_list(int depth) {
  if (depth > kMaxDepth) {
    throw Malformed("lists are nested too deeply");
  }
  const c10::TypePtr type = type_of(in_.get_enum<ElementTag>());
  const std::size_t count = in_.get_count();
  std::vector<c10::IValue> elements;
  elements.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    elements.push_back(read_value(depth));
    if (!has_type(elements.back(), *type)) {
      throw Malformed("an element does not have the type of its list");
    }
  }
  c10::impl::GenericList list(type);
  list.reserve(count);
  for (c10::IValue& element : elements) {
    list.push_back(std::move(element));
  }
  return list;
}

at::Tensor ValueReader::read_tensor() {
  switch (in_.get_enum<TensorTag>()) {
    case TensorTag::kUndefined:
      return {};
    case TensorTag::kKnown:
      return object_at(objects_.tensors, in_.get<std::uint32_t>());
    case TensorTag::kNew:
      return read_plain(make_plain(c10::DispatchKeySet(c10::DispatchKey::CPU)));
    case TensorTag::kQuantized:
      return read_plain(make_quantized());
    case TensorTag::kZero:
      return read_plain(make_plain(
          c10::DispatchKeySet(
              {c10::DispatchKey::CPU, c10::DispatchKey::ZeroTensor})));
    case TensorTag::kComposed: {
      at::Tensor tensor = read_composed();
      objects_.tensors.push_back(tensor);
      return tensor;
    }
  }
  throw Malformed("unknown tensor tag");
}

at::Tensor ValueReader::read_plain(at::Tensor&& tensor) {
  // Before the tensors of its quantizer.
  objects_.tensors.push_back(tensor);
  read_strided(tensor);
  return std::move(tensor);
}

void ValueReader::read_metadata(const at::Tensor& tensor) {
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!has_components(impl)) {
    const caffe2::TypeMeta dtype = impl.dtype();
    read_strided(tensor);
    if (impl.dtype() != dtype) {
      throw Malformed("the dtype of an existing tensor cannot change");
    }
    return;
  }
  const at::Tensor made = read_composed();
  if (tensor.is_nested() || made.is_nested() ||
      made.layout() != tensor.layout() || made.dtype() != tensor.dtype()) {
    throw Malformed("the layout of an existing tensor cannot change");
  }
  const c10::TensorImpl& from = *made.unsafeGetTensorImpl();
  assign_components(impl, from, components_of(from));
}

void ValueReader::read_strided(const at::Tensor& tensor) {
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const auto flags = in_.get<std::uint8_t>();
  if ((flags & ~unsigned{kAllFlags}) != 0) {
    throw Malformed("unknown tensor flags");
  }
  const auto dtype = read_dtype(in_);
  const auto sizes = read_sizes(in_);
  const auto strides = in_.get_numbers<std::int64_t>();
  const auto offset = in_.get<std::int64_t>();
  if (sizes.size() != strides.size()) {
    throw Malformed("a tensor has a different number of sizes and strides");
  }
  if ((flags & kConj) != 0 && !c10::isComplexType(dtype)) {
    throw Malformed("a tensor of a real dtype has the conjugate bit");
  }
  const c10::Storage storage = read_storage();
  const auto meta = c10::scalarTypeToTypeMeta(dtype);
  check_extent(sizes, strides, offset, meta.itemsize(), storage.nbytes());
  if (storage.nbytes() > 0 &&
      is_without_memory(storage) != impl._is_zerotensor()) {
    throw Malformed("a storage has no address and no data");
  }
  impl.set_storage_and_dtype(storage, meta);
  impl.set_sizes_and_strides(sizes, strides, offset);
  impl._set_conj((flags & kConj) != 0);
  impl._set_neg((flags & kNeg) != 0);
  if ((flags & kWrapped) != 0) {
    if (!sizes.empty()) {
      throw Malformed("a scalar tensor has dimensions");
    }
    impl.set_wrapped_number(true);
  }
  if ((flags & kRequiresGrad) != 0) {
    impl.set_requires_grad(true);
  }
  if (tensor.is_quantized()) {
    at::QuantizerPtr quantizer = read_quantizer();
    if (!c10::isQIntType(dtype) || quantizer->scalar_type() != dtype ||
        !has_channels(*quantizer, sizes)) {
      throw Malformed("a quantizer is inconsistent with its tensor");
    }
    as_quantized(tensor).set_quantizer_(std::move(quantizer));
  }
}

at::QuantizerPtr ValueReader::read_quantizer() {
  const auto tag = in_.get_enum<QuantizerTag>();
  if (tag == QuantizerTag::kKnown) {
    return object_at(
        objects_.quantizers,
        in_.get<std::uint32_t>(),
        "a quantizer contains itself");
  }
  // The writer numbers a quantizer before the quantizers of its tensors.
  const std::size_t number = objects_.quantizers.size();
  objects_.quantizers.emplace_back();
  const auto dtype = read_dtype(in_);
  at::QuantizerPtr made;
  if (tag == QuantizerTag::kTensor) {
    const auto scale = in_.get<double>();
    const auto zero_point = in_.get<std::int64_t>();
    made = c10::make_intrusive<at::PerTensorAffineQuantizer>(
        dtype, scale, zero_point);
  } else {
    const auto axis = in_.get<std::int64_t>();
    at::Tensor scales = read_tensor();
    at::Tensor zero_points = read_tensor();
    if (tag == QuantizerTag::kChannels) {
      made = c10::make_intrusive<at::PerChannelAffineQuantizer>(
          dtype, std::move(scales), std::move(zero_points), axis);
    } else {
      made = c10::make_intrusive<at::PerChannelAffineFloatQParamsQuantizer>(
          dtype, std::move(scales), std::move(zero_points), axis);
    }
  }
  objects_.quantizers[number] = made;
  return made;
}

c10::Storage ValueReader::read_storage() {
  switch (in_.get_enum<StorageTag>()) {
    case StorageTag::kKnown:
      return object_at(objects_.storages, in_.get<std::uint32_t>());
    case StorageTag::kDevice: {
      const auto address = in_.get<std::uint64_t>();
      const auto nbytes = in_.get<std::uint64_t>();
      const bool resizable = in_.get_flag();
      if (address == 0 && nbytes > 0) {
        throw Malformed("a storage has no address and no data");
      }
      objects_.storages.push_back(source_.device(address, nbytes, resizable));
      break;
    }
    case StorageTag::kHost:
      objects_.storages.push_back(
          source_.host(in_.take(in_.get<std::uint64_t>())));
      break;
    case StorageTag::kFresh:
      objects_.storages.push_back(source_.fresh(in_.get<std::uint64_t>()));
      break;
    case StorageTag::kWithoutMemory:
      objects_.storages.push_back(
          source_.without_memory(in_.get<std::uint64_t>()));
      break;
  }
  return objects_.storages.back();
}

} // namespace openreg::aten::codec
