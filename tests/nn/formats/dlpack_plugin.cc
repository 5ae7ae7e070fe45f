// A shared library that Python loads: tensors of this library as DLPack's structs, and back
// (data/check_dlpack.py).
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "nn/formats/dlpack.h"

using namespace ramet;

namespace {
std::vector<Tensor> tensors;
std::string error;

template <class F> auto guarded(F f) -> decltype(f()) {
  error.clear();
  try {
    return f();
  } catch (const std::exception& e) { error = e.what(); }
  return {};
}
}  // namespace

#define PLUGIN extern "C" __attribute__((visibility("default")))

PLUGIN const char* plugin_error() { return error.c_str(); }

/// A tensor with 0, 1, 2, ...; `strided`: every second column of one, its first two dimensions
/// exchanged.
PLUGIN int64_t plugin_make(int dtype, int rank, const int64_t* sizes, int strided) {
  return guarded([&]() -> int64_t {
    std::vector<int64_t> s(sizes, sizes + rank);
    if (strided) s.back() *= 2, std::swap(s[0], s[1]);
    int64_t count = 1;
    for (int64_t n : s) count *= n;
    Tensor t = arange(count, TensorOptions(kLong)).remainder(120);
    t = t.to(static_cast<ScalarType>(dtype)).view(s);
    if (strided) t = t.transpose(0, 1).slice(-1, 1, std::nullopt, 2);
    tensors.push_back(t);
    return static_cast<int64_t>(tensors.size());
  });
}
PLUGIN void* plugin_export(int64_t tensor, int versioned, int read_only) {
  return guarded([&]() -> void* {
    const Tensor& t = tensors[static_cast<size_t>(tensor - 1)];
    if (versioned) return to_dlpack_versioned(t, read_only != 0);
    return to_dlpack(t);
  });
}
PLUGIN int64_t plugin_import(void* managed, int versioned) {
  return guarded([&]() -> int64_t {
    tensors.push_back(versioned ? from_dlpack(static_cast<DLManagedTensorVersioned*>(managed))
                                : from_dlpack(static_cast<DLManagedTensor*>(managed)));
    return static_cast<int64_t>(tensors.size());
  });
}
PLUGIN void plugin_drop(int64_t tensor) { tensors[static_cast<size_t>(tensor - 1)].reset(); }
PLUGIN const void* plugin_data(int64_t tensor) {
  return tensors[static_cast<size_t>(tensor - 1)].data_ptr();
}
/// The row-major element, as a double.
PLUGIN double plugin_get(int64_t tensor, int64_t index) {
  return guarded([&] {
    return tensors[static_cast<size_t>(tensor - 1)].reshape({-1})[index].item().to<double>();
  });
}
PLUGIN int plugin_fill(int64_t tensor, double value) {
  return guarded([&] {
    tensors[static_cast<size_t>(tensor - 1)].fill_(value);
    return 1;
  });
}
PLUGIN int plugin_dtype(int64_t tensor) {
  return static_cast<int>(tensors[static_cast<size_t>(tensor - 1)].scalar_type());
}
