#include "parallel/distributed/checkpoint/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "parallel/distributed/checkpoint/checkpoint_content_internal.h"

namespace ramet::distributed {

using detail::CheckpointContent;
using detail::state_key;

namespace {

constexpr const char* kOp = "DistributedCheckpoint";
constexpr const char* kGenerators = "generators";  // ramet::Checkpoint's

struct TensorList {
  std::vector<TensorPart> parts;
  void save(serialize::OutputArchive& archive) const {
    for (const TensorPart& p : parts) archive.write(p.name, p.local);
  }
  void load(serialize::InputArchive& archive) {
    for (const TensorPart& p : parts) archive.read_values(p.name, p.local);
  }
};

struct PlanPart {
  std::function<DistributedCheckpoint::Plan()> get;
  std::function<void(const DistributedCheckpoint::Plan&)> set;
  DistributedCheckpoint::Plan loaded;

  static std::string key(int64_t i) { return "bucket" + std::to_string(i); }
  void save(serialize::OutputArchive& archive) const {
    int64_t n = 0;
    for (const std::vector<std::string>& bucket : get()) {
      std::string text;
      for (const std::string& name : bucket) text += name + "\n";
      archive.write(key(n++), IValue(text));
    }
    archive.write("buckets", IValue(n));
  }
  void load(serialize::InputArchive& archive) {
    IValue n, text;
    archive.read("buckets", n);
    loaded.clear();
    for (int64_t i = 0; i < n.toInt(); ++i) {
      archive.read(key(i), text);
      auto lines = ramet::detail::classic<std::istringstream>(text.toStringRef());
      loaded.emplace_back();
      for (std::string name; std::getline(lines, name);) loaded.back().push_back(name);
    }
  }
};

void check(const std::vector<TensorPart>& parts) {
  std::set<std::string> names;
  for (const TensorPart& p : parts) {
    RAMET_CHECK(p.local.defined(), kOp, "\"", p.name, "\": got an undefined tensor");
    RAMET_CHECK(!p.name.empty() && names.insert(p.name).second, kOp, "name of a tensor: got \"",
                p.name, p.name.empty() ? "\"" : "\" twice");
    const int64_t n = elements_of(p.name, p.sizes, p.cuts);
    RAMET_CHECK(p.local.numel() == n, kOp, "\"", p.name, "\": got ", describe(p.local),
                ", expected the ", n, " elements of its part");
  }
}

}  // namespace

DistributedCheckpoint::DistributedCheckpoint(std::shared_ptr<ProcessGroup> group)
    : group_(std::move(group)),
      names_{kGenerators},
      own_{kGenerators},
      homes_(std::make_shared<std::vector<const nn::Module*>>()) {
  RAMET_CHECK(group_, kOp, "got no group");
  parts_.generators_of([modules = homes_] {
    std::vector<Device> gpus;
    for (const nn::Module* m : *modules)
      for (const Tensor& p : m->parameters())
        if (!p.device().is_cpu() && std::ranges::find(gpus, p.device()) == gpus.end())
          gpus.push_back(p.device());
    return gpus;
  });
}

void DistributedCheckpoint::note(const std::string& name) {
  RAMET_CHECK(name.find('@') == std::string::npos, kOp, "name of a part: got \"", name,
              "\", expected one without @");
  names_.insert(name);
}

DistributedCheckpoint& DistributedCheckpoint::add(const std::string& name, nn::Module& module,
                                                  std::vector<TensorPart> spread) {
  check(spread);
  std::set<std::string> known;
  for (const auto& item : module.named_parameters()) known.insert(item.key());
  for (const auto& item : module.named_buffers()) known.insert(item.key());
  for (const TensorPart& p : spread)
    RAMET_CHECK(known.count(p.name), kOp, "part \"", name, "\": got a tensor \"", p.name,
                "\", which is no parameter or buffer of the module");
  add(name, module);
  for (TensorPart& p : spread) {
    const std::string key = name + "." + p.name;
    spread_[key] = std::move(p);
  }
  return *this;
}

DistributedCheckpoint& DistributedCheckpoint::add(const std::string& name,
                                                  optim::Optimizer& optimizer,
                                                  const nn::Module& module) {
  std::vector<TensorPart> parameters;
  for (const auto& item : module.named_parameters())
    if (item.value().defined())
      parameters.push_back({item.key(), item.value().sizes().vec(), {}, item.value()});
  return add(name, optimizer, std::move(parameters));
}

DistributedCheckpoint& DistributedCheckpoint::add(const std::string& name,
                                                  optim::Optimizer& optimizer,
                                                  std::vector<TensorPart> parameters) {
  check(parameters);
  parts_.add(name, optimizer);
  note(name);
  optimizers_.push_back({name, &optimizer, std::move(parameters)});
  return *this;
}

DistributedCheckpoint& DistributedCheckpoint::add_tensors(const std::string& name,
                                                          std::vector<TensorPart> tensors) {
  check(tensors);
  const auto list = std::make_shared<TensorList>(TensorList{tensors});
  parts_.add(name, *list);
  note(name);
  lists_.push_back(list);
  modules_.insert(name);
  for (TensorPart& p : tensors) {
    const std::string key = name + "." + p.name;
    spread_[key] = std::move(p);
  }
  return *this;
}

DistributedCheckpoint& DistributedCheckpoint::add_plan(const std::string& name,
                                                       std::function<Plan()> get,
                                                       std::function<void(const Plan&)> set) {
  const auto part = std::make_shared<PlanPart>(PlanPart{std::move(get), std::move(set), {}});
  add(name, *part);
  lists_.push_back(part);
  last_.emplace_back([part] { part->set(part->loaded); });
  return *this;
}

// ---- what there is ------------------------------------------------------------------------------

// The names of an optimizer's parameters, in its order.
std::vector<std::string> DistributedCheckpoint::States::names() const {
  std::map<const void*, const std::string*> known;
  for (const TensorPart& p : parameters) known.emplace(p.local.impl(), &p.name);
  std::vector<std::string> names;
  for (const optim::OptimizerParamGroup& group : optimizer->param_groups()) {
    for (const Tensor& p : group.params()) {
      const auto found = known.find(p.impl());
      RAMET_CHECK(found != known.end(), kOp, "optimizer \"", name, "\": got parameter ",
                  names.size(), ", ", describe(p), ", which is none of those it was added with");
      names.push_back(*found->second);
    }
  }
  return names;
}

CheckpointContent DistributedCheckpoint::collect() const {
  serialize::OutputArchive archive;
  parts_.save(archive);
  CheckpointContent content = CheckpointContent::of(archive);
  for (const States& s : optimizers_) {
    const std::vector<std::string> names = s.names();
    const std::string state = s.name + ".state";
    content.rename([&](const std::string& key) -> std::optional<std::string> {
      const bool numbered = key.compare(0, state.size(), state) == 0 && key.size() > state.size() &&
                            std::isdigit(static_cast<unsigned char>(key[state.size()]));
      if (!numbered) return key;
      const size_t i = std::stoul(key.substr(state.size()));
      return state_key(s.name, names.at(i)) + key.substr(state_key(s.name, i).size());
    });
  }
  return content;
}

// The parameter that a key of an optimizer's state belongs to.
const TensorPart* DistributedCheckpoint::state_of(const std::string& key) const {
  for (const States& s : optimizers_) {
    if (!detail::inside(key, s.name + ".state")) continue;
    for (const TensorPart& p : s.parameters)
      if (detail::inside(key, state_key(s.name, p.name))) return &p;
  }
  return nullptr;
}

TensorPart DistributedCheckpoint::described(const std::string& key, const Tensor& tensor) const {
  const auto declared = spread_.find(key);
  if (declared != spread_.end()) {
    RAMET_CHECK(declared->second.local.numel() == tensor.numel(), kOp, "\"", key, "\": got ",
                describe(tensor), ", expected the ", declared->second.local.numel(),
                " elements it was added with");
    return {key, declared->second.sizes, declared->second.cuts, tensor};
  }
  const TensorPart* parameter = state_of(key);
  if (parameter && parameter->local.sizes() == tensor.sizes())
    return {key, parameter->sizes, parameter->cuts, tensor};
  return {key, tensor.sizes().vec(), {}, tensor};
}

bool DistributedCheckpoint::fixed(const std::string& key) const {
  return modules_.count(detail::part_of(key)) != 0;
}

}  // namespace ramet::distributed
