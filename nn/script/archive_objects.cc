// The objects of a TorchScript archive, from its pickle.
#include <algorithm>
#include <set>

#include "nn/formats/pytorch/torch_storages_internal.h"
#include "nn/script/archive_internal.h"
#include "runtime/base/device.h"

namespace ramet::script {
namespace {

using formats::detail::Node;
using formats::detail::NodeDevice;
using formats::detail::NodeDict;
using formats::detail::NodeGlobal;
using formats::detail::NodeList;
using formats::detail::NodeLong;
using formats::detail::NodeObject;
using formats::detail::NodeOpaque;
using formats::detail::NodeStorage;
using formats::detail::NodeTensor;
using formats::detail::NodeTuple;
using formats::detail::Pickle;
using formats::detail::Place;
using formats::detail::Storages;
using formats::detail::ZipReader;

constexpr uint64_t kMostPickle = uint64_t{1} << 30;

// The type without Optional; null where a value may have several.
TypePtr plain(const TypePtr& type) {
  if (!type) return nullptr;
  switch (type->kind()) {
    case Type::Kind::kOptional: return plain(type->element());
    case Type::Kind::kAny:
    case Type::Kind::kUnion: return nullptr;
    default: return type;
  }
}

std::string full_name(const std::string& class_name, const std::string& member) {
  return class_name + "." + member;
}

// Makes values of nodes. A node that is used twice is one value.
class Maker {
 public:
  Maker(Pickle& pickle, Storages& storages, std::shared_ptr<CompilationUnit> unit,
        std::optional<Device> device, const Limits& limits, uint64_t bytes)
      : pickle_(pickle),
        storages_(storages),
        unit_(std::move(unit)),
        device_(device),
        limits_(limits),
        most_values_(bytes + (1 << 22)) {}

  IValue of(Node* n, const TypePtr& declared, int64_t depth) {
    if (depth > limits_.depth)
      bad(n, "got values nested deeper than ", limits_.depth, ", expected fewer");
    if (n->as<std::monostate>()) return {};
    if (const auto* v = n->as<bool>()) return *v;
    if (const auto* v = n->as<int64_t>()) return *v;
    if (const auto* v = n->as<double>()) return *v;
    const auto made = made_.find(n);
    if (made != made_.end()) {
      count(n, made->second.second);
      return made->second.first;
    }
    if (!under_way_.insert(n).second)
      bad(n, "got ", n->kind(), " that holds itself, expected a tree");
    const uint64_t before = values_;
    count(n, 1);
    IValue v = make(n, plain(declared), depth);
    under_way_.erase(n);
    made_.emplace(n, std::make_pair(v, v.isObject() ? 1 : values_ - before));
    return v;
  }

 private:
  // What checks types visits a shared list once for each use, though not what an object holds. A
  // list of lists of lists that are all the same list would make it almost endless.
  void count(Node* n, uint64_t more) {
    values_ += more;
    if (values_ > most_values_) bad(n, "got the same values very many times");
  }
  template <class... Parts> [[noreturn]] void bad(Node* n, const Parts&... parts) const {
    pickle_.place().bad(n->at, parts...);
  }

  IValue make(Node* n, const TypePtr& type, int64_t depth) {
    if (const auto* v = n->as<std::string>()) return *v;
    if (const auto* v = n->as<NodeDevice>()) return device_ ? *device_ : device_named(n, v->name);
    if (const auto* t = n->as<std::unique_ptr<NodeTensor>>()) return storages_.tensor((*t)->note);
    if (const auto* l = n->as<NodeList>()) return list(*l, type, depth);
    if (const auto* t = n->as<NodeTuple>()) return tuple(*t, type, depth);
    if (const auto* d = n->as<NodeDict>()) return dict(*d, type, depth);
    if (const auto* o = n->as<std::unique_ptr<NodeObject>>()) return object(n, **o, depth);
    if (const auto* o = n->as<NodeOpaque>())
      bad(n, "got \"", o->name, "\", which this library does not have, expected a tensor of ",
          "another kind, a number, a text or an object of the archive's classes");
    bad(n, "got ", n->kind(), " as a value, expected data");
  }

  Device device_named(Node* n, const std::string& name) {
    try {
      return resolve(Device(name));
    } catch (const Error& error) {
      bad(n, "got the device \"", name.substr(0, 60), "\" (", error.what(),
          "), expected one that this machine has: give load() a device");
    }
  }

