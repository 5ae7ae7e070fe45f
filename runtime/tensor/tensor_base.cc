#include "runtime/tensor/tensor_base.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/gpu.h"
#include "runtime/memory/absent_storage.h"
#include "runtime/memory/allocator.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

using ramet::detail::tls;

namespace ramet {
namespace {

int64_t checked_numel(IntArrayRef sizes, ScalarType dtype) {
  RAMET_CHECK(sizes.size() <= static_cast<size_t>(kMaxRank), "empty", "rank: got ", sizes.size(),
              ", expected at most ", kMaxRank);
  for (size_t i = 0; i < sizes.size(); ++i)
    RAMET_CHECK(sizes[i] >= 0, "empty", "Trying to create tensor with negative dimension ",
                sizes[i], ": got ", sizes, ", expected sizes of 0 or more");
  // Zeros count as ones. So no later product of some extents of an empty tensor overflows.
  int64_t numel = 1;
  bool any = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    any &= sizes[i] != 0;
    RAMET_CHECK(!__builtin_mul_overflow(numel, std::max<int64_t>(sizes[i], 1), &numel), "empty",
                "sizes: got ", sizes, ", expected fewer than 2^63 elements");
  }
  if (!any) return 0;
  int64_t bytes;
  RAMET_CHECK(!__builtin_mul_overflow(numel, static_cast<int64_t>(item_size(dtype)), &bytes),
              "empty", "sizes: got ", sizes, " of ", short_name_of(dtype),
              ", expected fewer than 2^63 bytes");
  return numel;
}

// An Error where a size_t of 32 bits does not hold the number. StorageImpl::make() refuses what is
// too much for one of 64 bits.
size_t bytes_of(int64_t numel, ScalarType dtype) {
  if constexpr (sizeof(size_t) < sizeof(int64_t)) {
    const int64_t most = (kMaxStorageBytes - 1) / static_cast<int64_t>(item_size(dtype));
    RAMET_CHECK(numel <= most, "allocate", "got a request of ", numel, " elements of ",
                short_name_of(dtype), ", expected at most ", most);
  }
  return static_cast<size_t>(numel) * item_size(dtype);
}

// Row-major. Sizes that were not checked yet may wrap.
void set_contiguous_strides(const int64_t* sizes, int rank, int64_t* strides) {
  uint64_t stride = 1;
  for (int i = rank; i-- > 0;) {
    strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(std::max<int64_t>(sizes[i], 1));
  }
}

[[gnu::cold, gnu::noinline]] void set_long_geometry(TensorImpl* t) {
  // so that a destructor does not read the geometry
  const uint8_t rank = std::exchange(t->rank, uint8_t{0});
  try {
    t->geometry = static_cast<int64_t*>(pool::allocate(sizeof(int64_t) * 2 * rank));
  } catch (...) {
    t->destroy();
    throw;
  }
  t->rank = rank;
}
// For a new implementation that holds its storage. If it throws, it has freed the implementation.
inline void set_geometry_storage(TensorImpl* t) {
  if (RAMET_UNLIKELY(t->rank > kInlineRank)) set_long_geometry(t);
}

TensorImpl* make(int rank, int64_t numel, size_t bytes, ScalarType dtype, Device device) {
  const int dev = device.ordinal();
  TensorImpl* t;
  if (RAMET_LIKELY(bytes <= TensorImpl::kEmbeddedMax && dev < kMaxDevicesPerType)) {
    t = static_cast<TensorImpl*>(pool::allocate(sizeof(TensorImpl) + sizeof(StorageImpl) + bytes));
    auto* s = new (t->embedded()) StorageImpl(bytes, dev);
    s->memory_of = s;
    new (t) TensorImpl(dtype, static_cast<uint8_t>(dev), rank, s);
    t->flags |= TensorImpl::kEmbedded;
  } else {
    StorageImpl* s = RAMET_UNLIKELY(tls.capturing) ? capture::spare_memory(bytes, device) : nullptr;
    if (!s) s = StorageImpl::make(bytes, device);
    void* p;
    try {
      p = pool::allocate(sizeof(TensorImpl));
    } catch (...) {
      s->release();
      throw;
    }
    t = new (p) TensorImpl(dtype, static_cast<uint8_t>(dev), rank, s);
  }
  t->numel = numel;
  set_geometry_storage(t);
  if (RAMET_UNLIKELY(tls.inference_mode | tls.capturing)) {
    if (tls.inference_mode) t->flags |= TensorImpl::kInference;
    if (tls.capturing) capture::born(t->storage);
  }
  return t;
}

}  // namespace

