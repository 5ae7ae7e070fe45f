#include <algorithm>
#include <functional>
#include <map>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/script/folding_internal.h"
#include "nn/script/folding_reader_internal.h"

namespace ramet::script {
namespace {

using Code = Instruction::Code;
using ObjectPtr = std::shared_ptr<Object>;

// A call of one module with the result of another, which nothing else reads.
struct Pair {
  ObjectPtr convolution, norm;
};

// Which objects the functions call, and which they hold as values.
class Uses {
 public:
  explicit Uses(Listings& listings) : listings_(listings) {}
  void add(const ScriptFunction& function, const ObjectPtr& self) {
    if (!seen_.emplace(&function, self.get()).second) return;
    waiting_.emplace_back(&function, self);
  }
  // False where a call may reach any object.
  bool find() {
    while (known_ && !waiting_.empty()) {
      const auto [function, self] = waiting_.back();
      waiting_.pop_back();
      if (seen_.size() > kMost) return false;
      scan(*function, self);
    }
    return known_;
  }
  // Is it called from one place, and nowhere held?
  bool once(const Object* object) const {
    const auto at = calls_.find(object);
    return at != calls_.end() && at->second == 1 && held_.count(object) == 0;
  }
  const std::vector<Pair>& pairs() const { return pairs_; }

 private:
  static constexpr size_t kMost = 100'000;  // functions with an object

  void hold(const ObjectPtr& object) {
    if (!held_.insert(object.get()).second) return;
    for (const IValue& value : object->slots)
      if (const auto child = module_in(value)) hold(child);
  }
  void scan(const ScriptFunction& function, const ObjectPtr& self);

