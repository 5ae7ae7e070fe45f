// TensorOptions: the properties of a factory's result other than its shape. As in LibTorch every
// part is optional, and setters return copies. A dtype, a device or a layout alone converts to
// options. So `zeros({2, 3}, kDouble)` and `zeros({2}, "cpu:1")` read well.
#pragma once
#include <iosfwd>
#include <optional>
#include <type_traits>
#include <utility>

#include "runtime/base/context.h"
#include "runtime/base/device.h"
#include "runtime/base/type_meta.h"

namespace ramet {

// The same entities as in namespace std, so that a program that opens both namespaces gets no
// ambiguity.
using std::nullopt;
using std::nullopt_t;
using std::optional;

/// How indices map to elements. Strided is the only one. The name exists because options contain
/// it.
enum class Layout : int8_t { Strided };
/// LibTorch's name of the layout.
inline constexpr Layout kStrided = Layout::Strided;
RAMET_API std::ostream& operator<<(std::ostream& out, Layout layout);

/// Order of a result's dimensions in memory. Preserve: as the input's; ChannelsLast: N, H, W, C of
/// a 4-D tensor.
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast };
RAMET_API std::ostream& operator<<(std::ostream& out, MemoryFormat format);

/// Floating-point type of factories and of `tensor({1.5})` without a dtype. One per thread,
/// initially Float. Work that the library moves to another thread uses the caller's.
inline TypeMeta get_default_dtype() { return TypeMeta(ramet::detail::tls.default_dtype); }
/// The same as an enumerator.
inline ScalarType get_default_dtype_as_scalartype() { return ramet::detail::tls.default_dtype; }
/// An Error unless `dtype` is a floating-point type.
RAMET_API void set_default_dtype(ScalarType dtype);

