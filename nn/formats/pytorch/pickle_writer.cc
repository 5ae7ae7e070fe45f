// Values as pickles that Python reads.
#include <cstring>
#include <list>
#include <map>
#include <unordered_map>

#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npy_internal.h"
#include "nn/formats/pytorch/pickle_internal.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/serialize/save.h"

namespace ramet {
namespace formats {
namespace {

constexpr int kMaxDepth = 256;

// PyTorch has no storages of these: they are written as bytes, and the dtype is named after them.
bool is_untyped(ScalarType dtype) { return dtype == kUInt16 || dtype == kUInt32; }

// Protocol 2, without a memo.
class Writer {
 public:
  explicit Writer(const char* op) : op_(op) {}

  void file(const IValue& value) {
    count(value, 0);
    text_ = "\x80\x02";
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

  void little(uint64_t n, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(n >> (8 * i));
  }
  void write(int64_t n) {
    if (n >= 0 && n < 256) {
      text_ += 'K', little(static_cast<uint64_t>(n), 1);
    } else if (n >= INT32_MIN && n <= INT32_MAX) {
      text_ += 'J', little(static_cast<uint64_t>(n), 4);
    } else {
      text_ += "\x8a\x08", little(static_cast<uint64_t>(n), 8);
    }
  }
  void write(double x) {
    uint64_t bits;
    std::memcpy(&bits, &x, 8);
    text_ += 'G';
    for (int i = 8; i-- > 0;) text_ += static_cast<char>(bits >> (8 * i));
  }
  void write(bool b) { text_ += b ? '\x88' : '\x89'; }
  void write(const std::string& s) {
    RAMET_CHECK(s.size() <= UINT32_MAX, op_, "a text of ", s.size(), " bytes, expected at most ",
                UINT32_MAX);
    RAMET_CHECK(detail::is_utf8(s), op_, "a text: got bytes that are no valid UTF-8");
    text_ += 'X', little(s.size(), 4), text_ += s;
  }
  void write(IntArrayRef list) {
    text_ += '(';
    for (const int64_t n : list) write(n);
    text_ += 't';
  }
  template <class Items> void write_list(const Items& items) {
    text_ += "](";
    for (const auto& item : items) write(item);
    text_ += 'e';
  }
  void write(const IValue& v) {
    if (v.isNone()) text_ += 'N';
    else if (v.isBool()) write(v.toBool());
    else if (v.isInt()) write(v.toInt());
    else if (v.isDouble()) write(v.toDouble());
    else if (v.isString()) write(v.toStringRef());
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
    const auto item = static_cast<int64_t>(item_size(dtype));
    const auto key = std::make_pair(t.storage_impl(), dtype);
    const bool shared = uses_[key] > 1;
    size_t number = storages_.size();
    if (const auto known = numbers_.find(key); shared && known != numbers_.end()) {
      number = known->second;
    } else {
      NoGradGuard no_grad;
      Tensor memory = t;
      if (shared) {
        const int64_t n = static_cast<int64_t>(key.first->bytes) / item;
        memory = Tensor(TensorBase::over(key.first, 0, {n}, {1}, dtype));
        numbers_[key] = number;
      }
      storages_.push_back(detail::as_written(memory));
    }
    const bool untyped = is_untyped(dtype);
    text_ += std::string("ctorch._utils\n_rebuild_tensor_v") + (untyped ? '3' : '2') + "\n((";
    write(std::string("storage"));
    text_ += untyped ? std::string("ctorch.storage\nUntypedStorage\n")
                     : std::string("ctorch\n") + name_of(dtype) + "Storage\n";
    write(std::to_string(number));
    write(std::string("cpu"));
    write(storages_[number].numel() * (untyped ? item : 1));
    text_ += "tQ";
    write(shared ? t.storage_offset() : int64_t{0});
    write(t.sizes());
    write(shared ? t.strides() : IntArrayRef(contiguous_strides(t.sizes())));
    write(t.requires_grad());
    text_ += "ccollections\nOrderedDict\n)R";
    if (untyped) text_ += std::string("ctorch\n") + short_name_of(dtype) + "\n";
    text_ += "tR";
  }

  const char* op_;
  std::string text_, order_ = "little", version_ = "3\n";
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
