#include <nlohmann/json.hpp>

#include "nn/c/layers_internal.h"
#include "nn/module/flat_store.h"
#include "nn/module/sequential.h"

namespace ramet::c {

using namespace ramet::nn;

namespace {

constexpr int kMaxDepth = 64;

AnyModule build(Reader& r, int depth);

AnyModule sequential(Reader& r, int depth) {
  const Json* const layers = r.entry("layers");
  if (!layers || !layers->is_array()) r.refuse("layers", "a list of modules");
  RAMET_CHECK(depth < kMaxDepth, r.op(), r.place("layers"), ": modules are more than ", kMaxDepth,
              " deep");
  r.finish();
  Sequential made;
  for (size_t i = 0; i < layers->size(); ++i) {
    Reader layer(r.op(), (*layers)[i], r.place("layers") + "[" + std::to_string(i) + "]",
                 "a module");
    std::string name = std::to_string(i);
    layer.read("name", name);
    AnyModule module = build(layer, depth + 1);
    try {
      made->push_back(name, std::move(module));
    } catch (Error& error) {
      error.add_context(layer.place("name"));
      throw;
    }
  }
  return AnyModule(made);
}

AnyModule build(Reader& r, int depth) {
  const bool has_layers = r.entry("layers") != nullptr;
  const std::string type = has_layers && !r.entry("type") ? "Sequential" : r.text("type");
  r.set_what(type);
  if (type == "Sequential") return sequential(r, depth);
  for (const Layer& layer : all_layers())
    if (type == layer.type) return layer.make(r);
  r.refuse("type", "one of the modules that ramet/c.h lists");
}

ScalarType module_dtype(Reader& r) {
  std::string name = "float32";
  r.read("dtype", name);
  if (name == "float32") return kFloat32;
  if (name == "float64") return kFloat64;
  if (name == "float16") return kFloat16;
  if (name == "bfloat16") return kBFloat16;
  r.refuse("dtype", R"("float32", "float64", "float16" or "bfloat16")");
}

}  // namespace

nn::AnyModule module_of_json(const char* op, const std::string& text) {
  const auto json = parse_json(op, text);
  Reader r(op, *json, "", "a module");
  const ScalarType dtype = module_dtype(r);
  AnyModule made = build(r, 0);
  if (dtype != kFloat32) made.ptr()->to(dtype);
  // Flattens now: an optimizer would move the parameters later, and the caller's pointers would be
  // stale.
  flatten_parameters(made.ptr()->parameters());
  return made;
}

}  // namespace ramet::c
