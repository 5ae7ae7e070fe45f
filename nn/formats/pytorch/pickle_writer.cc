// Values as pickles that Python reads.
#include <list>
#include <map>
#include <unordered_map>

#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npy_internal.h"
#include "nn/formats/pytorch/pickle_internal.h"
#include "nn/formats/pytorch/pickle_text_internal.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/serialize/save.h"

namespace ramet {
namespace formats {
namespace {

constexpr int kMaxDepth = 256;

// Protocol 2, without a memo.
class Writer : detail::PickleText {
 public:
  explicit Writer(const char* op) : PickleText(op) {}

  void file(const IValue& value) {
    count(value, 0);
    write(value);
    text_ += '.';
  }
  /// The bytes as parts of an archive; this object owns their memory.
  std::vector<detail::ZipPart> parts() {
    const auto piece = [](const std::string& s) {
      return std::vector<std::pair<const void*, size_t>>{{s.data(), s.size()}};
    };
    std::vector<detail::ZipPart> list = {{"archive/data.pkl", piece(text_)},
                                         {"archive/byteorder", piece(order_)}};
    size_t i = 0;
    for (const Tensor& t : storages_) {
      list.push_back({"archive/data/" + std::to_string(i++), {{t.data_ptr(), t.nbytes()}}});
    }
    list.push_back({"archive/version", piece(version_)});
    return list;
  }

 private:
  // Counts how many tensors use a storage, and checks that the nesting of values ends.
  void count(const IValue& value, int depth) {
    RAMET_CHECK(depth <= kMaxDepth, op_, "values nested deeper than ", kMaxDepth,
                ", expected fewer");
    const auto tensor = [&](const Tensor& t) {
      if (!t.defined()) return;
      (void)t.strides();  // the public layout from here on
      ++uses_[{t.storage_impl(), t.scalar_type()}];
    };
    if (value.isTensor()) tensor(value.toTensor());
    if (value.isTensorList())
      for (const Tensor& t : value.toTensorVector()) tensor(t);
    if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict()) count(entry.value(), depth + 1);
    } else if (value.isTuple()) {
      for (const IValue& item : value.toTupleRef().elements()) count(item, depth + 1);
    } else if (value.isList() && !value.isTensorList()) {
      for (const IValue& item : value.toList()) count(item, depth + 1);
    }
  }

  void write(int64_t n) { integer(n); }
  void write(double x) { real(x); }
  template <class Items> void write_list(const Items& items) {
    text_ += "](";
    for (const auto& item : items) write(item);
    text_ += 'e';
  }
  void write(const IValue& v) {
    if (v.isNone()) text_ += 'N';
    else if (v.isBool()) boolean(v.toBool());
    else if (v.isInt()) write(v.toInt());
    else if (v.isDouble()) write(v.toDouble());
    else if (v.isString()) string(v.toStringRef());
    else if (v.isTensor()) write(v.toTensor());
    else if (v.isIntList()) write_list(v.toIntVector());
    else if (v.isDoubleList()) write_list(v.toDoubleVector());
    else if (v.isTensorList()) write_list(v.toTensorVector());
    else if (v.isList()) write_list(v.toList());
    else if (v.isOpaque()) {
      fail(op_, "got ", v, ", which a file has and this library cannot hold, expected data");
    } else if (v.isTuple()) {
      text_ += '(';
      for (const IValue& item : v.toTupleRef().elements()) write(item);
      text_ += 't';
    } else {
      text_ += "}(";
      for (const auto& entry : v.toGenericDict()) write(entry.key()), write(entry.value());
      text_ += 'u';
    }
  }

  void write(const Tensor& t) {
    if (!t.defined()) {
      text_ += 'N';
      return;
    }
    const ScalarType dtype = t.scalar_type();
    const auto key = std::make_pair(t.storage_impl(), dtype);
    const bool shared = uses_[key] > 1;
    size_t number = storages_.size();
    if (const auto known = numbers_.find(key); shared && known != numbers_.end()) {
      number = known->second;
    } else {
      NoGradGuard no_grad;
      Tensor memory = t;
      if (shared) {
        const auto n = static_cast<int64_t>(key.first->bytes / item_size(dtype));
        memory = Tensor(TensorBase::over(key.first, 0, {n}, {1}, dtype));
        numbers_[key] = number;
      }
      storages_.push_back(detail::as_written(memory));
    }
    rebuilt(t, number, storages_[number], shared ? t.storage_offset() : 0,
            shared ? t.strides() : IntArrayRef(contiguous_strides(t.sizes())));
  }

  std::string order_ = "little", version_ = "3\n";
  std::map<std::pair<StorageImpl*, ScalarType>, int> uses_;
  std::map<std::pair<StorageImpl*, ScalarType>, size_t> numbers_;
  std::vector<Tensor> storages_;
};

}  // namespace

void save_pt(const std::string& path, const IValue& value) {
  Writer writer("save_pt");
  writer.file(value);
  detail::write_zip("save_pt", path, writer.parts(), /*deflate=*/false);
}

void save_pt(const std::string& path, const OrderedDict<std::string, Tensor>& tensors) {
  IValue::GenericDict dict;
  for (const auto& item : tensors) dict.insert(item.key(), item.value().detach());
  save_pt(path, dict);
}

}  // namespace formats

std::vector<char> detail::pickle_save__link_Ramet_formats_too(const IValue& ivalue) {
  formats::Writer writer("pickle_save");
  writer.file(ivalue);
  return formats::detail::zip_bytes("pickle_save", writer.parts(), /*deflate=*/false);
}

}  // namespace ramet