  // What a list or dictionary says of itself, or what is declared of its attribute.
  TypePtr type_of(const std::string* text, const TypePtr& declared) {
    if (declared && declared->kind() != Type::Kind::kTuple) return declared;
    if (!text || !unit_) return nullptr;
    const auto [at, is_new] = types_.emplace(text, nullptr);  // many lists may share a long text
    if (is_new) at->second = plain(unit_->type_of_text(*text));
    return at->second;
  }
  template <class T> IValue numbers(const NodeList& l, const TypePtr& item, int64_t depth) {
    List<T> made;
    made.reserve(l.items.size());
    for (Node* i : l.items) {
      const IValue v = of(i, item, depth + 1);
      const bool fits = std::is_same_v<T, int64_t>  ? v.isInt()
                        : std::is_same_v<T, double> ? v.isDouble()
                        : std::is_same_v<T, bool>   ? v.isBool()
                                                    : v.isTensor();
      if (!fits) bad(i, "got ", i->kind(), " in a list of ", item->text());
      made.push_back(v.to<T>());
    }
    return made;
  }
  IValue list(const NodeList& l, const TypePtr& declared, int64_t depth) {
    TypePtr type = type_of(l.type, declared);
    if (!unit_ && l.type) {  // constants, which no class declares
      const auto of_kind = [](Type::Kind kind) { return Type::list(Type::of(kind)); };
      type = *l.type == "List[int]"      ? of_kind(Type::Kind::kInt)
             : *l.type == "List[float]"  ? of_kind(Type::Kind::kFloat)
             : *l.type == "List[bool]"   ? of_kind(Type::Kind::kBool)
             : *l.type == "List[Tensor]" ? of_kind(Type::Kind::kTensor)
                                         : nullptr;
    }
    const TypePtr item = type && type->kind() == Type::Kind::kList ? type->element() : nullptr;
    switch (item ? item->kind() : Type::Kind::kAny) {
      case Type::Kind::kInt: return numbers<int64_t>(l, item, depth);
      case Type::Kind::kFloat: return numbers<double>(l, item, depth);
      case Type::Kind::kBool: return numbers<bool>(l, item, depth);
      case Type::Kind::kTensor: return numbers<Tensor>(l, item, depth);
      default: break;
    }
    IValue::GenericList made;
    made.reserve(l.items.size());
    for (Node* i : l.items) made.push_back(of(i, item, depth + 1));
    return made;
  }
  IValue tuple(const NodeTuple& t, const TypePtr& type, int64_t depth) {
    const bool known =
        type && type->kind() == Type::Kind::kTuple && type->elements().size() == t.items.size();
    std::vector<IValue> made;
    made.reserve(t.items.size());
    for (size_t i = 0; i < t.items.size(); ++i)
      made.push_back(of(t.items[i], known ? type->element(i) : nullptr, depth + 1));
    std::shared_ptr<const IValue::Tuple::Names> names;
    if (known && !type->name().empty())
      names = std::make_shared<IValue::Tuple::Names>(
          IValue::Tuple::Names{type->name(), type->fields()});
    return IValue::TuplePtr(std::make_shared<IValue::Tuple>(std::move(made), std::move(names)));
  }
  IValue dict(const NodeDict& d, const TypePtr& declared, int64_t depth) {
    const TypePtr type = type_of(d.type, declared);
    const bool known = type && type->kind() == Type::Kind::kDict;
    IValue::GenericDict made;
    for (const auto& [k, v] : d.items) {
      const IValue key = of(k, known ? type->element(0) : nullptr, depth + 1);
      if (!key.isScalar() && !key.isString())
        bad(k, "got ", k->kind(), " as a key, expected a number or a text");
      made.insert_or_assign(key, of(v, known ? type->element(1) : nullptr, depth + 1));
    }
    return made;
  }

  IValue object(Node* n, const NodeObject& o, int64_t depth) {
    constexpr const char* kCustom = "__torch__.torch.classes.";
    if (o.name.rfind(kCustom, 0) == 0)
      bad(n, "got an object of the C++ class ", o.name.substr(10), ", expected TorchScript alone");
    if (!unit_) bad(n, "got an object of ", o.name, " among constants, expected data");
    ClassInfo* info = unit_->class_named(o.name);
    if (o.enumerator) return enumerator(n, *info, of(o.enumerator, nullptr, depth + 1));
    const auto made = std::make_shared<Object>(unit_, info);
    if (ScriptFunction* set_state = info->method("__setstate__")) {
      if (!o.state) bad(n, "got no state of an object of ", o.name, ", expected it");
      const TypePtr type =
          set_state->parameters.size() == 2 ? set_state->parameters[1].type : nullptr;
      const IValue state = of(o.state, type, depth + 1);
      unit_->compile(*set_state);
      unit_->report_problems();
      call(*set_state, {IValue(IValue::ObjectPtr(made)), state});
      check_complete(n, *made);
      return IValue::ObjectPtr(made);
    }
    fill(n, *made, o, depth);
    return IValue::ObjectPtr(made);
  }

  IValue enumerator(Node* n, ClassInfo& info, const IValue& value) {
    for (const auto& [name, known] : info.constants) {
      if (info.kind != ClassInfo::Kind::kEnum || !known.is(value)) continue;
      const auto made = std::make_shared<Object>(unit_, &info);
      made->slots = {name, value};
      return IValue(IValue::ObjectPtr(made));
    }
    bad(n, "got a value that the enumeration ", info.name, " does not have");
  }

