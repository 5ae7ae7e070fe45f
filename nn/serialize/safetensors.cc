#include "nn/serialize/safetensors.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "autograd/grad_mode.h"
#include "nn/serialize/foreign_internal.h"
#include "nn/serialize/json_internal.h"
#include "nn/serialize/source_internal.h"
#include "runtime/base/atomic_file.h"
#include "runtime/tensor/storage_ref.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the format is little-endian and its tensors are read and written as they lie in memory"
#endif

namespace ramet {
namespace serialize {
namespace {

using Json = nlohmann::json;
using detail::FileSource;
using detail::MemorySource;
using detail::Source;
constexpr const char* kMetadata = "__metadata__";
constexpr const char* kChecksum = "xxh64";    // its key in the metadata
constexpr uint64_t kMaxHeader = 100'000'000;  // as other readers of the format
constexpr int kMaxDepth = 16;                 // of the header's JSON, which has three levels

struct TypeName {
  const char* name;
  ScalarType dtype;
};
constexpr TypeName kTypes[] = {{"BOOL", kBool},  {"U8", kByte},       {"I8", kChar},
                               {"I16", kShort},  {"I32", kInt},       {"I64", kLong},
                               {"F16", kHalf},   {"BF16", kBFloat16}, {"F32", kFloat},
                               {"F64", kDouble}, {"U16", kUInt16},    {"U32", kUInt32}};

const char* type_name(ScalarType t) {
  for (const TypeName& n : kTypes)
    if (n.dtype == t) return n.name;
  fail("save_safetensors", "element type: got ", name_of(t), ", which the format does not have");
}

// Of the data as it lies in the file, then of the header.
class Checksum {
 public:
  Checksum() { XXH64_reset(&state_, 0); }
  void add(const void* data, size_t bytes) { XXH64_update(&state_, data, bytes); }
  /// Ends it: the header may or may not have a checksum already.
  std::string with_header(Json header) {
    Json& metadata = header[kMetadata];
    if (metadata.is_null()) metadata = Json::object();
    metadata.erase(kChecksum);
    const std::string text = header.dump();
    add(text.data(), text.size());
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016llx",
                  static_cast<unsigned long long>(XXH64_digest(&state_)));
    return digits;
  }

