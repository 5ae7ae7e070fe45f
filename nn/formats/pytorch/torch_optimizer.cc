// LibTorch's layout: {"state": {"94512": {...}}, "param_groups": {"param_groups/size": tensor(1),
// "param_groups/0": {"params/size": tensor(2), "params/0": "94512", ..., "options": {"lr": ...}}}},
// where the numbers were addresses. Python's: {"state": {0: {...}}, "param_groups": [{"params": [0,
// 1], "lr": ...}]}. Ours (nn/optim/optimizer.cc): {"groups": 1, "group0": {"params": 2, "options":
// {"lr": ...}}, "state0": {...}}.
#include <cmath>

#include "autograd/ops/make/factory.h"
#include "nn/formats/pytorch/pickle_internal.h"
#include "nn/formats/pytorch/torch_optimizer_internal.h"

namespace ramet::formats::detail {
namespace {

const IValue* find(const IValue& dict, const std::string& key) {
  if (!dict.isGenericDict()) return nullptr;
  const auto at = dict.toGenericDict().find(key);
  return at == dict.toGenericDict().end() ? nullptr : &at->value();
}

class Translation {
 public:
  Translation(const IValue& tree, const std::string& where) : where_(where) {
    const IValue &groups = member(tree, "param_groups"), &states = member(tree, "state");
    if (!states.isGenericDict()) bad("state", "no dictionary");
    for (const auto& entry : states.toGenericDict())
      states_.insert(key_text(entry.key()), entry.value());
    if (groups.isList()) {
      for (const IValue& group : groups.toListRef()) python_group(group);
    } else {
      const int64_t n = whole(member(groups, "param_groups/size"), "param_groups/size");
      for (int64_t g = 0; g < n; ++g)
        cpp_group(member(groups, "param_groups/" + std::to_string(g)));
    }
    made.insert("groups", groups_);
  }

  IValue::GenericDict made;

 private:
  [[noreturn]] void bad(const std::string& key, const std::string& what) const {
    fail("torch_archive", where_, ", optimizer's \"", key, "\": got ", what,
         ", expected what PyTorch's or LibTorch's optimizers write");
  }
  const IValue& member(const IValue& dict, const std::string& key) const {
    const IValue* found = find(dict, key);
    if (!found) bad(key, "nothing");
    return *found;
  }
  // Steps and counts, which may be tensors of one element.
  int64_t whole(const IValue& value, const std::string& key) const {
    if (value.isInt()) return value.toInt();
    if (!value.isTensor() || value.toTensor().numel() != 1) bad(key, "no number");
    const double x = value.toTensor().item<double>();
    if (!(x >= 0 && x < 9e15 && x == std::floor(x))) bad(key, "no whole number");
    return static_cast<int64_t>(x);
  }

  void python_group(const IValue& group) {
    const IValue& params = member(group, "params");
    if (!params.isList()) bad("params", "no list");
    std::vector<std::string> keys;
    for (const IValue& key : params.toListRef()) keys.push_back(key_text(key));
    add_group(keys, group);
  }
  void cpp_group(const IValue& group) {
    const int64_t n = whole(member(group, "params/size"), "params/size");
    std::vector<std::string> keys;
    for (int64_t i = 0; i < n; ++i)
      keys.push_back(key_text(member(group, "params/" + std::to_string(i))));
    add_group(keys, member(group, "options"));
  }

  void add_group(const std::vector<std::string>& keys, const IValue& options) {
    if (!options.isGenericDict()) bad("options", "no dictionary");
    // Options that are newer than the file may be missing in it.
    IValue::GenericDict ours = {{"maximize", false}, {"decoupled_weight_decay", false}};
    for (const auto& entry : options.toGenericDict()) {
      const std::string name = key_text(entry.key());
      const IValue& value = entry.value();
      if (name == "betas") add_parts(ours, name, {"beta1", "beta2"}, value);
      else if (name == "etas") add_parts(ours, name, {"etaminus", "etaplus"}, value);
      else if (name == "step_sizes")
        add_parts(ours, name, {"step_size_min", "step_size_max"}, value);
      else if (name == "ns_coefficients") add_parts(ours, name, {"ns_a", "ns_b", "ns_c"}, value);
      else if (name == "max_iter" || name == "max_eval" || name == "history_size" ||
               name == "ns_steps")
        ours.insert_or_assign(name, value);
      else if (name != "params") ours.insert_or_assign(name, number(name, value));
    }
    add_class(class_by(options), ours);
    for (const std::string& key : keys) {
      if (states_.contains(key)) add_state(states_.at(key));
      ++parameters_;
    }
    IValue::GenericDict group;
    group.insert("params", static_cast<int64_t>(keys.size()));
    group.insert("options", ours);
    made.insert("group" + std::to_string(groups_++), group);
  }

