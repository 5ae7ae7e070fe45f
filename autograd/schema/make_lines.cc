// Operators that make tensors: from sizes, from other tensors, from numbers and lists, at random.
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

// The numbers of nested lists, and the sizes that these make.
struct Numbers {
  std::vector<int64_t> sizes;
  std::vector<Scalar> values;
  ScalarType dtype = ScalarType::Undefined;

  void take(const IValue& value, size_t depth, bool first) {
    if (!value.isList()) {
      RAMET_CHECK(depth == sizes.size(), "tensor", "got a number at depth ", depth,
                  ", expected lists of one depth: ", sizes.size());
      const Scalar number = value.isTensor() ? value.toTensor().item() : value.toScalar();
      const ScalarType type =
          number.isFloatingPoint() ? get_default_dtype_as_scalartype() : number.type();
      dtype = values.empty() ? type : promote_types(dtype, type);
      values.push_back(number);
      return;
    }
    const auto items = value.toList();
    const auto size = static_cast<int64_t>(items.size());
    if (first) sizes.push_back(size);
    if (size == 0 && dtype == ScalarType::Undefined)
      dtype = value.isIntList()    ? kLong
              : value.isBoolList() ? kBool
                                   : get_default_dtype_as_scalartype();
    RAMET_CHECK(depth < sizes.size() && sizes[depth] == size, "tensor", "got a list of ", size,
                " at depth ", depth, ", expected ", depth < sizes.size() ? sizes[depth] : 0);
    for (size_t i = 0; i < items.size(); ++i) take(items.vec()[i], depth + 1, first && i == 0);
  }
};

// The values of a list of one kind need no conversion one by one.
Tensor from_numbers(const IValue& data) {
  Numbers numbers;
  numbers.take(data, 0, true);
  if (numbers.values.empty()) return empty(numbers.sizes, TensorOptions(numbers.dtype));
  const bool real = isFloatingType(numbers.dtype);
  Tensor made = empty(numbers.sizes, TensorOptions(real ? kDouble : kLong).device(Device(kCPU, 0)));
  for (size_t i = 0; i < numbers.values.size(); ++i) {
    if (real) made.data_ptr<double>()[i] = numbers.values[i].toDouble();
    else made.data_ptr<int64_t>()[i] = numbers.values[i].toLong();
  }
  return made.to(numbers.dtype);
}

// dtype and device are the arguments from place 1 on.
Tensor placed(const Tensor& made, const Call& a) {
  return made.to(TensorOptions().dtype(a.may_dtype(1)).device(a.may_device(2)));
}
Tensor constructed(const Call& a) {
  // A tensor's values are copied, without its history.
  const Tensor made =
      placed(a[0].isTensor() ? a.tensor(0).detach().clone() : from_numbers(a[0]), a);
  return a.truth(3) ? made.requires_grad_() : made;
}
IValue as_tensor(const Call& a) {
  return placed(a[0].isTensor() ? a.tensor(0) : from_numbers(a[0]), a);
}

#define RAMET_CONSTRUCTED(overload, type)                         \
  RAMET_LINE("aten::tensor" overload "(" type                     \
             ", *, ScalarType? dtype=None, Device? device=None, " \
             "bool requires_grad=False) -> Tensor",               \
             constructed(a)),                                     \
      RAMET_LINE("aten::as_tensor" overload "(" type              \
                 ", *, ScalarType? dtype=None, "                  \
                 "Device? device=None) -> Tensor",                \
                 as_tensor(a)),

