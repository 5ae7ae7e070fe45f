#include "autograd/schema/arguments_internal.h"

namespace ramet::script {
namespace {

// By PyTorch's numbers. Complex and quantised dtypes have numbers there, and are not here.
constexpr std::pair<int64_t, ScalarType> kDtypes[] = {
    {0, ScalarType::Byte},      {1, ScalarType::Char},    {2, ScalarType::Short},
    {3, ScalarType::Int},       {4, ScalarType::Long},    {5, ScalarType::Half},
    {6, ScalarType::Float},     {7, ScalarType::Double},  {11, ScalarType::Bool},
    {15, ScalarType::BFloat16}, {27, ScalarType::UInt16}, {28, ScalarType::UInt32}};

}  // namespace

ScalarType dtype_of(int64_t number) {
  for (const auto& [known, dtype] : kDtypes)
    if (known == number) return dtype;
  RAMET_CHECK(false, "dtype", "got PyTorch's number ", number,
              ", expected that of a real dtype of up to 64 bits");
  return ScalarType::Undefined;
}

int64_t number_of(ScalarType dtype) {
  for (const auto& [number, known] : kDtypes)
    if (known == dtype) return number;
  RAMET_CHECK(false, "dtype", "got an undefined tensor, expected one with a dtype");
  return -1;
}

MemoryFormat format_of(int64_t number) {
  RAMET_CHECK(number >= 0 && number <= 3, "memory_format", "got PyTorch's number ", number,
              ", expected one from 0 to 3");
  if (number == 0) return MemoryFormat::Contiguous;
  return number == 1 ? MemoryFormat::Preserve : MemoryFormat::ChannelsLast;
}

Device device_of(const IValue& value) {
  return value.isString() ? Device(value.toStringRef()) : value.toDevice();
}

IntArrayRef Call::no_integers(size_t i) const {
  const IValue& list = (*this)[i];
  if (list.isList() && !list.isDoubleList() && list.toList().empty()) return {};
  return list.toIntVector();
}
TensorList Call::tensors(size_t i) const {
  const IValue& list = (*this)[i];
  if (!list.isTensorList() && list.isList() && list.toList().empty()) return {};
  return list.toTensorVector();
}
std::optional<Tensor> Call::may_tensor(size_t i) const {
  // An undefined tensor means the same as none: traces have them.
  return none(i) || !tensor(i).defined() ? std::nullopt : std::optional<Tensor>(tensor(i));
}
std::optional<int64_t> Call::may_integer(size_t i) const {
  return none(i) ? std::nullopt : std::optional<int64_t>(integer(i));
}
std::optional<double> Call::may_real(size_t i) const {
  return none(i) ? std::nullopt : std::optional<double>(real(i));
}
std::optional<bool> Call::may_truth(size_t i) const {
  return none(i) ? std::nullopt : std::optional<bool>(truth(i));
}
std::optional<Scalar> Call::may_number(size_t i) const {
  return none(i) ? std::nullopt : std::optional<Scalar>(number(i));
}
OptionalIntArrayRef Call::may_integers(size_t i) const {
  return none(i) ? OptionalIntArrayRef() : OptionalIntArrayRef(integers(i));
}
std::optional<ArrayRef<double>> Call::may_reals(size_t i) const {
  return none(i) ? std::nullopt : std::optional<ArrayRef<double>>(reals(i));
}
std::vector<std::optional<Tensor>> Call::optional_tensors(size_t i) const {
  std::vector<std::optional<Tensor>> made;
  const IValue& list = (*this)[i];
  if (list.isTensorList())
    for (const Tensor& item : list.toTensorVector())
      made.push_back(item.defined() ? std::optional<Tensor>(item) : std::nullopt);
  else
    for (const IValue& item : list.toListRef())
      made.push_back(item.isNone() ? std::nullopt : std::optional<Tensor>(item.toTensor()));
  return made;
}
std::optional<std::string_view> Call::may_text(size_t i) const {
  return none(i) ? std::nullopt : std::optional<std::string_view>(text(i));
}
std::optional<ScalarType> Call::may_dtype(size_t i) const {
  return none(i) ? std::nullopt : std::optional<ScalarType>(dtype(i));
}
std::optional<MemoryFormat> Call::may_format(size_t i) const {
  return none(i) ? std::nullopt : std::optional<MemoryFormat>(format_of(integer(i)));
}
std::optional<Generator> Call::may_generator(size_t i) const {
  return none(i) ? std::nullopt : std::optional<Generator>((*this)[i].toGenerator());
}
std::optional<Device> Call::may_device(size_t i) const {
  return none(i) ? std::nullopt : std::optional<Device>(device_of((*this)[i]));
}
TensorOptions Call::options(size_t i) const {
  RAMET_CHECK(none(i + 1) || integer(i + 1) == 0, "layout", "got PyTorch's number ", (*this)[i + 1],
              ", expected 0: strided");
  return TensorOptions()
      .dtype(may_dtype(i))
      .device(may_device(i + 2))
      .pinned_memory(may_truth(i + 3).value_or(false));
}

IValue result(std::vector<Tensor> tensors) { return List<Tensor>(std::move(tensors)); }
IValue result(std::vector<IValue> elements) {
  return IValue::TuplePtr(std::make_shared<IValue::Tuple>(std::move(elements)));
}

}  // namespace ramet::script
