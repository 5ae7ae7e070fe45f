// Writes TorchScript archives that PyTorch loads.
//
// The pickle is of protocol 2, with a memo: what a module holds twice is one object in the file.
// Storages are written whole, each once, so aliases and strides are what they are in memory.
#include <algorithm>
#include <cstring>
#include <map>

#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npy_internal.h"
#include "nn/script/archive_internal.h"

namespace ramet::script {
namespace {

using formats::detail::ZipPart;

constexpr int kMaxDepth = 256;

class Pickler {
 public:
  Pickler(const char* op, std::vector<Tensor>& storages) : op_(op), storages_(storages) {}

  std::string file(const IValue& value) {
    text_ = "\x80\x02";
    write(value, nullptr, 0);
    text_ += '.';
    return std::move(text_);
  }

 private:
  void little(uint64_t n, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(n >> (8 * i));
  }
  void integer(int64_t n) {
    if (n >= 0 && n < 256) {
      text_ += 'K', little(static_cast<uint64_t>(n), 1);
    } else if (n >= INT32_MIN && n <= INT32_MAX) {
      text_ += 'J', little(static_cast<uint64_t>(n), 4);
    } else {
      text_ += "\x8a\x08", little(static_cast<uint64_t>(n), 8);
    }
  }
  void real(double x) {
    uint64_t bits;
    std::memcpy(&bits, &x, 8);
    text_ += 'G';
    for (int i = 8; i-- > 0;) text_ += static_cast<char>(bits >> (8 * i));
  }
  void boolean(bool b) { text_ += b ? '\x88' : '\x89'; }
  void string(const std::string& s) {
    RAMET_CHECK(s.size() <= UINT32_MAX, op_, "a text of ", s.size(), " bytes, expected at most ",
                UINT32_MAX);
    RAMET_CHECK(formats::detail::is_utf8(s), op_, "a text: got bytes that are no valid UTF-8");
    text_ += 'X', little(s.size(), 4), text_ += s;
  }
  void global(const std::string& module, const std::string& name) {
    text_ += 'c' + module + '\n' + name + '\n';
  }
  // "__torch__.net.Net" is Net of __torch__.net.
  void global(const std::string& name) {
    const size_t dot = name.rfind('.');
    global(name.substr(0, dot), name.substr(dot + 1));
  }
  void integers(IntArrayRef list) {
    text_ += '(';
    for (const int64_t n : list) integer(n);
    text_ += 't';
  }

  // What is written again is fetched from the memo. The number of what comes first is given when it
  // is complete, except for objects: they hold nothing of themselves (a cycle is an Error).
  bool known(const void* id) {
    const auto at = memo_.find(id);
    if (at == memo_.end()) return false;
    RAMET_CHECK(at->second != kUnderWay, op_, "got a value that holds itself, expected a tree");
    text_ += 'j', little(at->second, 4);
    return true;
  }
  void remember(const void* id, const IValue& keep) {
    memo_[id] = next_;
    kept_.push_back(keep);  // an address is not used again while this writes
    text_ += 'r', little(next_++, 4);
  }

  template <class Items, class Write>
  void built(const char* builder, const Items& items, const Write& write_one) {
    global("torch.jit._pickle", builder);
    text_ += "(](";
    for (const auto& item : items) write_one(item);
    text_ += "etR";
  }

