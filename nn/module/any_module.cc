#include "nn/module/any_module.h"

namespace ramet::nn {

std::vector<AnyValue> ForwardDefaults::complete(Module& module, std::vector<AnyValue>&& given,
                                                size_t expected) {
  const bool defaults = module._forward_has_default_args();
  if (!defaults) {
    RAMET_CHECK(given.size() == expected, "AnyModule", module.name(),
                "'s forward() method expects ", expected, " argument(s), but received ",
                given.size(), ". If ", module.name(),
                "'s forward() method has default arguments, please make sure that it is declared "
                "with a corresponding "
                "RAMET_FORWARD_HAS_DEFAULT_ARGS macro.");
    return std::move(given);
  }
  const size_t least = module._forward_num_required_args();
  RAMET_CHECK(given.size() >= least && given.size() <= expected, "AnyModule", module.name(),
              "'s forward() method expects at least ", least, " argument(s) and at most ", expected,
              " argument(s), but received ", given.size(), ".");
  return module._forward_populate_default_args(std::move(given));
}

namespace detail {

void wrong_argument(size_t index, const std::type_info& expected, const std::type_info& got) {
  fail("AnyModule", "Expected argument #", index, " to be of type ", type_name(expected),
       ", but received value of type ", type_name(got));
}
void wrong_module(const std::type_info& held, const std::type_info& asked) {
  fail("AnyModule", "Attempted to cast module of type ", type_name(held), " to type ",
       type_name(asked));
}

AnyValue call_boxed(Module& module, std::vector<AnyValue>&& arguments,
                    const std::function<AnyValue(std::vector<AnyValue>&&)>& forward) {
  const std::shared_ptr<const ModuleHooks> hooks = module.forward_hooks();
  const std::vector<std::shared_ptr<void>> scopes = hooks->enter(module);
  std::vector<Tensor> inputs, outputs;
  for (AnyValue& a : arguments)
    if (const Tensor* t = a.try_get<Tensor>()) inputs.push_back(*t);
  hooks->run_pre(module, inputs);
  size_t next = 0;
  for (AnyValue& a : arguments)
    if (Tensor* t = a.try_get<Tensor>()) *t = inputs[next++];
  AnyValue result = forward(std::move(arguments));
  const auto run_post = [&](auto* value) {
    if (!value) return false;
    using Kind = Outputs<std::decay_t<decltype(*value)>>;
    Kind::gather(outputs, *value);
    hooks->run_post(module, inputs, outputs);
    Kind::put(outputs, *value);
    return true;
  };
  if (!run_post(result.try_get<Tensor>()) && !run_post(result.try_get<std::vector<Tensor>>()) &&
      !run_post(result.try_get<std::tuple<Tensor, Tensor>>()) &&
      !run_post(result.try_get<std::tuple<Tensor, Tensor, Tensor>>()) &&
      !run_post(result.try_get<std::tuple<Tensor, std::tuple<Tensor, Tensor>>>()))
    hooks->run_post(module, inputs, outputs);
  return result;
}

std::vector<AnyValue> with_defaults(std::vector<AnyValue>&& arguments, DefaultArgs defaults) {
  std::vector<AnyValue> all = std::move(arguments);
  for (const auto& item : defaults)
    if (item.first >= all.size()) all.push_back(item.second);
  return all;
}

}  // namespace detail
}  // namespace ramet::nn
