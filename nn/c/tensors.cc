#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/c/handles_internal.h"
#include "runtime/base/checked_size.h"

namespace ramet::c {
namespace {

constexpr int64_t kMaxDim = 64;
struct Dtype {
  int number;
  ScalarType type;
  const char* name;
};
constexpr Dtype kDtypes[] = {
    {RAMET_UINT8, kUInt8, "uint8"},       {RAMET_INT8, kInt8, "int8"},
    {RAMET_INT16, kInt16, "int16"},       {RAMET_INT32, kInt32, "int32"},
    {RAMET_INT64, kInt64, "int64"},       {RAMET_FLOAT16, kFloat16, "float16"},
    {RAMET_FLOAT32, kFloat32, "float32"}, {RAMET_FLOAT64, kFloat64, "float64"},
    {RAMET_BOOL, kBool, "bool"},          {RAMET_BFLOAT16, kBFloat16, "bfloat16"}};

const Dtype& dtype_of(ScalarType type) {
  for (const Dtype& d : kDtypes)
    if (d.type == type) return d;
  fail("ramet", "dtype: got ", short_name_of(type), ", which has no number in C");
}

IntArrayRef sizes_of(int64_t dim, const int64_t* sizes, const char* op) {
  RAMET_CHECK(dim >= 0 && dim <= kMaxDim, op, "dim: expected 0 to ", kMaxDim, ", got ", dim);
  if (dim == 0) return {};
  there(sizes, op, "sizes");
  for (int64_t d = 0; d < dim; ++d)
    RAMET_CHECK(sizes[d] >= 0, op, "sizes[", d, "]: expected 0 or more, got ", sizes[d]);
  return {sizes, static_cast<size_t>(dim)};
}

// The strides, checked as from_blob does not: where elements lie.
std::vector<int64_t> strides_of(const void* data, ScalarType type, IntArrayRef sizes,
                                const int64_t* strides, const char* op) {
  std::vector<int64_t> made = contiguous_strides(sizes);
  for (size_t d = 0; strides && d < sizes.size(); ++d) {
    RAMET_CHECK(strides[d] >= 0, op, "strides[", d, "]: expected 0 or more, got ", strides[d]);
    made[d] = strides[d];
  }
  const int64_t bytes = checked_extent(op, sizes, made, 0, type);
  RAMET_CHECK(data || bytes == 0, op, "data: expected memory for sizes ", sizes, ", got NULL");
  const size_t width = elementSize(type);
  RAMET_CHECK(reinterpret_cast<uintptr_t>(data) % width == 0, op,
              "data: expected memory aligned to ", width, " bytes, got ", data);
  return made;
}

Tensor over(void* data, int dtype, int64_t dim, const int64_t* sizes, const int64_t* strides,
            const char* op, const std::function<void(void*)>& deleter = nullptr) {
  const ScalarType type = type_of(dtype, op);
  const IntArrayRef shape = sizes_of(dim, sizes, op);
  const std::vector<int64_t> steps = strides_of(data, type, shape, strides, op);
  const TensorOptions options = TensorOptions().dtype(type);
  return deleter ? from_blob(data, shape, steps, deleter, options)
                 : from_blob(data, shape, steps, options);
}

// Values between a tensor and the caller's memory; no history.
void copy(const Tensor& to, const Tensor& from, const char* op) {
  RAMET_CHECK(to.sizes() == from.sizes(), op, "sizes: expected ", to.sizes(), ", got ",
              from.sizes());
  const NoGradGuard no_grad;
  to.copy_(from);
}

void check_reduction(int reduction, const char* op) {
  RAMET_CHECK(reduction >= RAMET_NONE && reduction <= RAMET_SUM, op,
              "reduction: expected RAMET_NONE, RAMET_MEAN or RAMET_SUM, got ", reduction);
}

// The two sides of an elementwise loss. LibTorch broadcasts one to the other with a warning: [n, 1]
// and [n] then give n * n losses, which is always a mistake.
struct Sides {
  Sides(const ramet_tensor* input, const ramet_tensor* target, int reduction, const char* op)
      : x(tensor_of(input, op, "input")), y(tensor_of(target, op, "target")) {
    check_reduction(reduction, op);
    RAMET_CHECK(x.sizes() == y.sizes(), op, "input and target: expected equal sizes, got ",
                x.sizes(), " and ", y.sizes());
  }
  Tensor x, y;
};

}  // namespace

ScalarType type_of(int dtype, const char* op) {
  for (const Dtype& d : kDtypes)
    if (d.number == dtype) return d.type;
  fail(op, "dtype: got ", dtype, ", expected one of RAMET_UINT8 to RAMET_BFLOAT16 (ramet/c.h)");
}
int number_of(ScalarType type) { return dtype_of(type).number; }

}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

