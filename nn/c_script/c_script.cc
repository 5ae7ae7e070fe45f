#include "nn/c_script/c_script.h"

#include "nn/c/modules_internal.h"
#include "nn/script/script.h"

namespace ramet::c {
namespace {

void gather(std::vector<Tensor>& into, const IValue& value) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) into.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const IValue& item : value.toTupleRef().elements()) gather(into, item);
  } else if (value.isTensorList()) {
    for (const Tensor& t : value.toTensorVector()) into.push_back(t);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) gather(into, entry.value());
  } else if (value.isGenericList()) {
    for (const IValue& item : value.toListRef()) gather(into, item);
  }
}

}  // namespace
}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

extern "C" {

ramet_module* ramet_script_load(const char* path, const char* device) {
  return result_of(__func__, [&](const char* op) {
    script::LoadOptions options;
    if (device) options.device = Device(device);
    return handle_of(module_object(nn::AnyModule(script::load(text(path, op, "path"), options))));
  });
}

int ramet_script_forward(const ramet_module* module, const ramet_tensor* const* inputs,
                         int64_t count, ramet_tensor** results, int64_t capacity, int64_t* made) {
  return status_of(__func__, [&](const char* op) {
    const auto object = object_of<ModuleObject>(module, op, "module");
    RAMET_CHECK(count >= 0 && capacity >= 0, op, "count, capacity: expected 0 or more, got ", count,
                ", ", capacity);
    int64_t& number = there(made, op, "made");
    std::vector<nn::AnyValue> values;
    for (int64_t i = 0; i < count; ++i)
      values.emplace_back(tensor_of((&there(inputs, op, "inputs"))[i], op, "inputs"));
    nn::AnyValue result = object->module.forward_values(std::move(values));
    std::vector<Tensor> tensors;
    if (const auto* value = result.try_get<IValue>()) gather(tensors, *value);
    else tensors.push_back(result.get<Tensor>());
    RAMET_CHECK(!tensors.empty(), op, "the result: expected a tensor, got none");
    RAMET_CHECK(static_cast<int64_t>(tensors.size()) <= capacity, op, "capacity: expected ",
                tensors.size(), " or more, got ", capacity);
    there(results, op, "results");
    for (size_t i = 0; i < tensors.size(); ++i) results[i] = handle_of(tensors[i]);
    number = static_cast<int64_t>(tensors.size());
  });
}

int ramet_script_save(const ramet_module* module, const char* path) {
  return status_of(__func__, [&](const char* op) {
    const auto object = object_of<ModuleObject>(module, op, "module");
    const auto* const net = dynamic_cast<const script::ScriptModule*>(object->module.ptr().get());
    RAMET_CHECK(net, op, "module: expected one of ramet_script_load, got ",
                object->module.ptr()->name());
    net->script().save(text(path, op, "path"));
  });
}

}  // extern "C"
