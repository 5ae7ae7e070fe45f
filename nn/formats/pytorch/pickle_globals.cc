// The meanings of a pickle's globals: the whole list (Note [Restricted pickles]).
#include <cstring>
#include <sstream>

#include "nn/formats/pytorch/pickle_internal.h"
#include "runtime/tensor/tensor_base.h"

namespace ramet::formats::detail {
namespace {

struct TypeName {
  const char* storage;  // torch.FloatStorage
  const char* dtype;    // torch.float32
  ScalarType type;
};
constexpr TypeName kTypes[] = {
    {"BoolStorage", "bool", kBool},
    {"ByteStorage", "uint8", kByte},
    {"CharStorage", "int8", kChar},
    {"ShortStorage", "int16", kShort},
    {"IntStorage", "int32", kInt},
    {"LongStorage", "int64", kLong},
    {"HalfStorage", "float16", kHalf},
    {"BFloat16Storage", "bfloat16", kBFloat16},
    {"FloatStorage", "float32", kFloat},
    {"DoubleStorage", "float64", kDouble},
    // Python's torch.save() writes these as bytes with the dtype, torch.jit.save() by these names.
    {"UInt16Storage", "uint16", kUInt16},
    {"UInt32Storage", "uint32", kUInt32}};

// Other types of PyTorch. Their tensors are opaque, but their storages must be skipped in the file.
struct OtherType {
  const char* storage;  // or torch.UntypedStorage
  const char* dtype;
  size_t bytes;
};
constexpr OtherType kOtherTypes[] = {{"ComplexFloatStorage", "torch.complex64", 8},
                                     {"ComplexDoubleStorage", "torch.complex128", 16},
                                     {"ComplexHalfStorage", "torch.complex32", 4},
                                     {"UInt64Storage", "torch.uint64", 8},
                                     {"Float8_e4m3fnStorage", "torch.float8_e4m3fn", 1},
                                     {"Float8_e5m2Storage", "torch.float8_e5m2", 1},
                                     {"Float8_e4m3fnuzStorage", "torch.float8_e4m3fnuz", 1},
                                     {"Float8_e5m2fnuzStorage", "torch.float8_e5m2fnuz", 1},
                                     {"Float8_e8m0fnuStorage", "torch.float8_e8m0fnu", 1},
                                     {"QInt8Storage", "torch.qint8", 1},
                                     {"QUInt8Storage", "torch.quint8", 1},
                                     {"QInt32Storage", "torch.qint32", 4},
                                     {"QUInt4x2Storage", "torch.quint4x2", 1},
                                     {"QUInt2x4Storage", "torch.quint2x4", 1},
                                     {"Bits8Storage", "torch.bits8", 1}};

constexpr const char* kUntyped[] = {"torch.storage.UntypedStorage", "torch.UntypedStorage",
                                    "torch.storage._UntypedStorage", "torch.cuda.UntypedStorage"};
constexpr const char* kTensors[] = {"torch._utils._rebuild_tensor",
                                    "torch._utils._rebuild_tensor_v2",
                                    "torch._utils._rebuild_tensor_v3"};
constexpr const char* kParameters[] = {"torch._utils._rebuild_parameter",
                                       "torch._utils._rebuild_parameter_with_state"};
// Functions that return their first argument; some of them say what the list is.
constexpr const char* kPassed[] = {"torch.serialization._get_layout"};
constexpr const char* kTyped = "torch.jit._pickle.restore_type_tag";
// What a function of these makes of a list, or null.
const std::string* built_list(const std::string& global) {
  static const std::map<std::string, std::string> lists = {
      {"torch.jit._pickle.build_intlist", "List[int]"},
      {"torch.jit._pickle.build_doublelist", "List[float]"},
      {"torch.jit._pickle.build_boollist", "List[bool]"},
      {"torch.jit._pickle.build_tensorlist", "List[Tensor]"}};
  const auto at = lists.find(global);
  return at == lists.end() ? nullptr : &at->second;
}
bool starts(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }
template <size_t N> bool has(const char* const (&list)[N], const std::string& name) {
  for (const char* item : list)
    if (name == item) return true;
  return false;
}
// TorchScript's classes, also under the mangled names of their second use.
bool is_class(const std::string& name) { return starts(name, "__torch__."); }
std::string after(const std::string& text, const char* start) {
  return starts(text, start) ? text.substr(std::strlen(start)) : "";
}

// FloatStorage, of any device.
std::string storage_of(const std::string& global) {
  const std::string name = after(global, "torch.cuda.");
  return name.empty() ? after(global, "torch.") : name;
}
const TypeName* type_of_storage(const std::string& global) {
  const std::string name = storage_of(global);
  for (const TypeName& t : kTypes)
    if (name == t.storage) return &t;
  return nullptr;
}
const TypeName* type_of_dtype(const std::string& global) {
  const std::string name = after(global, "torch.");
  for (const TypeName& t : kTypes)
    if (name == t.dtype) return &t;
  return nullptr;
}
const OtherType* other_of_storage(const std::string& global) {
  const std::string name = storage_of(global);
  for (const OtherType& t : kOtherTypes)
    if (!name.empty() && name == t.storage) return &t;
  return nullptr;
}

}  // namespace

bool Pickle::names_dtype(const std::string& global) {
  for (const OtherType& t : kOtherTypes)
    if (global == t.dtype) return true;
  return type_of_dtype(global) != nullptr;
}

Node* Pickle::opaque(const std::string& name) {
  copying(name.size());
  return make(NodeOpaque{name});
}

void Pickle::push_global(const std::string& module, const std::string& name) {
  copying(module.size() + name.size());
  push_new(NodeGlobal{module + "." + name});
}

// ---- calls --------------------------------------------------------------------------------------

Node* Pickle::call(Node* function, Node* arguments, const char* opcode) {
  const auto* f = function->as<NodeGlobal>();
  auto* a = arguments->as<NodeTuple>();
  if (f && !a && dialect_ == Dialect::kLibTorch && is_class(f->name)) {  // Color(2), without a tuple
    copying(f->name.size());
    auto object = std::make_unique<NodeObject>();
    object->name = f->name, object->enumerator = arguments;
    return make(std::move(object));
  }
  if (const auto* o = function->as<NodeOpaque>(); o && a) return opaque(o->name);
  if (!f || !a) {
    place_.bad(opcode_at_, "got a call (", opcode, ") of ", function->kind(), " with ",
               arguments->kind(), ", expected a global and a tuple");
  }
  const std::vector<Node*>& args = a->items;
  const std::string& name = f->name;
  if (name == "collections.OrderedDict") return ordered_dict(name, args);
  if (has(kTensors, name)) return rebuild_tensor(name, args);
  if (has(kParameters, name)) return rebuild_parameter(name, args);
  if (name == "torch._tensor._rebuild_from_type_v2") return rebuild_typed(name, args, opcode);
  if (name == "torch.Size") {
    need(name, args, 1, 1);
    if (!args[0]->as<NodeTuple>() && !args[0]->as<NodeList>())
      place_.bad(opcode_at_, "got ", args[0]->kind(), ", expected sizes");
    return args[0];
  }
  if (name == "torch.device") return device(name, args);
  if (name == "_codecs.encode") return encoded(name, args);
  if (has(kPassed, name)) {
    need(name, args, 1, 2);
    return args[0];
  }
  if (const std::string* type = built_list(name)) {
    need(name, args, 1, 2);
    set_type(args[0], *type);
    return args[0];
  }
  if (name == kTyped) {
    need(name, args, 1, 2);
    if (args.size() == 2 && args[1]->as<std::string>())
      set_type(args[0], *args[1]->as<std::string>());
    return args[0];
  }
  if (dialect_ == Dialect::kLibTorch && is_class(name)) {
    need(name, args, 0, 0);
    copying(name.size());
    auto object = std::make_unique<NodeObject>();
    object->name = name;
    return make(std::move(object));
  }
  return opaque(name);
}

void Pickle::need(const std::string& function, const std::vector<Node*>& args, size_t least,
                  size_t most) {
  if (args.size() >= least && args.size() <= most) return;
  place_.bad(opcode_at_, "got ", args.size(), " arguments for \"", function, "\", expected ", least,
             " to ", most);
}

Node* Pickle::ordered_dict(const std::string& function, const std::vector<Node*>& args) {
  need(function, args, 0, 1);
  Node* dict = make(NodeDict());
  if (args.empty()) return dict;
  auto* pairs = args[0]->as<NodeList>();
  if (!pairs) place_.bad(opcode_at_, "got ", args[0]->kind(), ", expected a list of pairs");
  copying(sizeof(pairs->items[0]) * 2 * pairs->items.size());
  for (Node* pair : pairs->items) {
    const std::vector<Node*>* items = nullptr;
    if (auto* t = pair->as<NodeTuple>()) items = &t->items;
    if (auto* l = pair->as<NodeList>()) items = &l->items;
    if (!items || items->size() != 2)
      place_.bad(opcode_at_, "got ", pair->kind(), ", expected a pair of key and value");
    set_items(dict, *items);
  }
  return dict;
}

// (data, requires_grad, hooks[, what Python hangs onto the object])
Node* Pickle::rebuild_parameter(const std::string& function, const std::vector<Node*>& args) {
  need(function, args, 3, 4);
  if (args[0]->as<NodeOpaque>()) return args[0];
  auto* t = args[0]->as<std::unique_ptr<NodeTensor>>();
  auto* grad = args[1]->as<bool>();
  if (!t || !grad)
    place_.bad(opcode_at_, "got ", args[0]->kind(), " and ", args[1]->kind(),
               ", expected a tensor and whether it wants a gradient");
  auto parameter = std::make_unique<NodeTensor>(**t);
  parameter->note.requires_grad = *grad;
  return make(std::move(parameter));
}

// (function, class, its arguments, state): a tensor with Python's attributes.
Node* Pickle::rebuild_typed(const std::string& function, const std::vector<Node*>& args,
                            const char* opcode) {
  need(function, args, 4, 4);
  const auto *inner = args[0]->as<NodeGlobal>(), *type = args[1]->as<NodeGlobal>();
  if (!inner || !type) {
    place_.bad(opcode_at_, "got a tensor of ", args[1]->kind(), " made by ", args[0]->kind(),
               ", expected a class and a function");
  }
  if (type->name != "torch.Tensor" && type->name != "torch.nn.parameter.Parameter")
    return opaque(type->name);
  if (!has(kTensors, inner->name) && !has(kParameters, inner->name)) return opaque(inner->name);
  return call(args[0], args[2], opcode);
}

// The text belongs to a node or to the program, so it stays.
void Pickle::set_type(Node* made, const std::string& type) {
  if (auto* list = made->as<NodeList>()) list->type = &type;
  if (auto* dict = made->as<NodeDict>()) dict->type = &type;
}

// (name[, number]): "cuda:1"
Node* Pickle::device(const std::string& function, const std::vector<Node*>& args) {
  need(function, args, 1, 2);
  if (!args[0]->as<std::string>())
    place_.bad(opcode_at_, "got ", args[0]->kind(), ", expected a device's name");
  copying(args[0]->as<std::string>()->size());
  if (args.size() == 1) return make(NodeDevice{*args[0]->as<std::string>()});
  const auto* index = args[1]->as<int64_t>();
  if (!index) place_.bad(opcode_at_, "got ", args[1]->kind(), ", expected a device's number");
  return make(NodeDevice{*args[0]->as<std::string>() + ":" + std::to_string(*index)});
}

// (text, "latin1"): how protocol 2 writes bytes.
Node* Pickle::encoded(const std::string& function, const std::vector<Node*>& args) {
  need(function, args, 2, 2);
  const auto *text = args[0]->as<std::string>(), *code = args[1]->as<std::string>();
  if (!text || !code || *code != "latin1")
    place_.bad(opcode_at_, "got ", args[0]->kind(), ", expected bytes as a text in latin1");
  copying(text->size());
  std::string bytes;
  for (size_t i = 0; i < text->size(); ++i) {
    const auto c = static_cast<unsigned char>((*text)[i]);
    if (c < 0x80) {
      bytes += static_cast<char>(c);
      continue;
    }
    if (c > 0xc3) place_.bad(opcode_at_, "got a character that is not in latin1");
    bytes += static_cast<char>((c & 3) << 6 | ((*text)[++i] & 0x3f));
  }
  return make(std::move(bytes));
}

// Python's attributes of a dictionary (a state dict's _metadata) are no data; a TorchScript
// object's attributes are.
void Pickle::build(Node* object, Node* state) {
  if (object->as<NodeOpaque>()) return;
  if (object->as<NodeDict>()) {
    if (!state->as<NodeDict>())
      place_.bad(opcode_at_, "got ", state->kind(), ", expected a dictionary of attributes");
    return;
  }
  if (auto* o = object->as<std::unique_ptr<NodeObject>>()) {
    if ((*o)->state) place_.bad(opcode_at_, "got ", object->kind(), " twice, expected once");
    (*o)->state = state;
    return;
  }
  place_.bad(opcode_at_, "got attributes (BUILD) for ", object->kind(),
             ", expected a dictionary or an object");
}

// ---- tensors ------------------------------------------------------------------------------------

// ("storage", torch.FloatStorage, key, location, number of elements[, view]); before PyTorch 1.6
// also ("module", class, file, source).
Node* Pickle::storage(Node* id) {
  const auto* t = id->as<NodeTuple>();
  const std::string* tag = t && !t->items.empty() ? t->items[0]->as<std::string>() : nullptr;
  if (tag && *tag == "module" && t->items.size() == 4 && t->items[1]->as<NodeGlobal>())
    return t->items[1];
  if (!tag || *tag != "storage" || t->items.size() < 5 || t->items.size() > 6) {
    place_.bad(opcode_at_, "got ", tag ? "a persistent \"" + tag->substr(0, 60) + "\"" : id->kind(),
               ", expected a storage");
  }
  const auto* type = t->items[1]->as<NodeGlobal>();
  const auto* key = t->items[2]->as<std::string>();
  const auto* count = t->items[4]->as<int64_t>();
  if (!type || !key || !count || *count < 0 || !t->items[3]->as<std::string>()) {
    place_.bad(opcode_at_, "got a storage of ", t->items[1]->kind(), ", ", t->items[2]->kind(),
               ", ", t->items[3]->kind(), ", ", t->items[4]->kind(),
               ", expected its type, key, location and number of elements");
  }
  if (t->items.size() == 6 && !t->items[5]->as<std::monostate>())
    place_.bad(opcode_at_, "got a storage that is a view of another, expected a whole one");
  const TypeName* typed = type_of_storage(type->name);
  const OtherType* other = other_of_storage(type->name);
  if (!typed && !other && !has(kUntyped, type->name)) return opaque(type->name);
  const ScalarType dtype = typed ? typed->type : kByte;
  copying(key->size() + t->items[3]->as<std::string>()->size());
  StorageNote note;
  note.key = *key, note.location = *t->items[3]->as<std::string>();
  note.unit = other ? other->bytes : item_size(dtype), note.at = opcode_at_;
  if (__builtin_mul_overflow(static_cast<uint64_t>(*count), note.unit, &note.bytes) ||
      note.bytes > static_cast<uint64_t>(INT64_MAX)) {
    place_.bad(opcode_at_, "got a storage of ", *count, " elements, more than this machine has");
  }
  const auto [at, is_new] = storage_numbers_.emplace(*key, storages_.size());
  if (is_new) storages_.push_back(std::move(note));
  else if (storages_[at->second].bytes != note.bytes) {
    place_.bad(opcode_at_, "got storage \"", *key, "\" of ", note.bytes, " bytes, expected ",
               storages_[at->second].bytes, " as before");
  }
  return make(NodeStorage{at->second, dtype, other ? other->dtype : nullptr});
}

std::vector<int64_t> Pickle::extents(Node* node, const char* what) {
  const std::vector<Node*>* items = nullptr;
  if (auto* t = node->as<NodeTuple>()) items = &t->items;
  if (auto* l = node->as<NodeList>()) items = &l->items;
  if (!items || items->size() > static_cast<size_t>(kMaxRank)) {
    place_.bad(opcode_at_, "got ", node->kind(), " as a tensor's ", what,
               ", expected a tuple of at most ", kMaxRank);
  }
  std::vector<int64_t> list;
  for (Node* item : *items) {
    const auto* n = item->as<int64_t>();
    if (!n || *n < 0) {
      place_.bad(opcode_at_, "got ", n ? std::to_string(*n) : item->kind(), " among a tensor's ",
                 what, ", expected whole numbers from 0");
    }
    list.push_back(*n);
  }
  return list;
}

// _rebuild_tensor(storage, offset, sizes, strides); v2: ..., requires_grad, hooks[, metadata];
// v3: ..., requires_grad, hooks, dtype[, metadata]
Node* Pickle::rebuild_tensor(const std::string& function, const std::vector<Node*>& args) {
  const bool v3 = function.back() == '3', v2 = function.back() == '2';
  const size_t most = v3 ? 8 : v2 ? 7 : 4;
  need(function, args, v3 ? 7 : v2 ? 6 : 4, most);
  if (args[0]->as<NodeOpaque>()) return args[0];
  const auto* storage = args[0]->as<NodeStorage>();
  const auto* offset = args[1]->as<int64_t>();
  if (!storage || !offset || *offset < 0) {
    place_.bad(opcode_at_, "got a tensor of ", args[0]->kind(), " from ",
               offset ? std::to_string(*offset) : args[1]->kind(),
               ", expected a storage and the number of its first element");
  }
  auto tensor = std::make_unique<NodeTensor>();
  TensorNote& note = tensor->note;
  note.storage = storage->number;
  note.dtype = storage->dtype;
  note.offset = *offset;
  note.sizes = extents(args[2], "sizes");
  note.strides = extents(args[3], "strides");
  note.requires_grad = false;
  if (note.sizes.size() != note.strides.size()) {
    place_.bad(opcode_at_, "got ", note.sizes.size(), " sizes and ", note.strides.size(),
               " strides, expected as many");
  }
  if (v2 || v3) {
    const auto* grad = args[4]->as<bool>();
    if (!grad)
      place_.bad(opcode_at_, "got ", args[4]->kind(), " as requires_grad, expected a bool");
    note.requires_grad = *grad;
  }
  // Tensors that this library cannot hold: another dtype, or a lazy view ("neg", "conj"), with
  // other values than its storage.
  std::string other = storage->other ? storage->other : "";
  if (v3) {
    const auto* dtype = args[6]->as<NodeGlobal>();
    if (!dtype) place_.bad(opcode_at_, "got a tensor of ", args[6]->kind(), ", expected a dtype");
    const TypeName* type = type_of_dtype(dtype->name);
    if (type) note.dtype = type->type;
    else other = dtype->name;
  }
  if (args.size() == most && (v2 || v3)) add_metadata(args.back(), note.dtype, other);
  if (!other.empty()) {
    auto text = ramet::detail::classic<std::ostringstream>();
    text << other << IntArrayRef(note.sizes);
    return opaque(text.str());
  }
  check_inside_storage(note);
  StorageNote& known = storages_[note.storage];
  known.mixed = known.mixed || (known.item != 0 && known.item != item_size(note.dtype));
  known.item = item_size(note.dtype);
  known.bools = known.bools || note.dtype == kBool;
  return make(std::move(tensor));
}

// Metadata names a lazy view: "torch.float32 (neg)".
void Pickle::add_metadata(Node* given, ScalarType dtype, std::string& other) {
  if (given->as<std::monostate>()) return;
  const auto* metadata = given->as<NodeDict>();
  if (!metadata)
    place_.bad(opcode_at_, "got ", given->kind(), " as metadata, expected a dictionary");
  if (metadata->items.empty()) return;
  const auto* name = metadata->items[0].first->as<std::string>();
  if (other.empty()) other = std::string("torch.") + short_name_of(dtype);
  other += " (" + (name ? name->substr(0, 60) : "metadata") + ")";
}

// All elements are inside the storage, and their number and bytes fit into 64 bits.
void Pickle::check_inside_storage(const TensorNote& note) {
  int64_t last = note.offset, bytes = 0;
  bool empty = false, fits = true;
  for (size_t i = 0; i < note.sizes.size(); ++i) {
    int64_t reach = 0;
    empty = empty || note.sizes[i] == 0;
    fits = fits && !__builtin_mul_overflow(note.sizes[i] - 1, note.strides[i], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
    if (empty) break;
  }
  const int64_t item = static_cast<int64_t>(item_size(note.dtype));
  const auto there = static_cast<int64_t>(storages_[note.storage].bytes);
  if (empty) fits = note.offset <= there / item;
  else
    fits = fits && !__builtin_add_overflow(last, 1, &last) &&
           !__builtin_mul_overflow(last, item, &bytes) && bytes <= there;
  int64_t numel = 1;
  for (const int64_t n : note.sizes) fits = fits && !__builtin_mul_overflow(numel, n, &numel);
  fits = fits && !__builtin_mul_overflow(numel, item, &bytes);
  if (!fits) {
    place_.bad(opcode_at_, "got a tensor of sizes ", IntArrayRef(note.sizes), ", strides ",
               IntArrayRef(note.strides), " and offset ", note.offset, ", expected one inside the ",
               there, " bytes of storage \"", storages_[note.storage].key, "\"");
  }
}

}  // namespace ramet::formats::detail
