#include "nn/formats/dlpack.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops/make/factory.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/gpu.h"
#include "runtime/tensor/storage_ref.h"

// DLPack's structs, as its description (version 1.0) defines them. They are an interface between
// binaries, so only sizes and positions of the fields matter. This file does not need DLPack's
// header, which declares different things in different versions.
namespace {

enum DeviceCode : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 };
enum TypeCode : uint8_t { kDLInt, kDLUInt, kDLFloat, kDLOpaque, kDLBfloat, kDLComplex, kDLBool };
struct DeviceOf {
  DeviceCode type;
  int32_t index;
};
struct ElementType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Look {  // DLTensor
  void* data;
  DeviceOf device;
  int32_t rank;
  ElementType type;
  int64_t *sizes, *strides;
  uint64_t byte_offset;
};
constexpr uint32_t kMajor = 1, kMinor = 0;
constexpr uint64_t kReadOnly = 1;  // a bit of the flags

}  // namespace

struct DLManagedTensor {
  Look tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  Look tensor;
};
static_assert(sizeof(void*) == 8 && sizeof(Look) == 48 && offsetof(Look, device) == 8 &&
              offsetof(Look, rank) == 16 && offsetof(Look, type) == 20 &&
              offsetof(Look, sizes) == 24 && offsetof(Look, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, context) == 48 &&
              offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, deleter) == 16 &&
              offsetof(DLManagedTensorVersioned, flags) == 24 &&
              offsetof(DLManagedTensorVersioned, tensor) == 32);

