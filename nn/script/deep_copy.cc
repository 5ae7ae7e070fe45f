// Copies of objects with all that they hold.
#include "autograd/grad_mode.h"
#include "nn/script/archive_internal.h"

namespace ramet::script {
namespace {

constexpr int kMaxDepth = 256;

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

IValue DeepCopy::of(const IValue& value, int depth) {
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
      const NoGradGuard off;
      Tensor made = device_ ? t.detach().to(*device_, /*non_blocking=*/false, /*copy=*/true)
                            : t.detach().clone();
      if (t.is_leaf() && t.requires_grad()) made.set_requires_grad(true);
      return made;
    });
  }
  if (value.isObject()) {
    const auto object = object_in(value);
    RAMET_CHECK(object, "deepcopy", "got an object of ", value.toObject()->class_name(),
                ", expected one of a TorchScript file");
    return IValue(IValue::ObjectPtr(of(object, depth)));
  }
  if (value.isTuple()) {
    return once([&]() -> IValue {
      std::vector<IValue> items;
      for (const IValue& item : value.toTupleRef().elements()) items.push_back(of(item, depth + 1));
      return IValue::TuplePtr(
          std::make_shared<IValue::Tuple>(std::move(items), value.toTupleRef().names()));
    });
  }
  if (value.isGenericDict()) {
    return once([&]() -> IValue {
      IValue::GenericDict made;
      for (const auto& entry : value.toGenericDict())
        made.insert(of(entry.key(), depth + 1), of(entry.value(), depth + 1));
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
        for (const Tensor& t : value.toTensorVector()) made.push_back(of(t, depth + 1).toTensor());
        return made;
      }
      IValue::GenericList made;
      for (const IValue& item : value.toListRef()) made.push_back(of(item, depth + 1));
      return made;
    });
  }
  return value;
}

std::shared_ptr<Object> DeepCopy::of(const std::shared_ptr<Object>& object, int depth) {
  if (object->info()->kind == ClassInfo::Kind::kEnum) return object;  // there is one of each
  if (const auto at = made_.find(object.get()); at != made_.end())
    return std::static_pointer_cast<Object>(at->second.toObject());
  const auto made = std::make_shared<Object>(object->unit(), object->info());
  made_.emplace(object.get(), IValue(IValue::ObjectPtr(made)));
  for (size_t i = 0; i < object->slots.size(); ++i)
    made->slots[i] = of(object->slots[i], depth + 1);
  return made;
}

}  // namespace ramet::script