  void fill(Node* n, Object& made, const NodeObject& o, int64_t depth) {
    const ClassInfo& info = *made.info();
    const NodeDict* state = o.state ? o.state->as<NodeDict>() : nullptr;
    if (!state && !info.attributes.empty())
      bad(n, "got ", o.state ? o.state->kind() : "nothing", " as the attributes of an object of ",
          o.name, ", expected a dictionary");
    std::vector<bool> seen(info.attributes.size());
    for (const auto& [k, v] : state ? state->items : std::vector<std::pair<Node*, Node*>>()) {
      const auto* name = k->as<std::string>();
      const int64_t slot = name ? info.slot(*name) : -1;
      if (slot < 0) {  // a Final attribute is a constant of its class
        if (name && info.constants.count(*name)) continue;
        bad(k, "got ", k->kind(), " as an attribute of ", o.name, ", which does not have it");
      }
      const auto i = static_cast<size_t>(slot);
      const TypePtr& type = info.attributes[i].type;
      if (seen[i]) bad(k, "got the attribute ", full_name(o.name, *name), " twice, expected once");
      seen[i] = true;
      made.slots[i] = of(v, type, depth + 1);
      if (!fits(made.slots[i], type))
        bad(v, "got ", v->kind(), " as the attribute ", full_name(o.name, *name), ", expected ",
            type->text());
    }
    for (size_t i = 0; i < seen.size(); ++i)
      if (!seen[i] && !fits(IValue(), info.attributes[i].type))
        bad(n, "got no attribute ", full_name(o.name, info.attributes[i].name), ", expected ",
            info.attributes[i].type->text());
  }
  // A missing tensor is an undefined one: PyTorch writes None.
  static bool fits(const IValue& value, const TypePtr& type) {
    return has_type(value, type) || (value.isNone() && type->kind() == Type::Kind::kTensor);
  }
  void check_complete(Node* n, const Object& made) {
    const auto& attributes = made.info()->attributes;
    for (size_t i = 0; i < attributes.size(); ++i)
      if (!fits(made.slots[i], attributes[i].type))
        bad(n, "got no attribute ", full_name(made.class_name(), attributes[i].name),
            " from __setstate__, expected ", attributes[i].type->text());
  }

  Pickle& pickle_;
  Storages& storages_;
  std::shared_ptr<CompilationUnit> unit_;
  std::optional<Device> device_;
  const Limits& limits_;
  uint64_t most_values_, values_ = 0;
  std::unordered_map<const std::string*, TypePtr> types_;
  std::unordered_map<Node*, std::pair<IValue, uint64_t>> made_;
  std::set<Node*> under_way_;
};

}  // namespace

IValue read_objects(ZipReader& zip, const std::string& name, const ObjectOptions& options,
                    const std::shared_ptr<CompilationUnit>& unit) {
  const ZipReader::Entry& data = *zip.find(name + ".pkl");
  const std::string folder = name + "/";
  const uint64_t most = std::min(kMostPickle, most_text(zip));
  RAMET_CHECK(data.bytes <= most, zip.op(), "\"", zip.file(), "\", entry \"", data.name, "\": got ",
              data.bytes, " bytes, expected at most ", most, " in a file of ", zip.bytes());
  const std::string text = zip.text(data);
  serialize::detail::MemorySource in(text.data(), text.size());
  Pickle pickle(Place{zip.op(), "\"" + zip.file() + "\", entry \"" + data.name + "\""}, in,
                Pickle::Dialect::kLibTorch);
  uint64_t at = 0;
  Node* top = pickle.run(at);
  if (at != text.size())
    pickle.place().bad(at, "got ", text.size() - at, " bytes after the pickle's end, expected 0");
  std::vector<const ZipReader::Entry*> entries;
  for (const formats::detail::StorageNote& note : pickle.storages()) {
    const ZipReader::Entry* e = zip.find(folder + note.key);
    // PyTorch 1.5 and older kept all memory in data/.
    if (!e) pickle.place().bad(note.at, "got no entry \"", folder, note.key, "\"");
    if (e->bytes != note.bytes)
      pickle.place().bad(note.at, "got ", e->bytes, " bytes in entry \"", e->name, "\", expected ",
                         note.bytes);
    entries.push_back(e);
    if (unit && note.location != "cpu") unit->cpu_is_host = true;
  }
  Storages storages(pickle, options.big, options.device,
                    [&](size_t i, void* to) { zip.read(*entries[i], to); });
  storages.use_locations();
  return Maker(pickle, storages, unit, options.device, options.limits, text.size())
      .of(top, nullptr, 0);
}

}  // namespace ramet::script