  void write(const IValue& v, const TypePtr& declared, int depth) {
    RAMET_CHECK(depth <= kMaxDepth, op_, "values nested deeper than ", kMaxDepth,
                ", expected fewer");
    const TypePtr type =
        declared && declared->kind() == Type::Kind::kOptional ? declared->element() : declared;
    if (v.isNone()) return void(text_ += 'N');
    if (v.isBool()) return boolean(v.toBool());
    if (v.isInt()) return integer(v.toInt());
    if (v.isDouble()) return real(v.toDouble());
    if (v.isString()) return string(v.toStringRef());
    if (v.isTensor()) return tensor(v.toTensor());
    if (v.isDevice()) {
      std::string name = v.toDevice().str();
      if (v.toDevice().is_cpu()) name = "cpu";
      global("torch", "device");
      string(name);
      return void(text_ += "\x85R");
    }
    const void* id = identity(v);
    RAMET_CHECK(id, op_, "got ", v, ", which a file cannot hold, expected data");
    if (known(id)) return;
    memo_[id] = kUnderWay;
    if (v.isIntList()) {
      built("build_intlist", v.toIntVector(), [&](int64_t n) { integer(n); });
    } else if (v.isDoubleList()) {
      built("build_doublelist", v.toDoubleVector(), [&](double x) { real(x); });
    } else if (v.isBoolList()) {
      built("build_boollist", v.toBoolList().vec(), [&](bool b) { boolean(b); });
    } else if (v.isTensorList()) {
      built("build_tensorlist", v.toTensorVector(), [&](const Tensor& t) { tensor(t); });
    } else if (v.isTuple()) {
      text_ += '(';
      const auto& items = v.toTupleRef().elements();
      const bool fits =
          type && type->kind() == Type::Kind::kTuple && type->elements().size() == items.size();
      for (size_t i = 0; i < items.size(); ++i)
        write(items[i], fits ? type->element(i) : nullptr, depth + 1);
      text_ += 't';
    } else if (v.isObject()) {
      object(v.toObject(), depth);
    } else {
      tagged(v, type, depth);
    }
    remember(id, v);
  }

  static const void* identity(const IValue& v) {
    if (v.isObject()) return v.toObject().get();
    if (v.isTuple()) return v.toTuple().get();
    if (v.isGenericDict()) return v.toGenericDict().id();
    if (v.isIntList()) return &v.toIntVector();
    if (v.isDoubleList()) return &v.toDoubleVector();
    if (v.isBoolList()) return &v.toBoolList().vec();
    if (v.isTensorList()) return &v.toTensorVector();
    return v.isList() ? static_cast<const void*>(&v.toList().vec()) : nullptr;
  }

  // restore_type_tag(list, "List[str]"): PyTorch does not guess the type of a list of any values.
  void tagged(const IValue& v, const TypePtr& type, int depth) {
    const bool is_dict = v.isGenericDict();
    const bool fits =
        type && type->kind() == (is_dict ? Type::Kind::kDict : Type::Kind::kList);
    global("torch.jit._pickle", "restore_type_tag");
    if (is_dict) {
      text_ += "}(";
      for (const auto& entry : v.toGenericDict()) {
        write(entry.key(), fits ? type->element(0) : nullptr, depth + 1);
        write(entry.value(), fits ? type->element(1) : nullptr, depth + 1);
      }
      text_ += 'u';
    } else {
      text_ += "](";
      for (const IValue& item : v.toListRef())
        write(item, fits ? type->element() : nullptr, depth + 1);
      text_ += 'e';
    }
    string(fits ? type->text() : is_dict ? "Dict[Any, Any]" : "List[Any]");
    text_ += "\x86R";
  }

  void object(const IValue::ObjectPtr& pointer, int depth) {
    const auto* o = dynamic_cast<const Object*>(pointer.get());
    RAMET_CHECK(o, op_, "got an object of ", pointer->class_name(), ", expected one of the file's");
    const ClassInfo& info = *o->info();
    global(info.name);
    if (info.kind == ClassInfo::Kind::kEnum) {
      write(o->slots.at(1), nullptr, depth + 1);
      text_ += 'R';
      return;
    }
    text_ += ")\x81";
    if (ScriptFunction* get_state = info.method("__getstate__")) {
      compile({std::static_pointer_cast<Object>(pointer), texts}, *get_state);
      write(call(*get_state, {IValue(pointer)}), get_state->result, depth + 1);
    } else {
      text_ += "}(";
      for (size_t i = 0; i < info.attributes.size(); ++i) {
        string(info.attributes[i].name);
        write(o->slots[i], info.attributes[i].type, depth + 1);
      }
      text_ += 'u';
    }
    text_ += 'b';
  }