  // Files do not hold the class, but their options show it: "" where two classes have these
  // options.
  static std::string class_by(const IValue& options) {
    const auto has = [&](const char* name) { return find(options, name) != nullptr; };
    if (has("momentum_decay")) return "NAdam";
    if (has("lambd")) return "ASGD";
    if (has("etas")) return "Rprop";
    if (has("rho")) return "Adadelta";
    if (has("initial_accumulator_value")) return "Adagrad";
    if (has("centered")) return "RMSprop";
    if (has("history_size")) return "LBFGS";
    if (has("dampening")) return "SGD";
    if (has("ns_coefficients")) return "Muon";
    if (!has("decoupled_weight_decay")) return "";
    if (!has("amsgrad")) return "RAdam";
    const IValue& decoupled = *find(options, "decoupled_weight_decay");
    return decoupled.isBool() && decoupled.toBool() ? "AdamW" : "Adam";
  }
  // A load() compares the class with its optimizer's. Cases that load() would not notice are
  // refused here.
  void add_class(const std::string& name, const IValue::GenericDict& options) {
    const IValue& maximize = options.at("maximize");
    const bool can = name == "NAdam" || name == "ASGD" || name == "Rprop" || name == "Adadelta" ||
                     name == "Adagrad" || name == "RAdam";
    if (!can && maximize.isBool() && maximize.toBool()) bad("maximize", "true");
    if (name.empty()) return;
    const IValue full = "ramet::optim::" + name + "Options";
    if (!made.insert("options", full).second &&
        made.at("options").toStringRef() != full.toStringRef())
      bad("param_groups", "groups of several optimizers");
  }

  // There several numbers stand under one name; here each has its own name.
  void add_parts(const IValue::GenericDict& ours, const std::string& name,
                 const std::vector<const char*>& parts, const IValue& value) const {
    if (!value.isTuple() || value.toTupleRef().size() != parts.size())
      bad(name, "another number of values");
    for (size_t i = 0; i < parts.size(); ++i)
      ours.insert(parts[i], number(name, value.toTupleRef().elements()[i]));
  }
  // Python writes a whole number where a program said lr=1, and a tensor where the rate is a
  // tensor.
  IValue number(const std::string& name, const IValue& value) const {
    if (value.isInt()) return IValue(static_cast<double>(value.toInt()));
    if (value.isOpaque()) bad(name, value.toOpaque().name);
    if (!value.isTensor()) return value;
    if (value.toTensor().numel() != 1) bad(name, "no number");
    return value.toTensor().item<double>();
  }
  IValue tensors(const std::string& name, const IValue& value) const {
    if (!value.isList()) bad(name, "no list");
    std::vector<Tensor> list;
    for (const IValue& item : value.toList().vec()) {
      if (!item.isTensor()) bad(name, "a list of other things than tensors");
      list.push_back(item.toTensor());
    }
    return list;
  }
  void add_state(const IValue& state) {
    if (!state.isGenericDict()) bad("state", "no dictionary of a parameter");
    IValue::GenericDict ours;
    for (const auto& entry : state.toGenericDict()) {
      const std::string name = key_text(entry.key());
      const IValue& value = entry.value();
      if (value.isNone()) continue;
      if (name == "step") {
        ours.insert(name, whole(value, name));
      } else if ((name == "mu_product" || name == "eta") && value.isTensor()) {
        ours.insert(name, number(name, value));
      } else if (name == "t" || name == "prev_loss") {  // of LBFGS, as all that follow
        ours.insert(name, number(name, value));
      } else if (name == "H_diag" && value.isInt()) {
        ours.insert(name, full({}, value.toInt(), TensorOptions(kFloat)));
      } else if (name == "old_dirs" || name == "old_stps" || name == "ro") {
        ours.insert(name, tensors(name, value));
      } else if (name != "al") {  // which each step writes anew
        ours.insert(name, value);
      }
    }
    made.insert("state" + std::to_string(parameters_), ours);
  }

  const std::string& where_;
  Dict<std::string, IValue> states_;
  int64_t groups_ = 0, parameters_ = 0;
};

}  // namespace

bool is_optimizer(const IValue& tree) {
  return tree.isGenericDict() && tree.toGenericDict().contains("param_groups") &&
         tree.toGenericDict().contains("state");
}

IValue optimizer_archive(const IValue& tree, const std::string& where) {
  return Translation(tree, where).made;
}

}  // namespace ramet::formats::detail
