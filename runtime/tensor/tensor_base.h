// TensorImpl and TensorBase: storage, shape, dtype, device and an opaque autograd slot. No
// mathematics, no gradients.
//
// Note [One block for a small tensor]
// A TensorImpl is three cache lines: bookkeeping, extents, strides. Up to 768 bytes of data follow
// it in the same block, with their storage header between. So a small tensor costs one trip to a
// free list when it is made, and one when it is released. The block is freed when the
// implementation and the storage are both gone. A re-pointed implementation keeps its embedded
// storage until it dies.
#pragma once
#include <cstring>
#include <utility>

#include "runtime/base/array_ref.h"
#include "runtime/base/stream.h"
#include "runtime/base/type_meta.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/storage_impl.h"

namespace ramet {

/// The runtime's view of the graph: an object with a reference count. autograd::Node derives from
/// it.
struct AutogradSlot {
  std::atomic<uint32_t> refs{1};  // number of references
  /// Called by release().
  virtual void last_reference_gone() noexcept = 0;
  /// One reference more.
  void hold() { add_ref(refs); }
  /// One reference less; null has none.
  static void release(AutogradSlot* s) {
    if (s && drop_ref(s->refs)) s->last_reference_gone();
  }

 protected:
  ~AutogradSlot() = default;
};

/// Ranks up to the first need no separate memory; ranks above the second are refused.
inline constexpr int kInlineRank = 8, kMaxRank = 64;

/// The state that all handles of one tensor share: dtype, device, sizes and strides, memory, and
/// its slot in the graph.
struct alignas(64) TensorImpl {
  enum : uint8_t {
    kContiguous = 1,  // row-major without gaps (extents of 1 ignored); every empty tensor
    kRequiresGrad = 2,
    kEmbedded = 4,         // its block holds a StorageImpl too
    kInference = 8,        // made under InferenceMode
    kInternalLayout = 16,  // Note [Internal layout] in autograd/graph/layout.h
    kNoGradView = 32,      // a view of a normal tensor made in no_grad or inference mode
    kWrappedNumber = 64,   // a 0-dim tensor that stands for a C++ number: weak in promotion
    kReplica = 128,        // parameter of a replica: no leaf, yet listed by parameters()
  };
  /// Bytes of data that fit into the block of a TensorImpl.
  static constexpr size_t kEmbeddedMax = 768;

  std::atomic<uint32_t> refs{1};  // handles, and views of it
  ScalarType dtype;
  uint8_t device;        // Device::ordinal()
  uint8_t rank, flags;   // number of dimensions; set bits of the enum above
  void* data;            // cached, so that operations do not read the storage header
  int64_t numel;         // how many elements
  StorageImpl* storage;  // its memory
  // the whole autograd slot: grad_fn, or the node that owns a leaf's gradient
  AutogradSlot* node = nullptr;
  uint32_t slot = 0;  // number of this tensor's gradient in `node`
  // Of a base: how often an in-place operation on one of its views has rewritten its history. Of a
  // view: the base's value when this view's history was made. See Note [In-place operations on
  // views] in autograd/graph/inplace.h.
  uint32_t generation = 0;
  // The tensor of which this one is a view; one reference. Mostly the tensor that owns the memory.
  // It is a view itself if it was a separate leaf when this view was made.
  TensorImpl* base = nullptr;
  int64_t* geometry = nullptr;  // extents and strides of ranks above kInlineRank
  alignas(64) int64_t sizes_[kInlineRank];
  int64_t strides_[kInlineRank];  // [rank, 8) of both is not initialised

