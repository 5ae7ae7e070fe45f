#include "runtime/tensor/options.h"

#include <ostream>

using ramet::detail::tls;

namespace ramet {

void set_default_dtype(ScalarType dtype) {
  RAMET_CHECK(is_floating(dtype), "set_default_dtype",
              "only floating-point types are supported as the default type: got ",
              short_name_of(dtype), ", expected float16, bfloat16, float32 or float64");
  tls.default_dtype = dtype;
}

TensorOptions TensorOptions::merge_in(const TensorOptions& other) const {
  TensorOptions o = *this;
  if (other.has_dtype_) o = o.dtype(other.dtype_);
  if (other.has_device_) o = o.device(other.device_);
  if (other.has_layout_) o = o.layout(other.layout_);
  if (other.has_requires_grad_) o = o.requires_grad(other.requires_grad_);
  if (other.has_pinned_memory_) o = o.pinned_memory(other.pinned_memory_);
  if (other.has_memory_format_) o = o.memory_format(other.memory_format_);
  return o;
}

std::ostream& operator<<(std::ostream& out, Layout) { return out << "Strided"; }

std::ostream& operator<<(std::ostream& out, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous: return out << "Contiguous";
    case MemoryFormat::Preserve: return out << "Preserve";
    case MemoryFormat::ChannelsLast: return out << "ChannelsLast";
  }
  return out << "unknown memory format";
}

std::ostream& operator<<(std::ostream& out, const TensorOptions& o) {
  const auto defaulted = [](bool given) { return given ? "" : " (default)"; };
  const detail::ClassicScope classic(out);
  // boolalpha stays set in the stream, as in LibTorch.
  out << std::boolalpha << "TensorOptions(dtype=" << o.dtype() << defaulted(o.has_dtype())
      << ", device=" << o.device() << defaulted(o.has_device()) << ", layout=" << o.layout()
      << defaulted(o.has_layout()) << ", requires_grad=" << o.requires_grad()
      << defaulted(o.has_requires_grad()) << ", pinned_memory=" << o.pinned_memory()
      << defaulted(o.has_pinned_memory()) << ", memory_format=";
  if (o.has_memory_format()) return out << *o.memory_format_opt() << ")";
  return out << "(nullopt))";
}

}  // namespace ramet