void TensorBase::look(StorageImpl& storage) const {
  if (tls.capturing) capture::used(p_);
  wait_pending(storage);
  RAMET_CHECK(storage_impl()->external != StorageImpl::kAbsent, "data_ptr", describe(*this),
              " is a view or a detach() of a sharded parameter, taken while that was sharded: it "
              "does not follow; take it where the parameter is gathered");
}

void TensorImpl::destroy() {
  if (node) AutogradSlot::release(node);
  if (RAMET_UNLIKELY(base != nullptr)) {
    TensorImpl* b = std::exchange(base, nullptr);
    if (drop_ref(b->refs)) b->destroy();
  }
  if (RAMET_UNLIKELY(rank > kInlineRank)) pool::deallocate(geometry, sizeof(int64_t) * 2 * rank);
  if (!(flags & kEmbedded)) {
    storage->release();
    return pool::deallocate(this, sizeof(TensorImpl));
  }
  // re-pointed: the embedded storage was kept, because it holds the block
  if (storage != embedded()) storage->release();
  StorageImpl* block = embedded();
#if defined(__SANITIZE_ADDRESS__)
  // A view may keep the block, but this object is gone. free() removes the poison again.
  __asan_poison_memory_region(this, sizeof(TensorImpl));
#endif
  // the last reference frees the block, this object with it
  block->release();
}

void TensorImpl::refresh_contiguous() {
  bool contiguous = true;
  if (numel != 0) {
    int64_t expected = 1;
    for (int i = rank; i-- > 0 && contiguous;) {
      if (sizes()[i] == 1) continue;
      contiguous = strides()[i] == expected;
      expected *= sizes()[i];
    }
  }
  set(kContiguous, contiguous);
}

TensorBase TensorBase::empty(IntArrayRef sizes, ScalarType dtype, Device device) {
  const int64_t numel = checked_numel(sizes, dtype);
  const int rank = static_cast<int>(sizes.size());
  TensorImpl* t = make(rank, numel, bytes_of(numel, dtype), dtype, device);
  std::copy(sizes.begin(), sizes.end(), t->sizes());
  set_contiguous_strides(t->sizes(), rank, t->strides());
  return TensorBase(t);
}

TensorBase TensorBase::empty_alike(const TensorBase& like, ScalarType dtype) {
  const TensorImpl* from = like.impl();
  const int rank = from->rank;
  if (RAMET_UNLIKELY(rank > kInlineRank)) return empty(like.sizes(), dtype, like.device());
  TensorImpl* t = make(rank, from->numel, bytes_of(from->numel, dtype), dtype, like.device());
  // All eight: a few wide moves. A loop, or the call that a compiler makes of it, is slower.
  std::memcpy(t->sizes_, from->sizes_, sizeof t->sizes_);
  std::memcpy(t->strides_, from->strides_, sizeof t->strides_);
  return TensorBase(t);
}

TensorBase TensorBase::empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype,
                                     Device device) {
  const int64_t numel = checked_numel(sizes, dtype);
  RAMET_CHECK(sizes.size() == strides.size(), "empty_strided", "strides: got ", strides.size(),
              " of them, expected ", sizes.size(), " as there are sizes");
  for (int64_t stride : strides)
    RAMET_CHECK(stride >= 0, "empty_strided", "strides: got ", strides, ", expected 0 or more");
  const int64_t bytes = checked_extent("empty_strided", sizes, strides, 0, dtype);
  TensorImpl* t =
      make(static_cast<int>(sizes.size()), numel, static_cast<size_t>(bytes), dtype, device);
  std::copy(sizes.begin(), sizes.end(), t->sizes());
  std::copy(strides.begin(), strides.end(), t->strides());
  t->refresh_contiguous();
  return TensorBase(t);
}

