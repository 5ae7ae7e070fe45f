// Copies of objects with all that they hold.
#include <algorithm>

#include "autograd/grad_mode.h"
#include "nn/script/archive_internal.h"

namespace ramet::script {
namespace {

constexpr int kMaxDepth = 256;
constexpr int64_t kLargestItem = 16;  // bytes

}  // namespace

const void* identity(const IValue& v) {
  if (v.isTensor()) return v.toTensor().defined() ? v.toTensor().impl() : nullptr;
  if (v.isObject()) return v.toObject().get();
  if (v.isTuple()) return v.toTuple().get();
  if (v.isGenericDict()) return v.toGenericDict().id();
  if (v.isIntList()) return &v.toIntVector();
  if (v.isDoubleList()) return &v.toDoubleVector();
  if (v.isBoolList()) return &v.toBoolList().vec();
  if (v.isTensorList()) return &v.toTensorVector();
  return v.isList() ? static_cast<const void*>(&v.toList().vec()) : nullptr;
}

std::shared_ptr<Object> DeepCopy::of(const std::shared_ptr<Object>& object) {
  find_parts(*object, 0);
  return copied(object, 0);
}

IValue DeepCopy::of(const IValue& value) {
  find_parts(value, 0);
  return copied(value, 0);
}

// ---- what tensors share -------------------------------------------------------------------------

void DeepCopy::find_parts(const Object& object, int depth) {
  if (!seen_.insert(&object).second) return;
  for (const IValue& slot : object.slots) find_parts(slot, depth + 1);
}

void DeepCopy::find_parts(const IValue& value, int depth) {
  RAMET_CHECK(depth <= kMaxDepth, "deepcopy", "values nested deeper than ", kMaxDepth,
              ", expected fewer");
  if (value.isObject()) {
    if (const auto object = object_in(value)) find_parts(*object, depth);
    return;
  }
  const void* const id = identity(value);
  if (!id || !seen_.insert(id).second) return;
  if (value.isTensor()) {
    const Tensor& t = value.toTensor();
    if (t.numel() == 0) return;
    const IntArrayRef strides = t.strides();  // the public layout from here on
    int64_t last = 0;
    for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * strides[static_cast<size_t>(d)];
    const auto item = static_cast<int64_t>(item_size(t.scalar_type()));
    const int64_t first = t.storage_offset() * item, end = first + (last + 1) * item;
    Part& part = parts_.emplace(t.storage_impl(), Part{first, end}).first->second;
    part.first = std::min(part.first, first);
    part.end = std::max(part.end, end);
    ++part.tensors;
  } else if (value.isTuple()) {
    for (const IValue& item : value.toTupleRef().elements()) find_parts(item, depth + 1);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) find_parts(entry.value(), depth + 1);
  } else if (value.isTensorList()) {
    for (const Tensor& t : value.toTensorVector()) find_parts(t, depth + 1);
  } else if (value.isGenericList()) {
    for (const IValue& item : value.toListRef()) find_parts(item, depth + 1);
  }
}

// ---- copies -------------------------------------------------------------------------------------

// The part of a storage that several tensors show is copied as bytes, once. Elements of other sizes
// may begin anywhere in it, so it keeps its offset modulo the largest of them.
Tensor DeepCopy::copied(const Tensor& t) {
  const NoGradGuard off;
  const auto at = parts_.find(t.storage_impl());
  if (t.numel() == 0 || at == parts_.end() || at->second.tensors < 2)
    return device_ ? t.detach().to(*device_, /*non_blocking=*/false, /*copy=*/true)
                   : t.detach().clone();
  Part& part = at->second;
  const int64_t first = part.first / kLargestItem * kLargestItem;
  if (!part.copy.defined()) {
    const Tensor bytes(TensorBase::over(t.storage_impl(), first, {part.end - first}, {1}, kByte));
    part.copy = device_ ? bytes.to(*device_, /*non_blocking=*/false, /*copy=*/true) : bytes.clone();
  }
  const auto item = static_cast<int64_t>(item_size(t.scalar_type()));
  return Tensor(TensorBase::over(part.copy.storage_impl(), t.storage_offset() * item - first,
                                 t.sizes(), t.strides(), t.scalar_type()));
}

IValue DeepCopy::copied(const IValue& value, int depth) {
  RAMET_CHECK(depth <= kMaxDepth, "deepcopy", "values nested deeper than ", kMaxDepth,
              ", expected fewer");
  const void* const id = identity(value);
  const auto once = [&](const auto& make) -> IValue {
    if (const auto at = made_.find(id); at != made_.end()) return at->second;
    IValue made = make();
    made_.emplace(id, made);
    return made;
  };
  if (value.isTensor()) {
    const Tensor& t = value.toTensor();
    if (!t.defined()) return value;
    return once([&]() -> IValue {
      Tensor made = copied(t);
      if (t.is_leaf() && t.requires_grad()) made.set_requires_grad(true);
      return made;
    });
  }
  if (value.isObject()) {
    const auto object = object_in(value);
    RAMET_CHECK(object, "deepcopy", "got an object of ", value.toObject()->class_name(),
                ", expected one of a TorchScript file");
    return IValue(IValue::ObjectPtr(copied(object, depth)));
  }
  if (value.isTuple()) {
    return once([&]() -> IValue {
      std::vector<IValue> items;
      for (const IValue& item : value.toTupleRef().elements())
        items.push_back(copied(item, depth + 1));
      return IValue::TuplePtr(
          std::make_shared<IValue::Tuple>(std::move(items), value.toTupleRef().names()));
    });
  }
  if (value.isGenericDict()) {
    return once([&]() -> IValue {
      IValue::GenericDict made;
      for (const auto& entry : value.toGenericDict())
        made.insert(copied(entry.key(), depth + 1), copied(entry.value(), depth + 1));
      return made;
    });
  }
  if (value.isIntList()) return once([&] { return IValue(value.toIntList().copy()); });
  if (value.isDoubleList()) return once([&] { return IValue(value.toDoubleList().copy()); });
  if (value.isBoolList()) return once([&] { return IValue(value.toBoolList().copy()); });
  if (value.isTensorList() || value.isList()) {
    return once([&]() -> IValue {
      if (value.isTensorList()) {
        List<Tensor> made;
        for (const Tensor& t : value.toTensorVector())
          made.push_back(copied(IValue(t), depth + 1).toTensor());
        return made;
      }
      IValue::GenericList made;
      for (const IValue& item : value.toListRef()) made.push_back(copied(item, depth + 1));
      return made;
    });
  }
  return value;
}

std::shared_ptr<Object> DeepCopy::copied(const std::shared_ptr<Object>& object, int depth) {
  if (object->info()->kind == ClassInfo::Kind::kEnum) return object;  // there is one of each
  if (const auto at = made_.find(object.get()); at != made_.end())
    return std::static_pointer_cast<Object>(at->second.toObject());
  const auto made = std::make_shared<Object>(object->unit(), object->info());
  made_.emplace(object.get(), IValue(IValue::ObjectPtr(made)));
  for (size_t i = 0; i < object->slots.size(); ++i)
    made->slots[i] = copied(object->slots[i], depth + 1);
  return made;
}

}  // namespace ramet::script

namespace ramet {

IValue IValue::deepcopy(std::optional<Device> device) const {
  return script::DeepCopy(device ? std::optional(resolve(*device)) : std::nullopt).of(*this);
}

}  // namespace ramet
