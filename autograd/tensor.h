// Tensor: the one public tensor class, with LibTorch's methods.
//
// A Tensor is one intrusive pointer; copies share everything. Operations are free functions
// (autograd/ops/*.h) and methods of the same name. The lists autograd/ops/*.inc name those that are
// both (autograd/forms/rows.inc). Unless a comment says otherwise, a method has the meaning,
// parameter order and defaults of LibTorch's method of the same name.
#pragma once
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "autograd/accessor.h"
#include "kernels/pointwise/lists.h"
#include "runtime/base/scalar.h"
#include "runtime/devices/generator.h"
#include "runtime/memory/debug_memory.h"
#include "runtime/tensor/options.h"
#include "runtime/tensor/storage.h"
#include "runtime/tensor/tensor_base.h"
#include "runtime/tensor/type_properties.h"

namespace ramet {

class Tensor;
/// A list of tensors: one that borrows them, and one that owns them:
using TensorList = ArrayRef<Tensor>;
using tensor_list = std::vector<Tensor>;
namespace indexing {
class TensorIndex;
}
namespace autograd {
struct Node;
class NodePtr;

/// wants_grad() of a view that is no leaf and had no history when last checked.
RAMET_API bool view_wants_grad(const TensorImpl* view);
/// Throws the Error of an inference tensor that requires a gradient.
[[noreturn, gnu::cold]] RAMET_API void refuse_inference_leaf(const TensorImpl* t);
/// Does an operation on this tensor have to send it a gradient? That differs from requires_grad(),
/// which is also true for some views without history. These are views of a tensor that requires a
/// gradient, made in no_grad mode, in inference mode, or before their base became such a leaf. An
/// Error for an inference tensor that requires a gradient (LibTorch loses it in some operations).
/// Also an Error for a view made in no_grad mode, where its base has another history by now.
inline bool wants_grad(const TensorImpl* t) {
  if (!t) return false;
  const uint8_t flags = t->all_flags();
  if (flags & TensorImpl::kRequiresGrad) {
    if (RAMET_UNLIKELY(flags & TensorImpl::kInference)) refuse_inference_leaf(t);
    return true;
  }
  const TensorImpl* base = t->base;
  return base && (base->is(TensorImpl::kRequiresGrad) || base->base) && view_wants_grad(t);
}
}  // namespace autograd

class RAMET_API Tensor : public TensorBase {
 public:
  Tensor() noexcept = default;
  explicit Tensor(TensorImpl* owned) noexcept : TensorBase(owned) {}
  explicit Tensor(TensorBase base) noexcept : TensorBase(std::move(base)) {}
  Tensor(const Tensor&) noexcept = default;
  Tensor(Tensor&&) noexcept = default;
  // On a named tensor, assignment rebinds the handle. On a temporary (`x[0] = y`, `p.grad().data()
  // = g`) it copies into the tensor.
  Tensor& operator=(const Tensor& o) & noexcept {
    TensorBase::operator=(o);
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    TensorBase::operator=(std::move(o));
    return *this;
  }
  Tensor& operator=(const Tensor& values) &&;
  Tensor& operator=(Tensor&& values) &&;
  Tensor& operator=(const Scalar& value) &&;
  ~Tensor() = default;

