// Writes TorchScript archives that PyTorch loads.
//
// The pickle is of protocol 2, with a memo: what a module holds twice is one object in the file.
// Storages are written whole, each once, so aliases and strides are what they are in memory.
#include <algorithm>
#include <map>

#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npy_internal.h"
#include "nn/formats/pytorch/pickle_text_internal.h"
#include "nn/script/archive_internal.h"

namespace ramet::script {
namespace {

using formats::detail::ZipPart;

constexpr int kMaxDepth = 256;

class Pickler : formats::detail::PickleText {
 public:
  Pickler(const char* op, const std::shared_ptr<ArchiveTexts>& texts, std::vector<Tensor>& storages)
      : PickleText(op, /*for_torchscript=*/true), texts_(texts), storages_(storages) {}

  std::string file(const IValue& value) {
    write(value, nullptr, 0);
    text_ += '.';
    return std::move(text_);
  }

 private:
  using PickleText::global;
  // "__torch__.net.Net" is Net of __torch__.net.
  void global(const std::string& name) {
    const size_t dot = name.rfind('.');
    global(name.substr(0, dot), name.substr(dot + 1));
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

  // restore_type_tag(list, "List[str]"): PyTorch does not guess the type of a list of any values.
  void tagged(const IValue& v, const TypePtr& type, int depth) {
    const bool is_dict = v.isGenericDict();
    const bool fits = type && type->kind() == (is_dict ? Type::Kind::kDict : Type::Kind::kList);
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
    const auto o = object_in(pointer);
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
      compile({o, texts_}, *get_state);
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
    const auto key = std::make_pair(t.storage_impl(), dtype);
    const auto [at, is_new] = numbers_.emplace(key, storages_.size());
    if (is_new) {
      const NoGradGuard no_grad;
      const auto n = static_cast<int64_t>(key.first->bytes / item_size(dtype));
      storages_.push_back(
          formats::detail::as_written(Tensor(TensorBase::over(key.first, 0, {n}, {1}, dtype))));
    }
    rebuilt(t, at->second, storages_[at->second], t.storage_offset(), t.strides());
    remember(t.impl(), t);
  }

  static constexpr uint32_t kUnderWay = ~uint32_t{0};
  const std::shared_ptr<ArchiveTexts>& texts_;
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
    Pickler pickler(op_, module.texts, storages);
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
  for (const auto& item : extra) {
    RAMET_CHECK(!item.first.empty() && item.first.back() != '/', op_,
                "name of an extra file: got \"", item.first,
                "\", expected one without \"/\" at its end");
    names.push_back(item.first);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    list.push_back({root_ + "extra/" + name, piece(extra.at(name))});
  list.push_back({root_ + "version", piece(own(module.texts->version + "\n"))});
  return list;
}

}  // namespace ramet::script