 private:
  XXH64_state_t state_;
};

// ---- reading ------------------------------------------------------------------------------------

Json parse_header(const std::string& text, const std::string& name) {
  const std::string what = "header of \"" + name + "\"";
  Json header = detail::parse_json("load_safetensors", what, text, kMaxDepth);
  RAMET_CHECK(header.is_object(), "load_safetensors", what, ": got JSON of type ",
              header.type_name(), ", expected an object");
  return header;
}

struct Entry {
  std::string name;
  ScalarType dtype = kFloat;
  std::vector<int64_t> sizes;
  uint64_t begin = 0, end = 0;
};

Entry parse_entry(const std::string& key, const Json& value, uint64_t data_bytes,
                  const std::string& file) {
  const auto bad = [&](const auto&... parts) {
    fail("load_safetensors", "entry \"", key, "\" of \"", file, "\": ", parts...);
  };
  if (!value.is_object()) bad("got JSON of type ", value.type_name(), ", expected an object");
  for (const char* needed : {"dtype", "shape", "data_offsets"})
    if (!value.contains(needed)) bad("got no \"", needed, "\", expected one");
  if (value.size() != 3)
    bad("got ", value.size(), " members, expected dtype, shape and data_offsets");
  Entry e;
  e.name = key;
  const Json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  const TypeName* type = nullptr;
  for (const TypeName& t : kTypes)
    if (dtype.is_string() && dtype.get_ref<const std::string&>() == t.name) type = &t;
  if (!type)
    bad("dtype: got ", dtype.dump(),
        ", expected one of BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64");
  e.dtype = type->dtype;
  if (!shape.is_array() || shape.size() > 64)
    bad("shape: got ", shape.dump(), ", expected a list of at most 64 extents");
  int64_t bytes = static_cast<int64_t>(item_size(e.dtype));
  for (const Json& n : shape) {
    const bool good =
        n.is_number_unsigned() && n.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
    if (!good) bad("shape: got ", shape.dump(), ", expected whole numbers from 0");
    e.sizes.push_back(n.get<int64_t>());
    if (__builtin_mul_overflow(bytes, e.sizes.back(), &bytes))
      bad("shape: got ", shape.dump(), ", too large for this machine");
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    bad("data_offsets: got ", offsets.dump(), ", expected [begin, end]");
  }
  e.begin = offsets[0].get<uint64_t>(), e.end = offsets[1].get<uint64_t>();
  if (e.begin > e.end || e.end > data_bytes) {
    bad("data_offsets: got ", offsets.dump(), ", expected a range inside the ", data_bytes,
        " bytes of data");
  }
  if (e.end - e.begin != static_cast<uint64_t>(bytes)) {
    bad("got ", e.end - e.begin, " bytes, expected ", bytes, " for ", type->name, " of shape ",
        shape.dump());
  }
  return e;
}

void check_coverage(std::vector<Entry> entries, uint64_t data_bytes, const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t at = 0;
  for (const Entry& e : entries) {
    RAMET_CHECK(e.begin >= at, "load_safetensors", "entry \"", e.name, "\" of \"", file,
                "\" overlaps another: got begin ", e.begin, ", expected ", at);
    RAMET_CHECK(e.begin <= at, "load_safetensors", "gap before entry \"", e.name, "\" of \"", file,
                "\": got begin ", e.begin, ", expected ", at);
    at = e.end;
  }
  RAMET_CHECK(at == data_bytes, "load_safetensors", "\"", file, "\": got ", data_bytes,
              " bytes of data, expected ", at);
}

// What a file says it has, checked as far as that goes without its data.
struct Content {
  Json header;
  std::map<std::string, std::string> metadata;
  std::optional<std::string> checksum;
  std::vector<Entry> entries;  // as in the header
  std::vector<size_t> order;   // by their data
  uint64_t start = 0;          // of the data
};

Content parse(Source& in, const std::string& file) {
  RAMET_CHECK(in.size() > 0, "load_safetensors", "\"", file,
              "\" is empty: got 0 bytes, expected a safetensors file");
  detail::refuse_foreign(file, in.size(),
                         [&](uint64_t at, void* to, size_t n) { in.read(at, to, n); });
  unsigned char length[8];
  RAMET_CHECK(in.size() >= 8, "load_safetensors", "\"", file, "\" is truncated: got ", in.size(),
              " bytes, expected at least 8");
  in.read(0, length, 8);
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | length[i];
  RAMET_CHECK(header_bytes <= kMaxHeader, "load_safetensors", "\"", file,
              "\" is no safetensors file: got a header of ", header_bytes,
              " bytes, expected at most ", kMaxHeader);
  RAMET_CHECK(header_bytes <= in.size() - 8, "load_safetensors", "\"", file,
              "\" is truncated: got ", in.size(), " bytes, expected a header of ", header_bytes);
  std::string text(header_bytes, ' ');
  in.read(8, text.data(), header_bytes);
  RAMET_CHECK(!text.empty() && text[0] == '{', "load_safetensors", "\"", file,
              "\" is no safetensors file: expected its header to begin with {");
  Content c;
  c.header = parse_header(text, file);
  c.start = 8 + header_bytes;
  const uint64_t data_bytes = in.size() - c.start;
  for (const auto& [key, value] : c.header.items()) {
    if (key != kMetadata) {
      c.entries.push_back(parse_entry(key, value, data_bytes, file));
      continue;
    }
    RAMET_CHECK(value.is_object(), "load_safetensors", kMetadata, " of \"", file,
                "\": got JSON of type ", value.type_name(), ", expected an object");
    for (const auto& [name, item] : value.items()) {
      RAMET_CHECK(item.is_string(), "load_safetensors", kMetadata, " of \"", file,
                  "\": got JSON of type ", item.type_name(), " under \"", name,
                  "\", expected a text");
      if (name == kChecksum) c.checksum = item.get<std::string>();
      else c.metadata[name] = item.get<std::string>();
    }
  }
  check_coverage(c.entries, data_bytes, file);
  c.order.resize(c.entries.size());
  std::iota(c.order.begin(), c.order.end(), size_t{0});
  std::sort(c.order.begin(), c.order.end(),
            [&](size_t a, size_t b) { return c.entries[a].begin < c.entries[b].begin; });
  return c;
}

void check_bools(const Entry& e, const Tensor& t, const std::string& file) {
  if (e.dtype != kBool) return;
  const auto* p = static_cast<const unsigned char*>(t.data_ptr());
  for (int64_t k = 0; k < t.numel(); ++k) {
    RAMET_CHECK(p[k] <= 1, "load_safetensors", "entry \"", e.name, "\" of \"", file,
                "\": got a bool of byte ", int{p[k]}, ", expected 0 or 1");
  }
}

void compare(Checksum& data, const Content& c, const std::string& file) {
  const std::string found = data.with_header(c.header);
  RAMET_CHECK(found == *c.checksum, "load_safetensors", "\"", file,
              "\" is damaged: got content with the checksum ", found, ", expected ", *c.checksum);
}

Safetensors load(Source& in, const std::string& file, std::optional<Device> device) {
  Content c = parse(in, file);
  const Device host(kCPU, 0);
  const Device target = device ? resolve(*device) : host;
  Safetensors content;
  content.metadata = std::move(c.metadata);
  content.tensors.resize(c.entries.size());
  Checksum checksum;
  for (const size_t i : c.order) {  // which the checksum follows
    const Entry& e = c.entries[i];
    Tensor t(TensorBase::empty(e.sizes, e.dtype, target.is_cpu() ? target : host));
    in.read(c.start + e.begin, t.data_ptr(), e.end - e.begin);
    if (c.checksum) checksum.add(t.data_ptr(), e.end - e.begin);
    check_bools(e, t, file);
    content.tensors[i] = {e.name, target.is_cpu() ? t : t.to(target)};
  }
  if (c.checksum) compare(checksum, c, file);
  return content;
}

// Row-major in main memory.
Tensor as_written(const Tensor& t) { return (t.is_cpu() ? t : t.to(Device(kCPU, 0))).contiguous(); }

}  // namespace

const Tensor* Safetensors::find(const std::string& name) const {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

void save_safetensors(const WriteFunction& write, const Safetensors& content) {
  NoGradGuard no_grad;
  std::vector<const std::pair<std::string, Tensor>*> order;
  std::set<std::string> names;
  for (const auto& entry : content.tensors) {
    const auto& [name, tensor] = entry;
    RAMET_CHECK(name != kMetadata, "save_safetensors", "name of a tensor: got \"", kMetadata,
                "\", which the format reserves");
    RAMET_CHECK(names.insert(name).second, "save_safetensors", "name of a tensor: got \"", name,
                "\" twice, expected once");
    RAMET_CHECK(tensor.defined(), "save_safetensors", "tensor \"", name,
                "\": got an undefined one, expected values");
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const size_t x = a->second.element_size(), y = b->second.element_size();
    return x != y ? x > y : a->first < b->first;
  });

  RAMET_CHECK(content.metadata.count(kChecksum) == 0, "save_safetensors",
              "metadata: got the key \"", kChecksum, "\", which is reserved for the checksum");
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header[kMetadata] = content.metadata;
  uint64_t at = 0;
  for (const auto* entry : order) {
    const auto& [name, tensor] = *entry;
    const uint64_t end = at + tensor.nbytes();
    header[name] = {{"dtype", type_name(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
    Checksum checksum;
    for (const auto* entry : order) {
      const Tensor dense = as_written(entry->second);
      checksum.add(dense.data_ptr(), dense.nbytes());
    }
    header[kMetadata][kChecksum] = checksum.with_header(Json::parse(text));
    text = header.dump();
  } catch (const Json::exception& e) {
    fail("save_safetensors", "names and metadata: expected valid UTF-8 (", e.what(), ")");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  RAMET_CHECK(text.size() <= kMaxHeader, "save_safetensors", "header: got ", text.size(),
              " bytes, expected at most ", kMaxHeader);

  const auto put = [&](const void* data, size_t bytes) {
    if (bytes == 0) return;
    const size_t done = write(data, bytes);
    RAMET_CHECK(done == bytes, "save_safetensors", "write function: got ", done,
                " bytes written, expected ", bytes);
  };
  unsigned char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<unsigned char>(static_cast<uint64_t>(text.size()) >> (8 * i));
  put(length, 8);
  put(text.data(), text.size());
  for (const auto* entry : order) {
    const Tensor dense = as_written(entry->second);
    put(dense.data_ptr(), dense.nbytes());
  }
}

void save_safetensors(const std::string& path, const Safetensors& content) {
  AtomicFile file(path);
  save_safetensors(
      [&](const void* data, size_t bytes) {
        file.write(data, bytes);
        return bytes;
      },
      content);
  file.commit();
}

Safetensors load_safetensors(const std::string& path, std::optional<Device> device) {
  FileSource in("load_safetensors", path, "a safetensors file");
  return load(in, path, device);
}

Safetensors map_safetensors(const std::string& path, bool verify) {
  FileSource in("load_safetensors", path, "a safetensors file");
  Content c = parse(in, path);
  const std::shared_ptr<char> memory = detail::map_file("load_safetensors", path, in);
  Safetensors content;
  content.metadata = std::move(c.metadata);
  content.tensors.resize(c.entries.size());
  for (const size_t i : c.order) {
    const Entry& e = c.entries[i];
    char* at = memory.get() + c.start + e.begin;
    Tensor t;
    if (reinterpret_cast<uintptr_t>(at) % item_size(e.dtype) == 0 && e.end > e.begin) {
      const StorageRef storage(
          StorageImpl::foreign(at, e.end - e.begin, Device(kCPU, 0), [memory](void*) {}));
      t = Tensor(TensorBase::over(storage.get(), 0, e.sizes, contiguous_strides(e.sizes), e.dtype));
    } else {
      t = Tensor(TensorBase::empty(e.sizes, e.dtype, Device(kCPU, 0)));
      if (e.end > e.begin) std::memcpy(t.data_ptr(), at, e.end - e.begin);
    }
    check_bools(e, t, path);
    content.tensors[i] = {e.name, std::move(t)};
  }
  if (c.checksum && verify) {
    Checksum checksum;
    checksum.add(memory.get() + c.start, in.size() - c.start);
    compare(checksum, c, path);
  }
  return content;
}

Safetensors load_safetensors(const char* data, size_t bytes, const std::string& name,
                             std::optional<Device> device) {
  MemorySource in(data, bytes);
  return load(in, name, device);
}

}  // namespace serialize
}  // namespace ramet