class RAMET_API TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype), has_dtype_(true) {}
  TensorOptions(TypeMeta dtype) : dtype_(dtype), has_dtype_(true) {}
  TensorOptions(Layout layout) : layout_(layout), has_layout_(true) {}
  TensorOptions(MemoryFormat format) : memory_format_(format), has_memory_format_(true) {}
  /// From a Device and from values that convert to one: a DeviceType, a DeviceType with an index,
  /// "cpu:1".
  template <class... Args,
            std::enable_if_t<
                (sizeof...(Args) > 0) && std::is_constructible<Device, Args&&...>::value, int> = 0>
  TensorOptions(Args&&... args) : device_(std::forward<Args>(args)...), has_device_(true) {}

  // Setters. A nullopt removes the setting.
  /// A copy with this dtype; nullopt removes the setting. As all setters: none changes *this.
  [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> t) const {
    TensorOptions o = *this;
    o.has_dtype_ = t.has_value();
    if (t) o.dtype_ = *t;
    return o;
  }
  template <class T> [[nodiscard]] TensorOptions dtype() const {
    return dtype(ScalarTypeOf<T>::value);
  }
  /// A copy with this device: a Device or a value that converts to one, as "cuda:1". The factory
  /// checks whether it exists.
  [[nodiscard]] TensorOptions device(std::optional<Device> d) const {
    TensorOptions o = *this;
    o.has_device_ = d.has_value();
    if (d) o.device_ = *d;
    return o;
  }
  template <class... Args,
            std::enable_if_t<
                (sizeof...(Args) > 0) && std::is_constructible<Device, Args&&...>::value, int> = 0>
  [[nodiscard]] TensorOptions device(Args&&... args) const {
    return device(std::optional<Device>(Device(std::forward<Args>(args)...)));
  }
  /// cuda:index, as in LibTorch.
  [[nodiscard]] TensorOptions device_index(DeviceIndex index) const {
    return device(Device(kCUDA, index));
  }
  /// A copy with this layout.
  [[nodiscard]] TensorOptions layout(std::optional<Layout> l) const {
    TensorOptions o = *this;
    o.has_layout_ = l.has_value();
    if (l) o.layout_ = *l;
    return o;
  }
  /// A copy that asks for gradients or does not. A factory with it makes a leaf.
  [[nodiscard]] TensorOptions requires_grad(std::optional<bool> on) const {
    TensorOptions o = *this;
    o.has_requires_grad_ = on.has_value();
    o.requires_grad_ = on.value_or(false);
    return o;
  }
  /// In pinned memory, which GPUs copy from and to while the host continues (Tensor::pin_memory).
  /// For CPU tensors; where the program has no GPU it changes nothing.
  [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> on) const {
    TensorOptions o = *this;
    o.has_pinned_memory_ = on.has_value();
    o.pinned_memory_ = on.value_or(false);
    return o;
  }
  /// A copy with this order of dimensions in memory.
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    TensorOptions o = *this;
    o.has_memory_format_ = f.has_value();
    if (f) o.memory_format_ = *f;
    return o;
  }

  // Getters: the setting, or the default where there is none.
  TypeMeta dtype() const { return has_dtype_ ? TypeMeta(dtype_) : get_default_dtype(); }
  /// Without a setting: `cpu` without index, which resolve() turns into the current cpu device.
  Device device() const { return has_device_ ? device_ : Device(kCPU); }
  DeviceIndex device_index() const { return device().index(); }
  Layout layout() const { return has_layout_ ? layout_ : kStrided; }
  bool requires_grad() const { return has_requires_grad_ && requires_grad_; }
  bool pinned_memory() const { return has_pinned_memory_ && pinned_memory_; }
  /// false: there are no sparse tensors.
  bool is_sparse() const { return false; }

  /// Whether this part is set:
  bool has_dtype() const { return has_dtype_; }
  bool has_device() const { return has_device_; }
  bool has_layout() const { return has_layout_; }
  bool has_requires_grad() const { return has_requires_grad_; }
  bool has_pinned_memory() const { return has_pinned_memory_; }
  bool has_memory_format() const { return has_memory_format_; }

  /// The setting, or nullopt where there is none:
  std::optional<TypeMeta> dtype_opt() const {
    return has_dtype_ ? std::optional<TypeMeta>(dtype_) : std::nullopt;
  }
  std::optional<Device> device_opt() const {
    return has_device_ ? std::optional<Device>(device_) : std::nullopt;
  }
  std::optional<Layout> layout_opt() const {
    return has_layout_ ? std::optional<Layout>(layout_) : std::nullopt;
  }
  std::optional<bool> requires_grad_opt() const {
    return has_requires_grad_ ? std::optional<bool>(requires_grad_) : std::nullopt;
  }
  std::optional<bool> pinned_memory_opt() const {
    return has_pinned_memory_ ? std::optional<bool>(pinned_memory_) : std::nullopt;
  }
  std::optional<MemoryFormat> memory_format_opt() const {
    return has_memory_format_ ? std::optional<MemoryFormat>(memory_format_) : std::nullopt;
  }

  /// `other`'s settings over these.
  [[nodiscard]] TensorOptions merge_in(const TensorOptions& other) const;
  /// A copy with `f`, if there is one.
  [[nodiscard]] TensorOptions merge_memory_format(std::optional<MemoryFormat> f) const {
    return f ? memory_format(f) : *this;
  }

 private:
  Device device_ = Device(kCPU);
  ScalarType dtype_ = ScalarType::Float;
  Layout layout_ = Layout::Strided;
  MemoryFormat memory_format_ = MemoryFormat::Contiguous;
  bool requires_grad_ = false, pinned_memory_ = false;
  bool has_device_ = false, has_dtype_ = false, has_layout_ = false, has_memory_format_ = false;
  bool has_requires_grad_ = false, has_pinned_memory_ = false;
};

/// "TensorOptions(dtype=float32 (default), device=cpu, ...)".
RAMET_API std::ostream& operator<<(std::ostream& out, const TensorOptions& options);

// Options with one setting.
/// Options with this one setting:
inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
template <class T> inline TensorOptions dtype() { return TensorOptions(ScalarTypeOf<T>::value); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions device_index(DeviceIndex index) { return TensorOptions().device_index(index); }
inline TensorOptions layout(Layout l) { return TensorOptions(l); }
inline TensorOptions memory_format(MemoryFormat f) { return TensorOptions(f); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }
inline TensorOptions pinned_memory(bool on = true) { return TensorOptions().pinned_memory(on); }

}  // namespace ramet