  /// The implementation of kUndefinedTensor.
  constexpr TensorImpl()
      : dtype(ScalarType::Undefined),
        device(0),
        rank(1),
        flags(kContiguous),
        data(nullptr),
        numel(0),
        storage(nullptr),
        sizes_{},
        strides_{1} {}
  TensorImpl(ScalarType t, uint8_t dev, int r, StorageImpl* s)
      : dtype(t),
        device(dev),
        rank(static_cast<uint8_t>(r)),
        flags(kContiguous),
        data(s->data),
        storage(s) {}
  /// Called when the last reference is gone.
  RAMET_API void destroy();
  /// The storage in its block, where kEmbedded is set.
  StorageImpl* embedded() { return reinterpret_cast<StorageImpl*>(this + 1); }
  /// Does it hold a reference to `s`? True also while it shows other memory but `s` is in its
  /// block.
  bool holds(const StorageImpl* s) const {
    return storage == s || (is(kEmbedded) && const_cast<TensorImpl*>(this)->embedded() == s);
  }
  /// In acquire order: a thread that sees kInternalLayout cleared also sees what settle() wrote.
  uint8_t all_flags() const { return __atomic_load_n(&flags, __ATOMIC_ACQUIRE); }
  /// Is the flag set?
  bool is(uint8_t flag) const { return all_flags() & flag; }
  /// Sets it or clears it.
  void set(uint8_t flag, bool on) {
    flags = static_cast<uint8_t>(on ? flags | flag : flags & ~flag);
  }
  /// `rank` extents, and as many strides, in elements:
  int64_t* sizes() { return RAMET_LIKELY(rank <= kInlineRank) ? sizes_ : geometry; }
  int64_t* strides() { return RAMET_LIKELY(rank <= kInlineRank) ? strides_ : geometry + rank; }
  const int64_t* sizes() const { return const_cast<TensorImpl*>(this)->sizes(); }
  const int64_t* strides() const { return const_cast<TensorImpl*>(this)->strides(); }
  /// dtype and device in one compare.
  uint16_t key() const {
    uint16_t k;
    std::memcpy(&k, &dtype, 2);
    return k;
  }
  /// Sets kContiguous according to sizes and strides.
  void refresh_contiguous();
};
static_assert(sizeof(void*) != 8 || sizeof(TensorImpl) == 192, "three cache lines");

/// The properties of an undefined tensor: sizes [0], contiguous, no type. No tensor points at it.
RAMET_API extern const TensorImpl kUndefinedTensor;

namespace capture {
/// TensorBase::unique(), while a capture holds additional references.
RAMET_API bool unique(const TensorImpl* t);
}  // namespace capture

/// Waits until no queued work writes the storage. See Note [Pending storages] in
/// runtime/devices/devices.h.
RAMET_API void wait_pending(StorageImpl& storage);

/// One intrusive pointer. Copies share the implementation. Thread safety: as a shared_ptr to a
/// mutable object.
class RAMET_API TensorBase {
 public:
  TensorBase() noexcept : p_(nullptr) {}
  /// Takes over one reference.
  explicit TensorBase(TensorImpl* owned) noexcept : p_(owned) {}
  TensorBase(const TensorBase& o) noexcept : p_(o.p_) {
    if (p_) add_ref(p_->refs);
  }
  TensorBase(TensorBase&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  TensorBase& operator=(const TensorBase& o) noexcept {
    TensorBase(o).swap(*this);
    return *this;
  }
  TensorBase& operator=(TensorBase&& o) noexcept {
    TensorBase(std::move(o)).swap(*this);
    return *this;
  }
  ~TensorBase() {
    if (p_ && drop_ref(p_->refs)) p_->destroy();
  }
  /// Exchanges the handles.
  void swap(TensorBase& o) noexcept { std::swap(p_, o.p_); }
  /// Gives up the reference without dropping it; null for an undefined tensor.
  TensorImpl* release() && noexcept { return std::exchange(p_, nullptr); }

  /// Uninitialised, contiguous. `device` has a definite index. Throws on negative sizes, overflow
  /// and lack of memory.
  static TensorBase empty(IntArrayRef sizes, ScalarType dtype, Device device);
  /// Uninitialised, contiguous, with the sizes and device of the contiguous `like`. It checks
  /// nothing, so this is the quick way to a result of a pointwise operation.
  static TensorBase empty_alike(const TensorBase& like, ScalarType dtype);
  /// Uninitialised memory just large enough for the geometry.
  static TensorBase empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype,
                                  Device device);
  /// Over a storage (a reference is taken), `offset` bytes from its start.
  static TensorBase over(StorageImpl* storage, int64_t offset_bytes, IntArrayRef sizes,
                         IntArrayRef strides, ScalarType dtype);