  void tensor(const Tensor& t) {
    if (!t.defined()) return void(text_ += 'N');
    if (known(t.impl())) return;
    (void)t.strides();  // the public layout from here on
    const ScalarType dtype = t.scalar_type();
    const auto item = static_cast<int64_t>(item_size(dtype));
    const bool untyped = dtype == kUInt16 || dtype == kUInt32;
    const auto key = std::make_pair(t.storage_impl(), dtype);
    const auto [at, is_new] = numbers_.emplace(key, storages_.size());
    if (is_new) {
      const NoGradGuard no_grad;
      const int64_t n = static_cast<int64_t>(key.first->bytes) / item;
      storages_.push_back(formats::detail::as_written(
          Tensor(TensorBase::over(key.first, 0, {n}, {1}, dtype))));
    }
    global("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
    text_ += "((";
    string("storage");
    if (untyped) global("torch.storage", "UntypedStorage");
    else global("torch", std::string(name_of(dtype)) + "Storage");
    string(std::to_string(at->second));
    string("cpu");
    integer(storages_[at->second].numel() * (untyped ? item : 1));
    text_ += "tQ";
    integer(t.storage_offset());
    integers(t.sizes());
    integers(t.strides());
    boolean(t.requires_grad());
    global("collections", "OrderedDict");
    text_ += ")R";
    if (untyped) global("torch", short_name_of(dtype));
    text_ += "tR";
    remember(t.impl(), t);
  }

 public:
  std::shared_ptr<ArchiveTexts> texts;

 private:
  static constexpr uint32_t kUnderWay = ~uint32_t{0};
  const char* op_;
  std::string text_;
  std::vector<Tensor>& storages_;
  std::map<std::pair<StorageImpl*, ScalarType>, size_t> numbers_;
  std::unordered_map<const void*, uint32_t> memo_;
  std::vector<IValue> kept_;
  uint32_t next_ = 0;
};

}  // namespace

std::vector<ZipPart> ArchiveWriter::parts(const LoadedModule& module,
                                          const jit::ExtraFilesMap& extra) {
  std::vector<ZipPart> list;
  const auto piece = [&](const std::string& s) {
    return std::vector<std::pair<const void*, size_t>>{{s.data(), s.size()}};
  };
  const auto own = [&](std::string text) -> const std::string& {
    texts_.push_back(std::make_unique<std::string>(std::move(text)));
    return *texts_.back();
  };
  const auto pickled = [&](const std::string& entry, const std::string& folder,
                           const IValue& value) {
    std::vector<Tensor> storages;
    Pickler pickler(op_, storages);
    pickler.texts = module.texts;
    list.push_back({root_ + entry, piece(own(pickler.file(value)))});
    for (size_t i = 0; i < storages.size(); ++i) {
      const Tensor& t = storages[i];
      list.push_back({root_ + folder + std::to_string(i), {{t.data_ptr(), t.nbytes()}}});
      tensors_.push_back(t);
    }
  };
  pickled("data.pkl", "data/", IValue(IValue::ObjectPtr(module.object)));
  list.push_back({root_ + "byteorder", piece(own("little"))});
  for (const auto& [name, text] : module.texts->code) list.push_back({root_ + name, piece(text)});
  pickled("constants.pkl", "constants/",
          IValue(IValue::Tuple::create(module.object->unit()->constants())));
  std::vector<std::string> names;
  for (const auto& item : extra) names.push_back(item.first);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    list.push_back({root_ + "extra/" + name, piece(extra.at(name))});
  list.push_back({root_ + "version", piece(own(module.texts->version + "\n"))});
  return list;
}

}  // namespace ramet::script