TensorBase TensorBase::over(StorageImpl* storage, int64_t offset, IntArrayRef sizes,
                            IntArrayRef strides, ScalarType dtype) {
  const int64_t numel = checked_numel(sizes, dtype);
  auto* t = new (pool::allocate(sizeof(TensorImpl))) TensorImpl(
      dtype, static_cast<uint8_t>(storage->device), static_cast<int>(sizes.size()), storage);
  add_ref(storage->refs);
  t->numel = numel;
  t->data = static_cast<char*>(storage->data) + offset;
  set_geometry_storage(t);
  std::copy(sizes.begin(), sizes.end(), t->sizes());
  std::copy(strides.begin(), strides.end(), t->strides());
  t->refresh_contiguous();
  if (tls.inference_mode) t->flags |= TensorImpl::kInference;
  return TensorBase(t);
}

// Guards storage, data and strides of implementations while they are in internal layout.
static std::mutex& layout_mutex() {
  static std::mutex mutex;
  return mutex;
}

TensorImpl* TensorBase::shallow_impl() const {
  if (RAMET_UNLIKELY(tls.capturing)) capture::used(p_);  // through the new tensor
  std::unique_lock<std::mutex> lock;
  if (RAMET_UNLIKELY(p_->is(TensorImpl::kInternalLayout))) lock = std::unique_lock(layout_mutex());
  auto* t = new (pool::allocate(sizeof(TensorImpl)))
      TensorImpl(p_->dtype, p_->device, p_->rank, p_->storage);
  add_ref(p_->storage->refs);
  t->data = p_->data;
  t->numel = p_->numel;
  t->flags =
      p_->flags & (TensorImpl::kContiguous | TensorImpl::kInternalLayout | TensorImpl::kInference);
  set_geometry_storage(t);
  std::copy_n(p_->sizes(), p_->rank, t->sizes());
  std::copy_n(p_->strides(), p_->rank, t->strides());
  return t;
}

TensorImpl* TensorBase::view_impl(IntArrayRef sizes, IntArrayRef strides, int64_t offset) const {
  if (RAMET_UNLIKELY(tls.capturing)) capture::used(p_);
  int64_t numel = 1;
  bool wrapped = sizes.size() > static_cast<size_t>(kMaxRank), any = true;
  for (int64_t n : sizes) {
    wrapped |= __builtin_mul_overflow(numel, n | (n == 0), &numel);
    any &= n != 0;
  }
  if (RAMET_UNLIKELY(wrapped)) checked_numel(sizes, p_->dtype);  // throws for them
  if (!any) numel = 0;
  auto* t = new (pool::allocate(sizeof(TensorImpl)))
      TensorImpl(p_->dtype, p_->device, static_cast<int>(sizes.size()), p_->storage);
  add_ref(p_->storage->refs);
  t->flags = p_->flags & TensorImpl::kInference;
  t->data = static_cast<char*>(p_->data) + offset * static_cast<int64_t>(item_size(p_->dtype));
  set_geometry_storage(t);
  int64_t *to = t->sizes(), *to_strides = t->strides();
  for (size_t i = 0; i < sizes.size(); ++i) {
    to[i] = sizes[i];
    to_strides[i] = strides[i];
  }
  t->numel = numel;
  t->refresh_contiguous();
  return t;
}

void TensorBase::repoint(StorageImpl* s, void* data) const {
  StorageImpl* old = p_->storage;
  p_->data = data ? data : s->data;
  set_contiguous_strides(p_->sizes(), p_->rank, p_->strides());
  const auto device = static_cast<uint8_t>(s->device);
  if (p_->device != device) p_->device = device;  // other threads may read it during settle()
  __atomic_store_n(&p_->storage, s, __ATOMIC_RELEASE);
  const auto flags = (p_->flags | TensorImpl::kContiguous) & ~TensorImpl::kInternalLayout;
  __atomic_store_n(&p_->flags, static_cast<uint8_t>(flags), __ATOMIC_RELEASE);
  if (!p_->is(TensorImpl::kEmbedded) || old != p_->embedded()) old->release();
}