static_assert(int{RAMET_NONE} == Reduction::None && int{RAMET_MEAN} == Reduction::Mean &&
              int{RAMET_SUM} == Reduction::Sum);

extern "C" {

ramet_tensor* ramet_tensor_from_memory(void* data, int dtype, int64_t dim, const int64_t* sizes,
                                       const int64_t* strides) {
  return result_of(__func__, [&](const char* op) {
    return handle_of(over(data, dtype, dim, sizes, strides, op));
  });
}
ramet_tensor* ramet_tensor_from_column_major(void* data, int dtype, int64_t dim,
                                             const int64_t* sizes) {
  return result_of(__func__, [&](const char* op) {
    const IntArrayRef shape = sizes_of(dim, sizes, op);
    std::vector<int64_t> strides;
    int64_t next = 1;
    for (const int64_t size : shape) {
      strides.push_back(next);
      RAMET_CHECK(!__builtin_mul_overflow(next, std::max<int64_t>(size, 1), &next), op, "sizes ",
                  shape, " reach further than memory does");
    }
    return handle_of(over(data, dtype, dim, sizes, strides.data(), op));
  });
}
ramet_tensor* ramet_tensor_from_owned_memory(void* data, int dtype, int64_t dim,
                                             const int64_t* sizes, const int64_t* strides,
                                             void (*deleter)(void* context), void* context) {
  return result_of(__func__, [&](const char* op) {
    RAMET_CHECK(deleter, op, "deleter: expected a function, got NULL");
    // The caller keeps the memory until the handle is there.
    const auto owned = std::make_shared<bool>(false);
    Tensor t = over(data, dtype, dim, sizes, strides, op, [owned, deleter, context](void*) {
      if (*owned) deleter(context);
    });
    ramet_tensor* const made = handle_of(std::move(t));
    *owned = true;
    return made;
  });
}
ramet_tensor* ramet_tensor_from_copy(const void* data, int dtype, int64_t dim, const int64_t* sizes,
                                     const int64_t* strides) {
  return result_of(__func__, [&](const char* op) {
    return handle_of(over(const_cast<void*>(data), dtype, dim, sizes, strides, op)
                         .clone(MemoryFormat::Contiguous));
  });
}
ramet_tensor* ramet_tensor_zeros(int dtype, int64_t dim, const int64_t* sizes) {
  return result_of(__func__, [&](const char* op) {
    return handle_of(zeros(sizes_of(dim, sizes, op), TensorOptions().dtype(type_of(dtype, op))));
  });
}
ramet_tensor* ramet_tensor_randn(int dtype, int64_t dim, const int64_t* sizes) {
  return result_of(__func__, [&](const char* op) {
    return handle_of(randn(sizes_of(dim, sizes, op), TensorOptions().dtype(type_of(dtype, op))));
  });
}
int ramet_tensor_free(ramet_tensor* tensor) {
  return status_of(__func__, [&](const char* op) { free_handle(Kind::kTensor, tensor, op); });
}

int ramet_tensor_copy_out(const ramet_tensor* tensor, void* data, int dtype, int64_t dim,
                          const int64_t* sizes, const int64_t* strides) {
  return status_of(__func__, [&](const char* op) {
    copy(over(data, dtype, dim, sizes, strides, op), tensor_of(tensor, op), op);
  });
}
int ramet_tensor_copy_in(ramet_tensor* tensor, const void* data, int dtype, int64_t dim,
                         const int64_t* sizes, const int64_t* strides) {
  return status_of(__func__, [&](const char* op) {
    copy(tensor_of(tensor, op), over(const_cast<void*>(data), dtype, dim, sizes, strides, op), op);
  });
}
int ramet_tensor_assign(ramet_tensor* tensor, const ramet_tensor* from) {
  return status_of(__func__, [&](const char* op) {
    const Tensor to = tensor_of(tensor, op), values = tensor_of(from, op, "from");
    const NoGradGuard no_grad;
    to.copy_(values);
  });
}

int ramet_tensor_dtype(const ramet_tensor* tensor, int* dtype) {
  return status_of(__func__, [&](const char* op) {
    there(dtype, op, "dtype") = number_of(tensor_of(tensor, op).scalar_type());
  });
}
int ramet_tensor_dim(const ramet_tensor* tensor, int64_t* dim) {
  return status_of(__func__,
                   [&](const char* op) { there(dim, op, "dim") = tensor_of(tensor, op).dim(); });
}
int ramet_tensor_numel(const ramet_tensor* tensor, int64_t* numel) {
  return status_of(
      __func__, [&](const char* op) { there(numel, op, "numel") = tensor_of(tensor, op).numel(); });
}
static void write_numbers(IntArrayRef from, int64_t* to, int64_t capacity, const char* op,
                          const char* argument) {
  RAMET_CHECK(capacity >= static_cast<int64_t>(from.size()), op, "capacity: expected ", from.size(),
              " or more, got ", capacity);
  if (from.empty()) return;
  there(to, op, argument);
  std::copy(from.begin(), from.end(), to);
}
int ramet_tensor_sizes(const ramet_tensor* tensor, int64_t* sizes, int64_t capacity) {
  return status_of(__func__, [&](const char* op) {
    const Tensor t = tensor_of(tensor, op);
    write_numbers(t.sizes(), sizes, capacity, op, "sizes");
  });
}
int ramet_tensor_strides(const ramet_tensor* tensor, int64_t* strides, int64_t capacity) {
  return status_of(__func__, [&](const char* op) {
    const Tensor t = tensor_of(tensor, op);
    write_numbers(t.strides(), strides, capacity, op, "strides");
  });
}
int ramet_tensor_data(const ramet_tensor* tensor, int dtype, void** data) {
  return status_of(__func__, [&](const char* op) {
    const Tensor t = tensor_of(tensor, op);
    RAMET_CHECK(t.scalar_type() == type_of(dtype, op), op, "dtype: expected the tensor's, ",
                dtype_of(t.scalar_type()).name, ", got ", dtype_of(type_of(dtype, op)).name);
    there(data, op, "data") = t.data_ptr();
  });
}
int ramet_tensor_item(const ramet_tensor* tensor, double* value) {
  return status_of(__func__, [&](const char* op) {
    double& to = there(value, op, "value");
    to = tensor_of(tensor, op).item<double>();
  });
}

int ramet_tensor_set_requires_grad(ramet_tensor* tensor, int on) {
  return status_of(__func__,
                   [&](const char* op) { tensor_of(tensor, op).requires_grad_(on != 0); });
}
ramet_tensor* ramet_tensor_grad(const ramet_tensor* tensor) {
  return result_of(__func__, [&](const char* op) {
    Tensor grad = tensor_of(tensor, op).grad();
    RAMET_CHECK(grad.defined(), op, "the tensor has no gradient: expected a backward before");
    return handle_of(std::move(grad));
  });
}
int ramet_tensor_backward(const ramet_tensor* tensor, const ramet_tensor* gradient) {
  return status_of(__func__, [&](const char* op) {
    const Tensor t = tensor_of(tensor, op);
    t.backward(gradient ? tensor_of(gradient, op, "gradient") : Tensor());
  });
}

ramet_tensor* ramet_tensor_detach(const ramet_tensor* tensor) {
  return result_of(__func__,
                   [&](const char* op) { return handle_of(tensor_of(tensor, op).detach()); });
}
ramet_tensor* ramet_tensor_to(const ramet_tensor* tensor, int dtype) {
  return result_of(__func__, [&](const char* op) {
    return handle_of(tensor_of(tensor, op).to(type_of(dtype, op)));
  });
}
ramet_tensor* ramet_tensor_reshape(const ramet_tensor* tensor, int64_t dim, const int64_t* sizes) {
  return result_of(__func__, [&](const char* op) {
    RAMET_CHECK(dim >= 0 && dim <= kMaxDim, op, "dim: expected 0 to ", kMaxDim, ", got ", dim);
    if (dim > 0) there(sizes, op, "sizes");
    return handle_of(tensor_of(tensor, op).reshape({sizes, static_cast<size_t>(dim)}));
  });
}
ramet_tensor* ramet_tensor_transpose(const ramet_tensor* tensor, int64_t dim0, int64_t dim1) {
  return result_of(__func__, [&](const char* op) {
    return handle_of(tensor_of(tensor, op).transpose(dim0, dim1));
  });
}
ramet_tensor* ramet_tensor_narrow(const ramet_tensor* tensor, int64_t dim, int64_t start,
                                  int64_t length) {
  return result_of(__func__, [&](const char* op) {
    return handle_of(tensor_of(tensor, op).narrow(dim, start, length));
  });
}
#define RAMET_OF_TWO(name)                                                          \
  ramet_tensor* ramet_tensor_##name(const ramet_tensor* a, const ramet_tensor* b) { \
    return result_of(__func__, [&](const char* op) {                                \
      return handle_of(ramet::name(tensor_of(a, op, "a"), tensor_of(b, op, "b")));  \
    });                                                                             \
  }