  // ---- what it is -------------------------------------------------------------------------------
  /// Public strides: those of the tensor as the user sees it (Note [Internal layout] in
  /// autograd/graph/layout.h).
  IntArrayRef strides() const {
    settle();
    return raw_strides();
  }
  /// strides()[d]; a negative d counts from the end. An IndexError outside [-dim, dim).
  int64_t stride(int64_t d) const {
    settle();
    const TensorImpl* t = defined_impl("stride");
    return t->strides()[wrapped(t, d)];
  }
  /// Is it row-major without gaps, extents of 1 ignored? With `format`, channels-last as well.
  bool is_contiguous() const {
    settle();
    return raw_contiguous();
  }
  bool is_contiguous(MemoryFormat format) const;
  /// Its dtype and device, which a factory needs to make a similar tensor. Without requires_grad.
  TensorOptions options() const;
  /// Always kStrided.
  Layout layout() const { return kStrided; }
  /// Prints as "CPUFloatType"; for an undefined tensor as "UndefinedType".
  const DeprecatedTypeProperties& type() const;
  /// Is it not the result of a recorded operation? A leaf collects its gradient itself.
  bool is_leaf() const {
    const TensorImpl* t = defined_impl("is_leaf");
    return RAMET_UNLIKELY(t->base != nullptr) ? leaf_view() : !t->node || leaf_slot();
  }
  /// Was it made in InferenceMode (autograd/grad_mode.h)?
  bool is_inference() const { return shown()->is(TensorImpl::kInference); }
  /// Does it share another tensor's memory as a view, recorded or not?
  bool is_view() const { return defined_impl("is_view")->base != nullptr; }
  /// Is its element not 0? An Error unless it has exactly one element. Waits for its value.
  bool is_nonzero() const;
  std::string toString() const;
  /// Prints "[CPUFloatType [2, 3]]" and a newline to standard error, as LibTorch does.
  void print() const;
  /// How often the memory was written. An Error for an inference tensor, which has no counter.
  int64_t _version() const;
  /// LibTorch's questions about other kinds of tensors, which do not exist here; always false:
  bool is_complex() const { return false; }
  bool is_sparse() const { return false; }
  bool is_sparse_csr() const { return false; }
  bool is_quantized() const { return false; }
  bool is_mkldnn() const { return false; }
  bool is_meta() const { return false; }
  bool is_nested() const { return false; }
  bool is_mps() const { return false; }
  bool is_xpu() const { return false; }
  bool is_xla() const { return false; }
  bool is_hip() const { return false; }
  bool is_conj() const { return false; }
  bool is_neg() const { return false; }
  /// Does it have memory? False for an undefined tensor.
  bool has_storage() const { return defined(); }
  /// The whole memory that this tensor shows part of; waits for pending writes.
  Storage storage() const {
    (void)data_ptr();
    return Storage(*this);
  }
  /// Do both share the same memory?
  bool is_alias_of(const Tensor& other) const { return may_overlap(other); }
  /// Do both have the same sizes?
  bool is_same_size(const Tensor& other) const { return sizes() == other.sizes(); }
  /// Are both the same view of the same storage?
  bool is_set_to(const Tensor& tensor) const;
  /// Always empty: tensors have no names here.
  const std::string& name() const;
  /// Is it row-major, or a permutation of that: no gap, no overlap?
  bool is_non_overlapping_and_dense() const {
    settle();
    return ramet::non_overlapping_and_dense(*this);
  }
  /// Does its dtype have numbers below 0? False for bool and uint8.
  bool is_signed() const { return isSignedType(defined_impl("is_signed")->dtype); }
  /// The index of the device. CPU devices have indices as well: 0 is the CPU (LibTorch: -1), others
  /// are replicas.
  int64_t get_device() const { return device().index(); }
  /// Makes this handle undefined; other handles keep the tensor.
  void reset() noexcept { TensorBase::operator=(TensorBase()); }