#define RAMET_SIZED(name)                                                                        \
  RAMET_LINE("aten::" #name "(int[] size, *, " RAMET_OPTIONS ") -> Tensor",                      \
             name(a.integers(0), a.options(1))),                                                 \
      RAMET_LINE("aten::new_" #name "(Tensor self, int[] size, *, " RAMET_OPTIONS ") -> Tensor", \
                 a.tensor(0).new_##name(a.integers(1), a.options(2))),                           \
      RAMET_LINE("aten::" #name "_like(Tensor self, *, " RAMET_OPTIONS                           \
                 ", MemoryFormat? memory_format=None) -> Tensor",                                \
                 name##_like(a.tensor(0), a.options(1), a.may_format(5))),

#define RAMET_SPACED(name, base, base_argument, place)                                          \
  RAMET_LINE("aten::" #name "(Scalar start, Scalar end, int steps" base ", *, " RAMET_OPTIONS   \
             ") -> Tensor",                                                                     \
             name(a.number(0), a.number(1), a.integer(2) base_argument, a.options(place))),     \
      RAMET_LINE("aten::" #name ".Tensor_Tensor(Tensor start, Tensor end, int steps" base       \
                 ", *, " RAMET_OPTIONS ") -> Tensor",                                           \
                 name(a.tensor(0), a.tensor(1), a.integer(2) base_argument, a.options(place))), \
      RAMET_LINE("aten::" #name ".Tensor_Scalar(Tensor start, Scalar end, int steps" base       \
                 ", *, " RAMET_OPTIONS ") -> Tensor",                                           \
                 name(a.tensor(0), a.number(1), a.integer(2) base_argument, a.options(place))), \
      RAMET_LINE("aten::" #name ".Scalar_Tensor(Scalar start, Tensor end, int steps" base       \
                 ", *, " RAMET_OPTIONS ") -> Tensor",                                           \
                 name(a.number(0), a.tensor(1), a.integer(2) base_argument, a.options(place))),

#define RAMET_DRAWN(name)                                                                        \
  RAMET_LINE("aten::" #name "(int[] size, *, " RAMET_OPTIONS ") -> Tensor",                      \
             name(a.integers(0), a.options(1))),                                                 \
      RAMET_LINE("aten::" #name ".generator(int[] size, *, Generator? generator, " RAMET_OPTIONS \
                 ") -> Tensor",                                                                  \
                 name(a.integers(0), a.may_generator(1), a.options(2))),                         \
      RAMET_LINE("aten::" #name "_like(Tensor self, *, " RAMET_OPTIONS                           \
                 ", MemoryFormat? memory_format=None) -> Tensor",                                \
                 name##_like(a.tensor(0), a.options(1), a.may_format(5))),                       \
      RAMET_LINE("aten::" #name                                                                  \
                 "_like.generator(Tensor self, *, Generator? generator, " RAMET_OPTIONS          \
                 ", MemoryFormat? memory_format=None) -> Tensor",                                \
                 name##_like(a.tensor(0), a.may_generator(1), a.options(2), a.may_format(6))),

#define RAMET_WINDOW(name)                                                                      \
  RAMET_LINE("aten::" #name "(int window_length, *, " RAMET_OPTIONS ") -> Tensor",              \
             name(a.integer(0), a.options(1))),                                                 \
      RAMET_LINE("aten::" #name ".periodic(int window_length, bool periodic, *, " RAMET_OPTIONS \
                 ") -> Tensor",                                                                 \
                 name(a.integer(0), a.truth(1), a.options(2))),

const Line kMake[] = {
    RAMET_CONSTRUCTED(".bool", "bool t") RAMET_CONSTRUCTED(".float", "float t")
        RAMET_CONSTRUCTED(".int", "int t") RAMET_LINE(
            "aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) "
            "-> Tensor(b|a)",
            as_tensor(a)),
    RAMET_LINE("aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) "
               "-> Tensor",
               as_tensor(a)),
    RAMET_LINE("aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, "
               "bool requires_grad=False) -> Tensor",
               constructed(a)),
    RAMET_LINE("prim::NumToTensor.Scalar(Scalar a) -> Tensor", scalar_to_tensor(a.number(0))),
    RAMET_LINE("prim::NumToTensor.bool(bool a) -> Tensor", scalar_to_tensor(a.truth(0))),
    RAMET_LINE("aten::scalar_tensor(Scalar s, *, " RAMET_OPTIONS ") -> Tensor",
               scalar_tensor(a.number(0), a.options(1))),
    RAMET_SIZED(zeros) RAMET_SIZED(ones)
        RAMET_LINE("aten::empty.memory_format(int[] size, *, " RAMET_OPTIONS
                   ", MemoryFormat? memory_format=None) -> Tensor",
                   empty(a.integers(0), a.options(1), a.may_format(5))),
    RAMET_LINE("aten::new_empty(Tensor self, int[] size, *, " RAMET_OPTIONS ") -> Tensor",
               a.tensor(0).new_empty(a.integers(1), a.options(2))),
    RAMET_LINE("aten::empty_like(Tensor self, *, " RAMET_OPTIONS
               ", MemoryFormat? memory_format=None) -> Tensor",
               empty_like(a.tensor(0), a.options(1), a.may_format(5))),
    RAMET_LINE("aten::empty_strided(int[] size, int[] stride, *, " RAMET_OPTIONS ") -> Tensor",
               empty_strided(a.integers(0), a.integers(1), a.options(2))),
    RAMET_LINE("aten::new_empty_strided(Tensor self, int[] size, int[] stride, *, " RAMET_OPTIONS
               ") -> Tensor",
               a.tensor(0).new_empty_strided(a.integers(1), a.integers(2), a.options(3))),
    RAMET_LINE("aten::full(int[] size, Scalar fill_value, *, " RAMET_OPTIONS ") -> Tensor",
               full(a.integers(0), a.number(1), a.options(2))),
    RAMET_LINE("aten::new_full(Tensor self, int[] size, Scalar fill_value, *, " RAMET_OPTIONS
               ") -> Tensor",
               a.tensor(0).new_full(a.integers(1), a.number(2), a.options(3))),
    RAMET_LINE("aten::full_like(Tensor self, Scalar fill_value, *, " RAMET_OPTIONS
               ", MemoryFormat? memory_format=None) -> Tensor",
               full_like(a.tensor(0), a.number(1), a.options(2), a.may_format(6))),
    RAMET_LINE("aten::arange(Scalar end, *, " RAMET_OPTIONS ") -> Tensor",
               arange(a.number(0), a.options(1))),
    RAMET_LINE("aten::arange.start(Scalar start, Scalar end, *, " RAMET_OPTIONS ") -> Tensor",
               arange(a.number(0), a.number(1), a.options(2))),
    RAMET_LINE("aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " RAMET_OPTIONS
               ") -> Tensor",
               arange(a.number(0), a.number(1), a.number(2), a.options(3))),
    RAMET_LINE("aten::range(Scalar start, Scalar end, *, " RAMET_OPTIONS ") -> Tensor",
               range(a.number(0), a.number(1), a.options(2))),
    RAMET_LINE("aten::range.step(Scalar start, Scalar end, Scalar step=1, *, " RAMET_OPTIONS
               ") -> Tensor",
               range(a.number(0), a.number(1), a.number(2), a.options(3))),
    RAMET_SPACED(linspace, "", , 3)
#define RAMET_BASE , a.real(3)
        RAMET_SPACED(logspace, ", float base=10.", RAMET_BASE, 4)
#undef RAMET_BASE
            RAMET_LINE("aten::eye(int n, *, " RAMET_OPTIONS ") -> Tensor",
                       eye(a.integer(0), a.options(1))),
    RAMET_LINE("aten::eye.m(int n, int m, *, " RAMET_OPTIONS ") -> Tensor",
               eye(a.integer(0), a.integer(1), a.options(2))),
    RAMET_LINE("aten::tril_indices(int row, int col, int offset=0, *, " RAMET_OPTIONS_OF(
                   "4") ") -> Tensor",
               tril_indices(a.integer(0), a.integer(1), a.integer(2), a.options(3))),
    RAMET_LINE("aten::triu_indices(int row, int col, int offset=0, *, " RAMET_OPTIONS_OF(
                   "4") ") -> Tensor",
               triu_indices(a.integer(0), a.integer(1), a.integer(2), a.options(3))),
    RAMET_WINDOW(bartlett_window) RAMET_WINDOW(blackman_window) RAMET_WINDOW(hamming_window)
        RAMET_WINDOW(hann_window) RAMET_WINDOW(kaiser_window) RAMET_DRAWN(rand) RAMET_DRAWN(randn)
            RAMET_LINE(
                "aten::randint(int high, int[] size, *, " RAMET_OPTIONS_OF("4") ") -> Tensor",
                randint(a.integer(0), a.integers(1), a.options(2))),
    RAMET_LINE(
        "aten::randint.generator(int high, int[] size, *, Generator? generator, " RAMET_OPTIONS_OF(
            "4") ") -> Tensor",
        randint(a.integer(0), a.integers(1), a.may_generator(2), a.options(3))),
    RAMET_LINE(
        "aten::randint.low(int low, int high, int[] size, *, " RAMET_OPTIONS_OF("4") ") -> Tensor",
        randint(a.integer(0), a.integer(1), a.integers(2), a.options(3))),
    RAMET_LINE(
        "aten::randint.low_generator(int low, int high, int[] size, *, "
        "Generator? generator, " RAMET_OPTIONS_OF("4") ") -> Tensor",
        randint(a.integer(0), a.integer(1), a.integers(2), a.may_generator(3), a.options(4))),
    RAMET_LINE("aten::randint_like(Tensor self, int high, *, " RAMET_OPTIONS
               ", MemoryFormat? memory_format=None) -> Tensor",
               randint_like(a.tensor(0), a.integer(1), a.options(2), a.may_format(6))),
    RAMET_LINE(
        "aten::randint_like.low_dtype(Tensor self, int low, int high, *, " RAMET_OPTIONS
        ", MemoryFormat? memory_format=None) -> Tensor",
        randint_like(a.tensor(0), a.integer(1), a.integer(2), a.options(3), a.may_format(7))),
    RAMET_LINE("aten::randperm(int n, *, " RAMET_OPTIONS_OF("4") ") -> Tensor",
               randperm(a.integer(0), a.options(1))),
    RAMET_LINE("aten::randperm.generator(int n, *, Generator? generator, " RAMET_OPTIONS_OF(
                   "4") ") -> Tensor",
               randperm(a.integer(0), a.may_generator(1), a.options(2))),
    RAMET_LINE("aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None)"
               " -> Tensor",
               normal(a.tensor(0), a.real(1), a.may_generator(2))),
    RAMET_LINE("aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None)"
               " -> Tensor",
               normal(a.real(0), a.tensor(1), a.may_generator(2))),
    RAMET_LINE("aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None)"
               " -> Tensor",
               normal(a.tensor(0), a.tensor(1), a.may_generator(2))),
    RAMET_LINE("aten::normal.float_float(float mean, float std, int[] size, *, "
               "Generator? generator=None, " RAMET_OPTIONS ") -> Tensor",
               normal(a.real(0), a.real(1), a.integers(2), a.may_generator(3), a.options(4))),
    RAMET_FUNCTION_LINE("aten::poisson(Tensor self, Generator? generator=None) -> Tensor", poisson),
    RAMET_FUNCTION_LINE("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot),
    RAMET_LINE("aten::meshgrid(Tensor[] tensors) -> Tensor[]", meshgrid(a.tensors(0))),
    RAMET_LINE("aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
               meshgrid(a.tensors(0), a.text(1))),
    RAMET_FUNCTION_LINE("aten::cartesian_prod(Tensor[] tensors) -> Tensor", cartesian_prod),
    RAMET_FUNCTION_LINE(
        "aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
        combinations),
    RAMET_FUNCTION_LINE("aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
                        vander),
};

}  // namespace

Lines lines_of_make() { return kMake; }

}  // namespace ramet::script