  /// Is there a tensor?
  bool defined() const noexcept { return p_ != nullptr; }
  /// The implementation; null for an undefined tensor.
  TensorImpl* impl() const noexcept { return p_; }
  /// LibTorch's name for it: the key under which an optimizer keeps a parameter's state.
  TensorImpl* unsafeGetTensorImpl() const noexcept { return p_; }
  TensorImpl* operator->() const noexcept { return p_; }
  /// Handles of one tensor?
  bool is_same(const TensorBase& o) const noexcept { return p_ == o.p_; }
  /// Number of handles; 0 for an undefined tensor.
  int64_t use_count() const noexcept { return p_ ? static_cast<int64_t>(p_->refs.load()) : 0; }

  // An undefined tensor gives the same answers as in LibTorch: one dimension of 0 elements, no
  // type, no device. A property that it does not have (device, strides, element size, memory) is an
  // Error.
  /// Number of dimensions.
  int64_t dim() const { return shown()->rank; }
  /// dim() by its older name.
  int64_t ndimension() const { return dim(); }
  /// Number of elements: the product of the extents, 1 for a 0-dim tensor.
  int64_t numel() const { return shown()->numel; }
  /// The extents, not copied: they change with the tensor.
  IntArrayRef sizes() const {
    const TensorImpl* t = shown();
    return {t->sizes(), t->rank};
  }
  /// Extent of dimension `d`, negative counted from the end. An IndexError outside [-dim, dim).
  int64_t size(int64_t d) const {
    const TensorImpl* t = shown();
    return t->sizes()[wrapped(t, d)];
  }
  /// The element type; Undefined of an undefined tensor.
  ScalarType scalar_type() const { return shown()->dtype; }
  /// scalar_type() as LibTorch prints it.
  TypeMeta dtype() const { return TypeMeta(scalar_type()); }
  /// Bytes of an element, and of all elements:
  size_t element_size() const { return item_size(defined_impl("element_size")->dtype); }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * element_size(); }
  /// The device of its memory, with a definite index.
  Device device() const { return Device::from_ordinal(defined_impl("device")->device); }
  /// Its device's default stream.
  Stream stream() const { return {device(), 0}; }
  /// On a CPU device?
  bool is_cpu() const { return p_ && Device::from_ordinal(p_->device).is_cpu(); }
  /// On a GPU?
  bool is_cuda() const { return p_ && Device::from_ordinal(p_->device).is_cuda(); }
  /// Half, BFloat16, Float or Double?
  bool is_floating_point() const { return is_floating(scalar_type()); }

  /// The physical layout, which may differ from the public one.
  IntArrayRef raw_strides() const {
    const TensorImpl* t = defined_impl("strides");
    return {t->strides(), t->rank};
  }
  /// Is the physical layout row-major without gaps?
  bool raw_contiguous() const { return shown()->is(TensorImpl::kContiguous); }
  /// First element; waits for a stream that still writes the storage. For kernels: no version
  /// change. From then on an active capture owns the memory. So a kernel's memory comes from this
  /// call, or the operation itself has made it.
  void* ptr() const {
    StorageImpl* storage = storage_impl();
    if (RAMET_UNLIKELY(
            (storage->pending.load(std::memory_order_acquire) | ramet::detail::tls.capturing) != 0))
      look(*storage);
    return p_->data;
  }
  /// Its memory. If another thread settles the tensor at the same time: the old or the new one.
  StorageImpl* storage_impl() const { return __atomic_load_n(&p_->storage, __ATOMIC_ACQUIRE); }
  /// May the two share memory?
  bool may_overlap(const TensorBase& o) const {
    (void)defined_impl("storage"), (void)o.defined_impl("storage");
    return storage_impl()->overlaps(*o.storage_impl());
  }
  /// In elements of this tensor's dtype, from the start of the storage.
  int64_t storage_offset() const {
    if (RAMET_UNLIKELY(!p_)) return 0;
    return (static_cast<const char*>(p_->data) - static_cast<const char*>(storage_impl()->data)) /
           static_cast<int64_t>(item_size(p_->dtype));
  }
  /// How often the memory was written; 0 for an undefined tensor.
  uint32_t version() const {
    return RAMET_LIKELY(p_ != nullptr) ? storage_impl()->version().load(std::memory_order_relaxed)
                                       : 0;
  }
  /// No other tensor shares the memory, so an engine may add into it. A base shares it, too: it
  /// lives as long as its view and has this memory, unless set_data() gave it other memory.
  bool unique() const {
    if (RAMET_UNLIKELY(ramet::detail::tls.capturing != 0)) return capture::unique(p_);
    const TensorImpl* base = p_->base;
    return p_->refs.load(std::memory_order_acquire) == 1 &&
           storage_impl()->refs.load(std::memory_order_acquire) ==
               (base && base->holds(p_->storage) ? 2u : 1u) &&
           (!base || (base->refs.load(std::memory_order_acquire) == 1 && !base->base));
  }