  // ---- raw data ---------------------------------------------------------------------------------
  /// Pointer to the first element; waits for pending writes. T must be the dtype's C++ type. With
  /// memory checks on, an Error in code that runs on another device
  /// (runtime/memory/debug_memory.h).
  template <class T> T* data_ptr() const {
    check_type(ScalarTypeOf<std::remove_const_t<T>>::value);
    return static_cast<T*>(data_ptr());
  }
  void* data_ptr() const {
    (void)defined_impl("data_ptr");
    settle();
    detail::check_raw_access(*this);
    return ptr();
  }
  template <class T> T* data() const { return data_ptr<T>(); }  // its older name
  /// data_ptr() for reading, or LibTorch's name for the one for writing:
  template <class T> const T* const_data_ptr() const { return data_ptr<T>(); }
  const void* const_data_ptr() const { return data_ptr(); }
  template <class T> T* mutable_data_ptr() const { return data_ptr<T>(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  /// Fast element access for a CPU tensor of N dimensions.
  template <class T, size_t N> TensorAccessor<T, N> accessor() const {
    T* data = data_ptr<T>();
    check_rank(N);
    return TensorAccessor<T, N>(data, p_->sizes(), p_->strides());
  }
  /// An accessor that kernels take by value.
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
            class index_t = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> generic_packed_accessor() const {
    static_assert(N > 0, "a number is read through *data_ptr<T>()");
    check_rank(N);
    T* data = data_ptr<T>();  // settles the strides
    if constexpr (sizeof(index_t) < sizeof(int64_t))
      check_narrow(std::numeric_limits<index_t>::max());
    return {data, p_->sizes(), p_->strides()};
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
            class index_t = int64_t>
  /// generic_packed_accessor() under its older name.
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> packed_accessor() const {
    return generic_packed_accessor<T, N, PtrTraits, index_t>();
  }
  /// generic_packed_accessor() with indices of 64 bits.
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() const {
    return generic_packed_accessor<T, N, PtrTraits, int64_t>();
  }
  /// generic_packed_accessor() with 32-bit indices. An Error where an element lies further than
  /// 2^31 - 1 elements from the first.
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() const {
    return generic_packed_accessor<T, N, PtrTraits, int32_t>();
  }
  /// The value of a one-element tensor; waits for it.
  Scalar item() const;
  template <class T> T item() const { return item().to<T>(); }

  // ---- autograd ---------------------------------------------------------------------------------
  /// As in LibTorch: also true for a view without history of a tensor that requires a gradient.
  bool requires_grad() const {
    const TensorImpl* t = p_;
    while (t && !t->is(TensorImpl::kRequiresGrad)) t = t->base;
    return t != nullptr;
  }
  /// Starts or stops recording what is computed from this leaf. An Error where a non-leaf is to
  /// stop, and for dtypes that are not floating-point.
  const Tensor& requires_grad_(bool requires_grad = true) const;
  /// requires_grad_() under another name.
  const Tensor& set_requires_grad(bool requires_grad) const {
    return requires_grad_(requires_grad);
  }
  /// The gradient collected so far; undefined where there is none.
  const Tensor& grad() const;
  /// grad(), for assignment. An Error where this tensor is undefined.
  Tensor& mutable_grad() const;
  /// The node that made this tensor; null for a leaf.
  autograd::NodePtr grad_fn() const;
  /// The slot of grad_fn() that receives this tensor's gradient; 0 for a leaf.
  int64_t output_nr() const { return is_leaf() ? 0 : p_->slot; }
  /// Adds d(this)/d(leaves) into the grad() of the leaves. With `inputs`, only those tensors
  /// receive it, leaves or not. `gradient` is needed unless this tensor has one element.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false, std::optional<TensorList> inputs = std::nullopt) const;
  /// Keeps this non-leaf's gradient in later backward passes.
  void retain_grad() const;
  /// Was retain_grad() called for this non-leaf?
  bool retains_grad() const;
  /// Registers a function that is called with each gradient of this tensor before it goes on. It
  /// may return a replacement. Returns a handle. F: void(Tensor) or Tensor(Tensor).
  template <class F> unsigned register_hook(F&& hook) const;
  /// Removes a hook of either kind. An Error where this tensor does not have such a hook (any
  /// more).
  void remove_hook(unsigned handle) const;
  /// Registers a function that is called with this leaf after a gradient was added into its grad().
  /// Returns a handle.
  unsigned register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const;
  /// A tensor that shares memory and versions, but is cut off from the graph.
  Tensor detach() const;
  /// Cuts this tensor itself off from the graph: a leaf from now on. Not for views.
  Tensor& detach_() const;
  /// As detach(), with its own version counter.
  Tensor data() const;
  /// data() and detach() by LibTorch's other names:
  Tensor variable_data() const { return data(); }
  Tensor tensor_data() const { return detach(); }
  /// Replaces memory, sizes and dtype by those of `new_data`. The tensor keeps its place in the
  /// graph.
  void set_data(const Tensor& new_data) const;
  /// Makes this tensor show source's memory, or `size` elements of its storage, or no memory.
  /// `stride` is the distance of elements in each dimension, row-major by default. A storage
  /// without `size` gives all its elements of this dtype. An Error while history is recorded and
  /// either requires a gradient.
  Tensor& set_(const Tensor& source) const;
  Tensor& set_(const Tensor& source, int64_t storage_offset, IntArrayRef size,
               IntArrayRef stride = {}) const;
  Tensor& set_(const Storage& source) const;
  Tensor& set_(const Storage& source, int64_t storage_offset, IntArrayRef size,
               IntArrayRef stride = {}) const;
  Tensor& set_() const;
  /// The tensor that this view shares its memory with; undefined where this is no view.
  Tensor _base() const;
  /// Does nothing: memory that any stream may still use is not handed out again.
  void record_stream(Stream stream) const;

  // ---- copies and conversions -------------------------------------------------------------------
  /// This tensor where it is contiguous in that format, else a contiguous copy. Differentiable.
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  /// A copy with its own memory. It keeps the order of this tensor's dimensions where they have no
  /// gaps, or has the given format. Differentiable.
  Tensor clone(std::optional<MemoryFormat> format = std::nullopt) const;
  /// Writes src, broadcast and cast, into this tensor. With non_blocking the host does not wait for
  /// a copy between pinned memory and a GPU; later uses of either tensor come after it. The same
  /// holds for to(); its result on the CPU is then pinned.
  Tensor& copy_(const Tensor& src, bool non_blocking = false) const;
  /// A tensor with another dtype, device or memory format: this tensor itself where nothing
  /// changes, unless `copy`. Casts between any dtypes; floating point to integers truncates.
  /// Differentiable.
  Tensor to(const TensorOptions& options = {}, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(Device device, ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(TypeMeta dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const {
    return to(dtype.toScalarType(), non_blocking, copy, format);
  }
  /// to() under LibTorch's older names: for a dtype, a type(), a kind of device, or another
  /// tensor's:
  Tensor toType(ScalarType dtype) const { return to(dtype); }
  Tensor toType(const DeprecatedTypeProperties& type, bool non_blocking = false) const {
    return to(type.options(), non_blocking);
  }
  Tensor toBackend(Backend backend) const { return to(Device(backendToDeviceType(backend))); }
  Tensor type_as(const Tensor& other) const { return to(other); }
  /// to() the device cpu:0.
  Tensor cpu() const { return to(Device(kCPU, 0)); }
  /// to() the current GPU.
  Tensor cuda() const { return to(Device(kCUDA)); }
  /// A copy of this CPU tensor in pinned memory; this tensor where it is pinned already or the
  /// program has no GPU. With non_blocking, `to` and `copy_` copy from and to pinned memory while
  /// the host goes on. See Note [Copies that do not block the host] in runtime/tensor/pinned.h.
  /// `device` has no meaning: the memory is pinned for all GPUs. Differentiable.
  Tensor pin_memory(std::optional<Device> device = std::nullopt) const;
  /// Is its memory pinned?
  bool is_pinned(std::optional<Device> device = std::nullopt) const;
  /// Sets every element to the value, cast. A `value` that is a tensor is 0-dim; its gradient is
  /// the sum of all gradients. A number cuts the history (autograd/NOTES.md).
  Tensor& fill_(const Scalar& value) const;
  Tensor& fill_(const Tensor& value) const;
  /// fill_(0).
  Tensor& zero_() const;
  /// The factory of that name, with this tensor's dtype and device where `options` leave them open:
  Tensor new_empty(IntArrayRef size, const TensorOptions& options = {}) const;
  Tensor new_empty_strided(IntArrayRef size, IntArrayRef stride,
                           const TensorOptions& options = {}) const;
  Tensor new_zeros(IntArrayRef size, const TensorOptions& options = {}) const;
  Tensor new_ones(IntArrayRef size, const TensorOptions& options = {}) const;
  Tensor new_full(IntArrayRef size, const Scalar& value, const TensorOptions& options = {}) const;
  /// Gives this tensor these sizes. Where they differ, it gets other memory: the first elements of
  /// a contiguous tensor are kept, further ones are not initialised. An Error while history is
  /// recorded, where it requires a gradient.
  Tensor& resize_(IntArrayRef size, std::optional<MemoryFormat> memory_format = std::nullopt) const;
  /// resize_() to the sizes of another tensor.
  Tensor& resize_as_(const Tensor& the_template,
                     std::optional<MemoryFormat> memory_format = std::nullopt) const;

  // ---- methods of the functions in autograd/ops -------------------------------------------------
#include "autograd/forms/methods.inc"
#include "autograd/ops/index/gather_scatter.inc"
#include "autograd/ops/index/mask.inc"
#include "autograd/ops/index/scatter_reduce.inc"
#include "autograd/ops/index/search.inc"
#include "autograd/ops/index/sort.inc"
#include "autograd/ops/layers/softmax.inc"
#include "autograd/ops/matrix/addmm.inc"
#include "autograd/ops/matrix/decompose.inc"
#include "autograd/ops/matrix/diagonals.inc"
#include "autograd/ops/matrix/distance.inc"
#include "autograd/ops/matrix/linalg.inc"
#include "autograd/ops/matrix/matmul.inc"
#include "autograd/ops/matrix/products.inc"
#include "autograd/ops/matrix/triangle.inc"
#include "autograd/ops/pointwise/activation_composed.inc"
#include "autograd/ops/pointwise/aliases.inc"
#include "autograd/ops/pointwise/arithmetic.inc"
#include "autograd/ops/pointwise/comparison.inc"
#include "autograd/ops/pointwise/multiply.inc"
#include "autograd/ops/pointwise/pair.inc"
#include "autograd/ops/pointwise/power.inc"
#include "autograd/ops/pointwise/ternary.inc"
#include "autograd/ops/pointwise/unary.inc"
#include "autograd/ops/pointwise/where.inc"
#include "autograd/ops/random/random.inc"
#include "autograd/ops/reduce/extremum.inc"
#include "autograd/ops/reduce/moments.inc"
#include "autograd/ops/reduce/reduce.inc"
#include "autograd/ops/reduce/statistics.inc"
#include "autograd/ops/shape/rearrange.inc"
#include "autograd/ops/shape/view.inc"
#include "autograd/ops/shape/view_parts.inc"
  Tensor max(const Tensor& other) const { return maximum(other); }
  Tensor min(const Tensor& other) const { return minimum(other); }
  /// view(), reshape() or expand() to the sizes of another tensor:
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor operator[](const Scalar& index) const { return select(0, index.toLong()); }
  Tensor operator[](const Tensor& index) const;
  Tensor index(ArrayRef<indexing::TensorIndex> indices) const;
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  /// self[indices] = values, or += with `accumulate`.
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& values,
                     bool accumulate = false) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Scalar& value) const;
  /// A copy with that change.
  Tensor index_put(ArrayRef<indexing::TensorIndex> indices, const Tensor& values,
                   bool accumulate = false) const;
  Tensor index_put(std::initializer_list<indexing::TensorIndex> indices, const Tensor& values,
                   bool accumulate = false) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& values,
                     bool accumulate = false) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices,
                     const Scalar& value) const;

  Tensor& operator+=(const Tensor& other) { return add_(other); }
  Tensor& operator+=(const Scalar& other) { return add_(other); }
  Tensor& operator-=(const Tensor& other) { return sub_(other); }
  Tensor& operator-=(const Scalar& other) { return sub_(other); }
  Tensor& operator*=(const Tensor& other) { return mul_(other); }
  Tensor& operator*=(const Scalar& other) { return mul_(other); }
  Tensor& operator/=(const Tensor& other) { return div_(other); }
  Tensor& operator/=(const Scalar& other) { return div_(other); }
  Tensor& operator&=(const Tensor& other) { return bitwise_and_(other); }
  Tensor& operator&=(const Scalar& other) { return bitwise_and_(other); }
  Tensor& operator|=(const Tensor& other) { return bitwise_or_(other); }
  Tensor& operator|=(const Scalar& other) { return bitwise_or_(other); }
  Tensor& operator^=(const Tensor& other) { return bitwise_xor_(other); }
  Tensor& operator^=(const Scalar& other) { return bitwise_xor_(other); }
  Tensor operator-() const { return neg(); }
  Tensor operator!() const { return logical_not(); }
  Tensor operator~() const { return bitwise_not(); }

  // ---- for the library --------------------------------------------------------------------------
  /// A tensor that shares storage and versions: no history, no requires_grad.
  Tensor shallow() const { return Tensor(shallow_impl()); }

 private:
  void settle() const {
    if (RAMET_UNLIKELY(shown()->is(TensorImpl::kInternalLayout))) settle_layout();
  }
  void settle_layout() const;
  bool leaf_slot() const;
  bool leaf_view() const;
  void check_type(ScalarType asked) const {
    if (RAMET_UNLIKELY(asked != scalar_type())) wrong_type(asked);
  }
  [[noreturn, gnu::cold]] void wrong_type(ScalarType asked) const;
  void check_narrow(int64_t most) const;
  void check_rank(size_t asked) const {
    RAMET_CHECK(asked == static_cast<size_t>(dim()), "accessor", "dimensions: got ", asked,
                ", expected ", dim());
  }
  unsigned add_hook(std::function<Tensor(const Tensor&)> hook) const;
};

template <class F> unsigned Tensor::register_hook(F&& hook) const {
  using Result = decltype(hook(std::declval<const Tensor&>()));
  if constexpr (std::is_same<Result, void>::value) {
    return add_hook([f = std::forward<F>(hook)](const Tensor& g) mutable {
      f(g);
      return Tensor();
    });
  } else {
    return add_hook([f = std::forward<F>(hook)](const Tensor& g) mutable { return Tensor(f(g)); });
  }
}

inline Tensor operator+(const Tensor& a, const Tensor& b) { return a.add(b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return a.add(b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return a.sub(b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return a.sub(b); }
RAMET_API Tensor operator-(const Scalar& a, const Tensor& b);
inline Tensor operator*(const Tensor& a, const Tensor& b) { return a.mul(b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return a.mul(b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return a.div(b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return a.div(b); }
RAMET_API Tensor operator/(const Scalar& a, const Tensor& b);
inline Tensor operator%(const Tensor& a, const Tensor& b) { return a.remainder(b); }
inline Tensor operator%(const Tensor& a, const Scalar& b) { return a.remainder(b); }
RAMET_API Tensor operator%(const Scalar& a, const Tensor& b);
#define RAMET_COMPARE_OPERATOR(op, name, mirrored)                                  \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return a.name(b); } \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return a.name(b); } \
  inline Tensor operator op(const Scalar& a, const Tensor& b) { return b.mirrored(a); }
RAMET_COMPARE_OPERATOR(==, eq, eq)
RAMET_COMPARE_OPERATOR(!=, ne, ne)
RAMET_COMPARE_OPERATOR(<, lt, gt)
RAMET_COMPARE_OPERATOR(<=, le, ge)
RAMET_COMPARE_OPERATOR(>, gt, lt)
RAMET_COMPARE_OPERATOR(>=, ge, le)
RAMET_COMPARE_OPERATOR(&, bitwise_and, bitwise_and)
RAMET_COMPARE_OPERATOR(|, bitwise_or, bitwise_or)
RAMET_COMPARE_OPERATOR(^, bitwise_xor, bitwise_xor)
#undef RAMET_COMPARE_OPERATOR

/// Prints as LibTorch does: columns, scale line, `[ CPUFloatType{2,2} ]`.
RAMET_API std::ostream& operator<<(std::ostream& out, const Tensor& t);

}  // namespace ramet

// Headers that include this one declare their functions with rows.
#include "autograd/forms/functions.inc"