RAMET_OF_TWO(add)
RAMET_OF_TWO(sub)
RAMET_OF_TWO(mul)
RAMET_OF_TWO(div)
RAMET_OF_TWO(matmul)
#undef RAMET_OF_TWO
ramet_tensor* ramet_tensor_scale(const ramet_tensor* a, double factor) {
  return result_of(__func__,
                   [&](const char* op) { return handle_of(tensor_of(a, op, "a") * factor); });
}
ramet_tensor* ramet_tensor_sum(const ramet_tensor* a) {
  return result_of(__func__,
                   [&](const char* op) { return handle_of(tensor_of(a, op, "a").sum()); });
}
ramet_tensor* ramet_tensor_mean(const ramet_tensor* a) {
  return result_of(__func__,
                   [&](const char* op) { return handle_of(tensor_of(a, op, "a").mean()); });
}
ramet_tensor* ramet_tensor_argmax(const ramet_tensor* a, int64_t dim) {
  return result_of(__func__,
                   [&](const char* op) { return handle_of(tensor_of(a, op, "a").argmax(dim)); });
}

#define RAMET_LOSS(name, function)                                                  \
  ramet_tensor* ramet_##name(const ramet_tensor* input, const ramet_tensor* target, \
                             int reduction) {                                       \
    return result_of(__func__, [&](const char* op) {                                \
      const Sides sides(input, target, reduction, op);                              \
      return handle_of(function);                                                   \
    });                                                                             \
  }
