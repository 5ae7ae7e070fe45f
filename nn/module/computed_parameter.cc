#include "nn/module/computed_parameter.h"

#include <algorithm>
#include <cstring>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"

namespace ramet::nn {

namespace {

// Where the object's bytes hold a handle of `t`.
std::vector<size_t> places_of(const Module& module, const Tensor& t) {
  const auto [bytes, size] = module.own_bytes();
  const char* const begin = static_cast<const char*>(bytes);
  const TensorImpl* const impl = t.impl();
  const size_t step = alignof(Tensor), skip = (step - reinterpret_cast<uintptr_t>(begin) % step);
  std::vector<size_t> out;
  for (size_t at = skip % step; at + sizeof(Tensor) <= size; at += step)
    if (std::memcmp(begin + at, &impl, sizeof(impl)) == 0) out.push_back(at);
  return out;
}
// How many handles of `t` the object holds outside the registry.
size_t held_by(const Module& module, const Tensor& t) {
  const auto before = t.impl()->refs.load();
  const std::unique_ptr<Module> copy = module.plain_copy();
  return static_cast<size_t>(t.impl()->refs.load() - before) - (copy ? 1 : 0);
}

using Hooks = std::shared_ptr<const ModuleHooks>;
std::shared_ptr<const ComputedParameter> find(const Hooks& hooks, const std::string& name) {
  if (hooks)
    for (const auto& c : hooks->computed)
      if (c->name() == name) return c;
  return nullptr;
}

}  // namespace

static_assert(sizeof(Tensor) == sizeof(TensorImpl*), "a handle is one pointer");

ComputedParameter::ComputedParameter(std::string op, std::string name)
    : op_(std::move(op)), name_(std::move(name)) {}
ComputedParameter::~ComputedParameter() = default;

std::vector<Tensor*> ComputedParameter::members(Module& module) const {
  char* const begin = static_cast<char*>(const_cast<void*>(module.own_bytes().first));
  std::vector<Tensor*> out;
  for (size_t at : places_) out.push_back(reinterpret_cast<Tensor*>(begin + at));
  return out;
}

void ComputedParameter::add(Module& module, const std::shared_ptr<ComputedParameter>& computed) {
  const char* const op = computed->op().c_str();
  const std::string& name = computed->name();
  const Hooks& hooks = std::as_const(module).forward_hooks();
  RAMET_CHECK(!find(hooks, name), op, "Cannot register two ", find(hooks, name)->op(),
              " hooks on the same parameter ", name);
  const Tensor* const parameter = module.own_parameters().find(name);
  RAMET_CHECK(parameter && parameter->defined(), op, module.name(), " has no parameter '", name,
              "'");
  computed->check(module, *parameter);
  for (const std::string& part : computed->parts())
    RAMET_CHECK(!module.own_parameters().contains(part) && !module.own_buffers().contains(part), op,
                module.name(), " already has a parameter or buffer '", part, "'");
  computed->places_ = places_of(module, *parameter);
  RAMET_CHECK(!computed->places_.empty() && computed->places_.size() == held_by(module, *parameter),
              op, module.name(), " holds no parameter '", name,
              "' in a member of its own: got a module that reads it elsewhere, or none that "
              "derives from Cloneable");
  computed->renew(module);
  auto changed = hooks ? std::make_shared<ModuleHooks>(*hooks) : std::make_shared<ModuleHooks>();
  changed->computed.push_back(computed);
  module.set_forward_hooks(std::move(changed));
}

void ComputedParameter::renew(Module& module) const {
  const Tensor parameter = module.own_parameters()[name_];
  module.unregister_tensor(name_);
  register_parts(module, parameter);
  for (Tensor* member : members(module)) *member = Tensor();
}

void ComputedParameter::remove(Module& module, const std::string& op, const std::string& name) {
  const Hooks& hooks = std::as_const(module).forward_hooks();
  const std::shared_ptr<const ComputedParameter> computed = find(hooks, name);
  RAMET_CHECK(computed && computed->op() == op, op.c_str(), op, " of '", name, "' not found in ",
              module.name());
  const Tensor now = computed->compute(module, /*in_call=*/false);
  auto changed = std::make_shared<ModuleHooks>(*hooks);
  auto& list = changed->computed;
  list.erase(std::find(list.begin(), list.end(), computed));
  for (const std::string& part : computed->parts()) module.unregister_tensor(part);
  const Tensor& plain =
      module.register_parameter(name, now.detach().clone(), /*requires_grad=*/now.requires_grad());
  for (Tensor* member : computed->members(module)) *member = plain;
  module.set_forward_hooks(changed->empty() ? nullptr : std::move(changed));
}

namespace {
// Nested calls of one module put back what they found.
class During {
 public:
  During(std::vector<Tensor*> members, const Tensor& value) : members_(std::move(members)) {
    for (Tensor* member : members_) before_.push_back(std::exchange(*member, value));
  }
  ~During() {
    for (size_t i = 0; i < members_.size(); ++i) *members_[i] = std::move(before_[i]);
  }
  During(const During&) = delete;

 private:
  std::vector<Tensor*> members_;
  std::vector<Tensor> before_;
};
}  // namespace

std::shared_ptr<void> ComputedParameter::enter(Module& module) const {
  RAMET_CHECK(!module.holds_shards(), op_.c_str(), module.name(),
              ": got shards of what the parameter is computed from, expected whole tensors");
  return std::make_shared<During>(members(module), compute(module, /*in_call=*/true));
}

}  // namespace ramet::nn