void TensorBase::settle(const TensorBase& row_major) const {
  std::lock_guard lock(layout_mutex());
  if (!p_->is(TensorImpl::kInternalLayout)) return;  // another thread was quicker
  // Versions continue from the old counter: a Saved that holds this implementation must find the
  // version that it knows. That also keeps the old memory.
  StorageImpl* seen = StorageImpl::alias(row_major.storage_impl(), row_major->data,
                                         row_major.nbytes(), p_->storage);
  repoint(seen);
}

void TensorBase::own_memory(const char* op) const {
  StorageImpl* old = p_->storage;
  RAMET_CHECK(old->refs.load(std::memory_order_acquire) == 1, op, "got ", describe(*this),
              ", which shares memory with the tensor it was cut "
              "from and has views of its own; expected a piece without views, or a clone() of it");
  if (old->pending.load(std::memory_order_acquire)) wait_pending(*old);
  capture::refuse(op, "memory of its own for a piece of another tensor");
  StorageImpl* own = StorageImpl::make(old->bytes, device());
  own->own_version = version();
  if (device().is_cpu()) std::memcpy(own->data, old->data, old->bytes);
  else gpu::required(op, device()).copy(own->data, device(), old->data, device(), old->bytes);
  p_->data = static_cast<char*>(own->data) +
             (static_cast<char*>(p_->data) - static_cast<char*>(old->data));
  p_->storage = own;
  old->release();
}

constexpr TensorImpl kUndefinedTensor;

void TensorBase::no_tensor(const char* what) { fail(what, "undefined tensor"); }

void TensorBase::bad_dim(int64_t d) const {
  const int64_t rank = dim();
  throw IndexError("[size] dimension out of range: got " + std::to_string(d < 0 ? d - rank : d) +
                   ", expected [" + std::to_string(-rank) + ", " + std::to_string(rank - 1) +
                   "] for " + describe(*this));
}

bool same_strides(const TensorBase& a, const TensorBase& b) {
  return a.raw_strides() == b.raw_strides();
}

bool non_overlapping_and_dense(const TensorBase& t) {
  if (t.raw_contiguous() || t->is(TensorImpl::kInternalLayout)) return true;
  int order[kMaxRank], n = 0;
  const IntArrayRef sizes = t.sizes(), strides = t.raw_strides();
  for (int i = 0; i < static_cast<int>(sizes.size()); ++i)
    if (sizes[static_cast<size_t>(i)] != 1) order[n++] = i;
  std::sort(order, order + n, [&](int a, int b) {
    return strides[static_cast<size_t>(a)] < strides[static_cast<size_t>(b)];
  });
  int64_t expected = 1;
  for (int i = 0; i < n; ++i) {
    if (strides[static_cast<size_t>(order[i])] != expected) return false;
    expected *= sizes[static_cast<size_t>(order[i])];
  }
  return true;
}

std::string describe(const TensorBase& t) {
  if (!t.defined()) return "undefined tensor";
  return detail::join(short_name_of(t.scalar_type()), t.sizes(), " on ", t.device().str());
}

int64_t wrap_dim(const char* op, int64_t dim, int64_t rank) {
  const int64_t n = std::max<int64_t>(rank, 1);
  if (RAMET_UNLIKELY(dim < -n || dim >= n)) {
    throw IndexError("[" + std::string(op) + "] Dimension out of range: got " +
                     std::to_string(dim) + ", expected to be in range of [" + std::to_string(-n) +
                     ", " + std::to_string(n - 1) + "]");
  }
  return dim < 0 ? dim + n : dim;
}

std::vector<int64_t> contiguous_strides(IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  set_contiguous_strides(sizes.data(), static_cast<int>(sizes.size()), strides.data());
  return strides;
}

}  // namespace ramet