  /// A new implementation over the same storage and versions: same geometry, no history, and of the
  /// flags only the layout's.
  TensorImpl* shallow_impl() const;
  /// The operand of an operation that supports the internal layout: normally this tensor. In that
  /// layout it is a shallow copy, which does not change when another thread settles this tensor.
  TensorBase steady() const {
    return RAMET_UNLIKELY(p_->is(TensorImpl::kInternalLayout)) ? TensorBase(shallow_impl()) : *this;
  }
  /// The same with another geometry, `offset` in elements from this tensor's first.
  TensorImpl* view_impl(IntArrayRef sizes, IntArrayRef strides, int64_t offset) const;
  /// For a copy-on-write storage (a piece of scatter that shares its input's memory). An in-place
  /// operation calls this first. The implementation gets its own memory with the same values,
  /// geometry and version. An Error where other tensors share the memory through the same storage.
  void own_memory(const char* op) const;
  /// Gives a tensor in internal layout row-major memory with the same values; does nothing to
  /// others. All handles follow. Other threads may read the tensor at the same time, through
  /// steady(). The memory that they read lives as long as the implementation.
  void settle(const TensorBase& row_major) const;
  /// Points the implementation at another storage (the reference is taken over), contiguous. All
  /// handles follow.
  void repoint(StorageImpl* storage, void* data = nullptr) const;

 protected:
  /// The implementation, or kUndefinedTensor for an undefined tensor.
  const TensorImpl* shown() const { return RAMET_LIKELY(p_ != nullptr) ? p_ : &kUndefinedTensor; }
  /// The implementation; an Error naming `what` was asked of an undefined tensor.
  TensorImpl* defined_impl(const char* what) const {
    if (RAMET_UNLIKELY(!p_)) no_tensor(what);
    return p_;
  }
  [[noreturn, gnu::cold]] static void no_tensor(const char* what);
  int64_t wrapped(const TensorImpl* t, int64_t d) const {
    const int64_t rank = t->rank;
    if (RAMET_UNLIKELY(d < 0)) d += rank;
    if (RAMET_UNLIKELY(d < 0 || d >= rank)) bad_dim(d);
    return d;
  }
  [[noreturn, gnu::cold]] void bad_dim(int64_t d) const;
  [[gnu::cold, gnu::noinline]] void look(StorageImpl& storage) const;
  TensorImpl* p_;
};

/// The same extents?
inline bool same_sizes(const TensorImpl* a, const TensorImpl* b) {
  if (a->rank != b->rank) return false;
  const int64_t *x = a->sizes(), *y = b->sizes();
  for (int i = 0; i < a->rank; ++i)
    if (x[i] != y[i]) return false;
  return true;
}
inline bool same_sizes(const TensorBase& a, const TensorBase& b) {
  return same_sizes(a.impl(), b.impl());
}
/// The same strides? Of tensors of one rank.
RAMET_API bool same_strides(const TensorBase& a, const TensorBase& b);
/// Row-major, or a permutation of it: no gap, no overlap.
RAMET_API bool non_overlapping_and_dense(const TensorBase& t);
/// "float32[2, 3] on cpu:1": how error texts show an operand.
RAMET_API std::string describe(const TensorBase& t);
/// Wraps a dimension number into [0, rank) (rank 0 counts as 1, as in LibTorch); an IndexError
/// naming op, value and range.
RAMET_API int64_t wrap_dim(const char* op, int64_t dim, int64_t rank);
/// Row-major strides.
RAMET_API std::vector<int64_t> contiguous_strides(IntArrayRef sizes);

}  // namespace ramet