RAMET_LOSS(mse_loss, mse_loss(sides.x, sides.y, reduction))
RAMET_LOSS(l1_loss, l1_loss(sides.x, sides.y, reduction))
RAMET_LOSS(bce_loss, binary_cross_entropy(sides.x, sides.y, {}, reduction))
RAMET_LOSS(bce_with_logits_loss,
           binary_cross_entropy_with_logits(sides.x, sides.y, {}, {}, reduction))
#undef RAMET_LOSS
ramet_tensor* ramet_huber_loss(const ramet_tensor* input, const ramet_tensor* target, int reduction,
                               double delta) {
  return result_of(__func__, [&](const char* op) {
    const Sides sides(input, target, reduction, op);
    return handle_of(huber_loss(sides.x, sides.y, reduction, delta));
  });
}
ramet_tensor* ramet_cross_entropy_loss(const ramet_tensor* input, const ramet_tensor* target,
                                       const ramet_tensor* weight, int reduction,
                                       double label_smoothing) {
  return result_of(__func__, [&](const char* op) {
    check_reduction(reduction, op);
    std::optional<Tensor> weights;
    if (weight) weights = tensor_of(weight, op, "weight");
    return handle_of(cross_entropy_loss(tensor_of(input, op, "input"),
                                        tensor_of(target, op, "target"), weights, reduction, -100,
                                        label_smoothing));
  });
}

}  // extern "C"