  Listings& listings_;
  std::set<std::pair<const ScriptFunction*, const Object*>> seen_;
  std::vector<std::pair<const ScriptFunction*, ObjectPtr>> waiting_;
  std::map<const Object*, int> calls_;
  std::set<const Object*> held_;
  std::vector<Pair> pairs_;
  bool known_ = true;
};

// Are all arguments but the first what the function takes by default?
bool defaults(const Program& p, const Instruction& at, const ScriptFunction& function) {
  for (size_t i = 2; i < at.count; ++i) {
    const Operand given = p.operands[at.first + i];
    const std::optional<IValue>& value = function.parameters.at(i).value;
    if (!given.is_constant() || !value || !p.constants[given.index()].is(*value)) return false;
  }
  return true;
}

void Uses::scan(const ScriptFunction& function, const ObjectPtr& self) {
  if (!function.program) {
    known_ = false;
    return;
  }
  const Program& p = *listings_.of(function).program;
  for (const auto& nested : p.nested) add(*nested, nullptr);
  std::vector<int> writes(p.slots, 0), reads(p.slots, 0);
  for (const Operand& operand : p.operands)
    if (!operand.is_constant()) ++reads[operand.index()];
  for (const Instruction& at : p.instructions)
    if (at.result != Instruction::kNone) ++writes[at.result];
  std::vector<ObjectPtr> objects(p.slots);  // that slots hold
  if (self && writes[0] == 0) objects[0] = self;
  std::map<uint32_t, ObjectPtr> made;  // results of calls that are read once
  for (const Instruction& at : p.instructions) {
    const auto object = [&](size_t i) {
      const Operand o = p.operands[at.first + i];
      return o.is_constant() ? module_in(p.constants[o.index()]) : objects[o.index()];
    };
    const bool alone = at.result != Instruction::kNone && writes[at.result] == 1;
    size_t first = 0;  // operand that may be a value
    switch (at.code) {
      case Code::kFree: continue;
      case Code::kGet:
        if (const auto owner = object(0)) {
          const Program::Field& field = p.fields[at.extra];
          const auto child =
              owner->info() == field.owner ? module_in(owner->slots[field.slot]) : nullptr;
          if (child && alone) objects[at.result] = child;
          else if (child) hold(child);
        } else {  // of an object that is not known
          const Program::Field& field = p.fields[at.extra];
          const ClassInfo* const info = field.owner->attributes[field.slot].type->info();
          const bool plain = !info || info->kind == ClassInfo::Kind::kClass ||
                             info->kind == ClassInfo::Kind::kEnum;
          if (!plain) known_ = false;
        }
        continue;
      case Code::kMove:
        if (const auto moved = object(0)) {
          if (alone) objects[at.result] = moved;
          else hold(moved);
        }
        continue;
      case Code::kFunction:
      case Code::kMethod: {
        const auto called = at.count > 0 ? object(0) : nullptr;
        const ScriptFunction* const to = at.code == Code::kFunction ? p.functions[at.extra]
                                         : called ? called->info()->method(p.names[at.extra])
                                                  : nullptr;
        const bool plain = to && to->owner && to->owner->kind != ClassInfo::Kind::kModule;
        // A method of a module that is not known.
        if (!to || (to->owner && !plain && !called)) known_ = false;
        if (!known_) return;
        add(*to, called);
        first = 1;
        if (!called || called == self) break;
        ++calls_[called.get()];
        if (at.count < 2 || to->name != called->info()->name + ".forward" ||
            !defaults(p, at, *to)) {
          calls_[called.get()] += 2;  // another method
          break;
        }
        const Operand given = p.operands[at.first + 1];
        if (!given.is_constant())
          if (const auto from = made.find(given.index()); from != made.end())
            pairs_.push_back({from->second, called});
        if (alone && reads[at.result] == 1) made[at.result] = called;
        break;
      }
      default: break;
    }
    for (size_t i = first; i < at.count; ++i)
      if (const auto value = object(i)) hold(value);
  }
}

const IValue* argument(const Layer& layer, const char* name) {
  for (size_t i = 0; i < layer.op->parameters.size(); ++i)
    if (layer.op->parameters[i].name == name) return &layer.arguments[i];
  return nullptr;
}
Tensor tensor(const Layer& layer, const char* name) {
  const IValue* const value = argument(layer, name);
  return value && value->isTensor() ? value->toTensor() : Tensor();
}

// The convolution's weight and bias with the norm in them. False where they do not fit.
bool fold(const Layer& layer, const Layer& norm, Tensor& weight, Tensor& bias) {
  const NoGradGuard off;
  const Tensor w = tensor(layer, "weight"), b = tensor(layer, "bias");
  const Tensor mean = tensor(norm, "running_mean"), variance = tensor(norm, "running_var");
  const Tensor scale = tensor(norm, "weight"), shift = tensor(norm, "bias");
  const IValue *const training = argument(norm, "training"), *const eps = argument(norm, "eps");
  if (!training || !training->isBool() || training->toBool() || !eps || !eps->isDouble())
    return false;
  if (!w.defined() || w.dim() < 3 || !mean.defined() || !variance.defined()) return false;
  const ScalarType dtype = mean.scalar_type();
  const bool low = w.scalar_type() == kHalf || w.scalar_type() == kBFloat16;
  if (w.scalar_type() != dtype && !(low && dtype == kFloat)) return false;
  const bool transposed =
      layer.op->name.find("transpose") != std::string::npos ||
      (argument(layer, "transposed") && argument(layer, "transposed")->isBool() &&
       argument(layer, "transposed")->toBool());
  const IValue* const groups_of = argument(layer, "groups");
  if (!groups_of || !groups_of->isInt() || groups_of->toInt() < 1) return false;
  const int64_t groups = groups_of->toInt();
  const int64_t channels = transposed ? w.size(1) * groups : w.size(0);
  for (const Tensor& t : {b, mean, variance, scale, shift}) {
    if (!t.defined()) continue;
    if (t.dim() != 1 || t.size(0) != channels || t.device() != w.device()) return false;
    if (t.scalar_type() != (t.is_same(b) ? w.scalar_type() : dtype)) return false;
  }
  if (transposed && w.size(0) % groups != 0) return false;
  Tensor factor = (variance + eps->toDouble()).rsqrt();
  if (scale.defined()) factor = factor * scale;
  Tensor offset = b.defined() ? (b.to(dtype) - mean) * factor : -mean * factor;
  if (shift.defined()) offset = offset + shift;
  const Tensor wide = w.to(dtype);
  const Tensor scaled = transposed ? wide.reshape({groups, w.size(0) / groups, w.size(1), -1}) *
                                         factor.view({groups, 1, w.size(1), 1})
                                   : wide.reshape({w.size(0), -1}) * factor.view({w.size(0), 1});
  weight = scaled.reshape(w.sizes()).to(w.scalar_type());
  bias = offset.to(w.scalar_type());
  return true;
}

// forward(self, x) as a program of this object alone.
OwnForward own_forward(const ScriptFunction& forward,
                       const std::shared_ptr<FoldedAttributes>& folded,
                       std::unique_ptr<Program> program) {
  OwnForward made{folded, forward};
  program->limits = forward.program->limits;
  made.function.program = std::move(program);
  return made;
}

std::unique_ptr<Program> convolution(const Layer& layer, uint32_t parameters, Tensor weight,
                                     Tensor bias) {
  auto program = std::make_unique<Program>();
  program->function = layer.function;
  program->slots = parameters + 1;  // self, the input, others, the result
  program->operators.push_back(layer.op);
  for (size_t i = 0; i < layer.arguments.size(); ++i) {
    const std::string& name = layer.op->parameters[i].name;
    program->constants.push_back(i == 0             ? IValue()
                                 : name == "weight" ? IValue(weight)
                                 : name == "bias"   ? IValue(bias)
                                                    : layer.arguments[i]);
    program->operands.push_back(i == 0 ? Operand::slot(1)
                                       : Operand::constant(static_cast<uint32_t>(i)));
  }
  program->operands[0].set_last(true);
  const auto count = static_cast<uint32_t>(layer.arguments.size());
  program->operands.push_back(Operand::slot(parameters));
  program->operands.back().set_last(true);
  program->instructions = {{Code::kCall, true, parameters, 0, count, 0},
                           {Code::kReturn, false, Instruction::kNone, count, 1, 0}};
  program->offsets.assign(2, layer.offset);
  return program;
}

std::unique_ptr<Program> identity_of(const Layer& layer, uint32_t parameters) {
  auto program = std::make_unique<Program>();
  program->function = layer.function;
  program->slots = parameters;
  program->operands.push_back(Operand::slot(1));
  program->operands.back().set_last(true);
  program->instructions = {{Code::kReturn, false, Instruction::kNone, 0, 1, 0}};
  program->offsets.assign(1, layer.offset);
  return program;
}

}  // namespace

void FoldedAttributes::add(const std::shared_ptr<Object>& object, size_t slot) {
  const IValue& value = object->slots[slot];
  const bool versions = value.isTensor() && value.toTensor().defined();
  list_.push_back({object, slot, value, versions ? value.toTensor()._version() : 0});
}

bool FoldedAttributes::hold() const {
  for (const Attribute& one : list_) {
    const auto object = one.object.lock();
    if (!object) return false;
    const IValue& now = object->slots[one.slot];
    if (!now.is(one.value)) return false;
    if (now.isTensor() && now.toTensor().defined() && now.toTensor()._version() != one.version)
      return false;
  }
  return true;
}

void fold_batch_norms(const LoadedModule& root, const std::vector<const ScriptFunction*>& called,
                      const std::function<bool(const Object&, size_t)>& kept) {
  const std::lock_guard<std::mutex> lock(root.texts->compiling);
  Listings listings(*root.object->unit());
  Uses uses(listings);
  for (const ScriptFunction* function : called) uses.add(*function, root.object);
  if (!uses.find()) return;
  LayerReader reader(listings);
  const auto layer_of = [&](const ObjectPtr& object) -> std::optional<Layer> {
    const ScriptFunction* const forward = object->info()->method("forward");
    if (!forward || !uses.once(object.get())) return std::nullopt;
    auto layer = reader.read(*forward, object);
    if (!layer || !layer->op) return std::nullopt;
    for (const auto& read : layer->read)
      if (read.first != object) return std::nullopt;
    for (size_t i = 0; i < object->slots.size(); ++i)
      if (kept(*object, i)) return std::nullopt;
    return layer;
  };
  for (const Pair& pair : uses.pairs()) {
    if (pair.convolution == pair.norm || pair.convolution == root.object) continue;
    const auto norm = layer_of(pair.norm);
    if (!norm || norm->op->name != "aten::batch_norm") continue;
    const auto layer = layer_of(pair.convolution);
    if (!layer || layer->op->name == "aten::batch_norm") continue;
    Tensor weight, bias;
    if (!fold(*layer, *norm, weight, bias)) continue;
    const auto folded = std::make_shared<FoldedAttributes>();
    for (const Layer* one : {&*layer, &*norm})
      for (const auto& [owner, slot] : one->read) folded->add(owner, slot);
    const auto give = [&](Object& object, std::unique_ptr<Program> program) {
      object.own_forward = std::make_shared<const OwnForward>(
          own_forward(*object.info()->method("forward"), folded, std::move(program)));
      object.info()->has_own_forwards.store(true, std::memory_order_relaxed);
    };
    const auto parameters = [](const Object& object) {
      return static_cast<uint32_t>(object.info()->method("forward")->parameters.size());
    };
    give(*pair.convolution, convolution(*layer, parameters(*pair.convolution), weight, bias));
    give(*pair.norm, identity_of(*norm, parameters(*pair.norm)));
  }
}

}  // namespace ramet::script