namespace ramet {
namespace {

constexpr TypeCode kCodes[kScalarTypes] = {kDLBool,  kDLUInt,   kDLInt,   kDLInt,
                                           kDLInt,   kDLInt,    kDLUInt,  kDLUInt,
                                           kDLFloat, kDLBfloat, kDLFloat, kDLFloat};

DeviceOf device_of(const char* op, const Tensor& t) {
  const Device device = t.device();
  if (device.is_cpu()) return {kDLCPU, 0};
  gpu::Library& gpus = gpu::required(op, device);
  const int card = gpus.card(device.index());
  RAMET_CHECK(card >= 0, op, "got ", describe(t), ", an emulated GPU, whose memory no other ",
              "library's CUDA knows; expected a tensor on a CPU: to(kCPU)");
  gpus.synchronize(device.index());  // the receiver does not know our streams
  return {kDLCUDA, card};
}

// The data that an exported struct refers to, in one block with the struct.
template <class Managed> struct Exported {
  Managed managed{};
  Tensor tensor;  // an implementation of its own: its memory stays, whatever becomes of the given
  int64_t geometry[2 * kMaxRank];
};

template <class Managed> Managed* exported(const char* op, const Tensor& given, bool read_only) {
  capture::refuse(op, "another library would get memory that replays write");
  RAMET_CHECK(given.defined(), op, "undefined tensor");
  RAMET_CHECK(!given.requires_grad(), op, "got ", describe(given), ", which requires a gradient: ",
              "other libraries' operations would not be recorded; expected detach() of it");
  if (!read_only && given.storage_impl()->copy_on_write) given.own_memory(op);
  auto made = std::make_unique<Exported<Managed>>();
  made->tensor = given.detach();
  const Tensor& t = made->tensor;
  Look& look = made->managed.tensor;
  look.data = t.data_ptr();  // waits for a CPU's task
  look.device = device_of(op, t);
  look.rank = static_cast<int32_t>(t.dim());
  look.type = {kCodes[static_cast<int>(t.scalar_type())],
               static_cast<uint8_t>(8 * t.element_size()), 1};
  look.sizes = made->geometry;
  look.strides = made->geometry + t.dim();
  for (int64_t d = 0; d < t.dim(); ++d) {
    look.sizes[d] = t.size(d);
    // Such a stride is never used, but some readers take another one than 1 for a gap.
    look.strides[d] = t.size(d) == 1 ? 1 : t.stride(d);
  }
  look.byte_offset = 0;
  made->managed.context = made.get();
  made->managed.deleter = [](Managed* self) {
    if (self) delete static_cast<Exported<Managed>*>(self->context);
  };
  return &made.release()->managed;
}

ScalarType type_of(const char* op, const ElementType& type) {
  RAMET_CHECK(type.lanes == 1, op, "got elements of ", type.lanes, " lanes, expected 1");
  RAMET_CHECK(type.code != kDLComplex, op, "got complex elements, which are not supported");
  for (int k = 0; k < kScalarTypes; ++k) {
    const auto dtype = static_cast<ScalarType>(k);
    if (kCodes[k] == type.code && 8 * item_size(dtype) == type.bits) return dtype;
  }
  static constexpr const char* kNames[] = {"int",      "uint",    "float", "opaque",
                                           "bfloat16", "complex", "bool"};
  fail(op, "got elements of ", int{type.bits}, " bits of DLPack's type code ", int{type.code},
       type.code < 7 ? std::string(" (") + kNames[type.code] + ")" : "",
       ", expected bool, uint8 to uint32, int8 to int64, float16, bfloat16, float32 or float64");
}

Device device_of(const char* op, const DeviceOf& of) {
  if (of.type == kDLCPU || of.type == kDLCUDAHost) {
    RAMET_CHECK(of.index == 0 || of.type == kDLCUDAHost, op, "got memory of CPU ", of.index,
                ", expected device_id 0");
    return Device(kCPU, 0);
  }
  RAMET_CHECK(of.type == kDLCUDA, op, "got memory of DLPack's device type ", int{of.type},
              ", expected 1 (a CPU) or 2 (CUDA)");
  gpu::Library* gpus = gpu::library();
  const int count = gpus ? gpus->device_count() : 0;
  for (int k = 0; k < count; ++k)
    if (gpus->card(k) == of.index) return Device(kCUDA, static_cast<DeviceIndex>(k));
  fail(op, "got memory of CUDA's card ", of.index,
       ", expected one of the cards that this program uses, of which there are ", count);
}

template <class Managed> Tensor imported(const char* op, Managed* managed, bool read_only) {
  const Look& look = managed->tensor;
  const ScalarType dtype = type_of(op, look.type);
  const Device device = device_of(op, look.device);
  RAMET_CHECK(look.rank >= 0 && look.rank <= kMaxRank, op, "got ", look.rank,
              " dimensions, expected 0 to ", kMaxRank);
  RAMET_CHECK(look.rank == 0 || look.sizes, op, "got no sizes for ", look.rank, " dimensions");
  const auto rank = static_cast<size_t>(look.rank);
  const IntArrayRef sizes(look.sizes, rank);
  for (int64_t s : sizes) RAMET_CHECK(s >= 0, op, "got sizes ", sizes, ", expected none negative");
  const std::vector<int64_t> row_major =
      look.strides || rank == 0 ? std::vector<int64_t>() : contiguous_strides(sizes);
  const IntArrayRef strides = look.strides ? IntArrayRef(look.strides, rank) : row_major;
  const bool any = std::find(sizes.begin(), sizes.end(), 0) == sizes.end();
  // Some writers leave any number as a stride that is never used.
  std::vector<int64_t> steps = strides.vec();
  for (size_t d = 0; d < rank; ++d) {
    RAMET_CHECK(strides[d] >= 0 || sizes[d] == 1 || !any, op, "got negative strides ", strides,
                ", which are not supported; expected a copy of it");
    if (!any || sizes[d] == 1) steps[d] = std::max<int64_t>(strides[d], 0);
  }
  const auto bytes = static_cast<size_t>(checked_extent(op, sizes, steps, 0, dtype));
  const size_t width = item_size(dtype);
  RAMET_CHECK(look.data || !any, op, "got a null pointer for sizes ", sizes);
  char* data = static_cast<char*>(look.data) + (any ? look.byte_offset : 0);
  RAMET_CHECK(reinterpret_cast<uintptr_t>(data) % width == 0, op, "got memory at ",
              static_cast<void*>(data), ", which is not aligned to elements of ", width, " bytes");

  // An Error on the way (no memory) leaves `managed` to the caller.
  const auto taken = std::make_shared<bool>(false);
  const auto release = [managed, device, taken](void*) {
    if (!*taken || !managed->deleter) return;
    if (device.is_cuda()) {  // kernels that were given the memory may still run
      try {
        gpu::required("from_dlpack", device).wait(device.index());
      } catch (const Error&) {}  // a lost device: every other wait for it reports the error
    }
    managed->deleter(managed);
  };
  StorageRef storage(StorageImpl::foreign(data, bytes, device, release));
  if (read_only) {
    storage.reset(StorageImpl::alias(StorageRef(std::move(storage)).get(), data, bytes, nullptr));
    storage->copy_on_write = 1;
  }
  Tensor t(TensorBase::over(storage.get(), 0, sizes, steps, dtype));
  *taken = true;
  return t;
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  return exported<DLManagedTensor>("to_dlpack", tensor, false);
}
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, bool read_only) {
  constexpr const char* kOp = "to_dlpack_versioned";
  if (tensor.defined()) read_only = read_only || tensor.storage_impl()->copy_on_write;
  auto* made = exported<DLManagedTensorVersioned>(kOp, tensor, read_only);
  made->major = kMajor;
  made->minor = kMinor;
  made->flags = read_only ? kReadOnly : 0;
  return made;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  RAMET_CHECK(managed, "from_dlpack", "got a null pointer");
  return imported("from_dlpack", managed, false);
}
Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  RAMET_CHECK(managed, "from_dlpack", "got a null pointer");
  RAMET_CHECK(managed->major == kMajor, "from_dlpack", "got a tensor of DLPack's version ",
              managed->major, '.', managed->minor, ", expected 1.*");
  return imported("from_dlpack", managed, (managed->flags & kReadOnly) != 0);
}

}  // namespace ramet
