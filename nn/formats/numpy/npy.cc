#include "nn/formats/numpy/npy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npy_internal.h"
#include "nn/serialize/source_internal.h"
#include "runtime/base/atomic_file.h"

namespace ramet::formats {
namespace detail {
namespace {

constexpr const char kMagic[] = "\x93NUMPY";
constexpr uint64_t kMagicBytes = 6;
constexpr uint64_t kMaxHeader = 1 << 20;  // ours have ranks of at most 64

// Type characters and sizes, as in "<f8".
struct TypeName {
  char kind, size;
  ScalarType dtype;
};
constexpr TypeName kTypes[] = {{'b', '1', kBool},   {'u', '1', kByte},  {'i', '1', kChar},
                               {'i', '2', kShort},  {'i', '4', kInt},   {'i', '8', kLong},
                               {'f', '2', kHalf},   {'f', '4', kFloat}, {'f', '8', kDouble},
                               {'u', '2', kUInt16}, {'u', '4', kUInt32}};

// Names NumPy's types that this library does not have, for the reason of a refusal.
std::string other_type(const std::string& descr) {
  switch (descr.size() < 2 ? ' ' : descr[1]) {
    case 'u': return "unsigned integers of 64 bits";
    case 'f': return "floats of another size";
    case 'c': return "complex numbers";
    case 'O': return "Python objects, which are never loaded";
    case 'S':
    case 'U': return "texts";
    case 'V': return "raw bytes (how NumPy writes types that it does not have, bfloat16 say)";
    case 'M':
    case 'm': return "times";
    default: return "no type of NumPy's";
  }
}

// The header: a dictionary as Python writes it, with these three keys in any order.
class Header {
 public:
  ScalarType dtype = kFloat;
  bool swapped = false, fortran = false;
  std::vector<int64_t> sizes;

  Header(const char* op, const std::string& where, uint64_t start, const std::string& text)
      : op_(op), where_(where), start_(start), text_(text) {
    bool seen[3] = {};
    expect('{');
    while (!taken('}')) {
      const std::string key = quoted();
      expect(':');
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0) bad("got the key \"", key, "\", expected descr, fortran_order and shape");
      if (seen[which]) bad("got the key \"", key, "\" twice, expected once");
      seen[which] = true;
      if (which == 0) read_type();
      if (which == 1) read_order();
      if (which == 2) read_shape();
      if (!taken(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) bad("expected the header to end here");
    if (!seen[0] || !seen[1] || !seen[2]) bad("expected the keys descr, fortran_order and shape");
  }

 private:
  template <class... Parts> [[noreturn]] void bad(const Parts&... parts) const {
    fail(op_, where_, ", offset ", start_ + at_, " in the header: ", parts...);
  }
  void skip() {
    while (at_ < text_.size() && std::strchr(" \n\t\r", text_[at_]) && text_[at_]) ++at_;
  }
  bool taken(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!taken(c)) bad("expected '", c, "'");
  }
  std::string quoted() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') bad("expected a text in quotes");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) bad("expected the text to end");
    std::string s = text_.substr(at_ + 1, end - at_ - 1);
    if (s.find('\\') != std::string::npos) bad("got a text with a backslash, expected none");
    at_ = end + 1;
    return s;
  }
  void read_type() {
    skip();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '('))
      bad("type: got a structure of several fields, expected one type");
    const std::string written = quoted();
    // Without an order it is this machine's, as for NumPy.
    const bool plain = written.size() == 2 && !std::strchr("<>|=", written[0]);
    const std::string descr = plain ? "=" + written : written;
    const bool ordered = descr.size() == 3 && std::strchr("<>|=", descr[0]);
    const TypeName* found = nullptr;
    for (const TypeName& t : kTypes)
      if (ordered && descr[1] == t.kind && descr[2] == t.size) found = &t;
    if (!found) {
      bad("type: got '", written, "' (", other_type(descr),
          "), expected bool, uint8 to uint32, int8 to int64, float16, float32 or float64");
    }
    dtype = found->dtype;
    swapped = descr[0] == '>' && item_size(dtype) > 1;
  }
  void read_order() {
    skip();
    for (const bool value : {false, true}) {
      const std::string word = value ? "True" : "False";
      if (text_.compare(at_, word.size(), word) != 0) continue;
      at_ += word.size();
      fortran = value;
      return;
    }
    bad("fortran_order: expected True or False");
  }
  void read_shape() {
    expect('(');
    while (!taken(')')) {
      skip();
      int64_t n = 0;
      const size_t first = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, text_[at_] - '0', &n))
          bad("shape: got more than an int64 holds");
      }
      if (at_ == first) bad("shape: expected whole numbers from 0");
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2's long
      sizes.push_back(n);
      if (sizes.size() > kMaxRank) bad("shape: got more than ", kMaxRank, " dimensions");
      if (!taken(',')) {
        expect(')');
        break;
      }
    }
  }

  const char* op_;
  const std::string& where_;
  uint64_t start_;
  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

void swap_bytes(void* data, uint64_t bytes, size_t item) {
  auto* p = static_cast<unsigned char*>(data);
  for (uint64_t i = 0; i + item <= bytes; i += item) std::reverse(p + i, p + i + item);
}

void check_bools(const char* op, const std::string& where, const Tensor& tensor) {
  if (tensor.scalar_type() != kBool) return;
  const auto* p = static_cast<const unsigned char*>(tensor.data_ptr());
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    RAMET_CHECK(p[i] <= 1, op, where, ": got a bool of byte ", int{p[i]}, " as element ", i,
                ", expected 0 or 1");
  }
}

Tensor as_written(const Tensor& tensor) {
  NoGradGuard no_grad;
  return (tensor.is_cpu() ? tensor.detach() : tensor.detach().to(Device(kCPU, 0))).contiguous();
}

Tensor read_npy(const char* op, const std::string& where, uint64_t bytes, const ReadNext& next) {
  NoGradGuard no_grad;
  unsigned char head[12];
  RAMET_CHECK(bytes >= 10, op, where, " is truncated: got ", bytes, " bytes, expected at least 10");
  next(head, 10);
  RAMET_CHECK(std::memcmp(head, kMagic, kMagicBytes) == 0, op, where,
              ": got no array of NumPy's, expected a file that begins with \\x93NUMPY");
  const int major = head[6], minor = head[7];
  RAMET_CHECK(major >= 1 && major <= 3 && minor == 0, op, where, ", offset 6: got version ", major,
              '.', minor, " of the format, expected 1.0, 2.0 or 3.0");
  uint64_t length = head[8] | uint64_t{head[9]} << 8, start = 10;
  if (major > 1) {
    RAMET_CHECK(bytes >= 12, op, where, " is truncated: got ", bytes,
                " bytes, expected at least 12");
    next(head + 10, 2);
    length |= uint64_t{head[10]} << 16 | uint64_t{head[11]} << 24, start = 12;
  }
  RAMET_CHECK(length <= bytes - start, op, where, " is truncated: got ", bytes,
              " bytes, expected a header of ", length);
  RAMET_CHECK(length <= kMaxHeader, op, where, ", offset 8: got a header of ", length,
              " bytes, expected at most ", kMaxHeader);
  std::string text(length, ' ');
  next(text.data(), length);
  const Header h(op, where, start, text);
  const uint64_t there = bytes - start - length;
  int64_t wanted = static_cast<int64_t>(item_size(h.dtype));
  bool fits = true;
  for (const int64_t n : h.sizes) fits = fits && !__builtin_mul_overflow(wanted, n, &wanted);
  RAMET_CHECK(fits && static_cast<uint64_t>(wanted) == there, op, where, ", offset ",
              start + length, ": got ", there, " bytes of data, expected ",
              fits ? std::to_string(wanted) : "more than an int64 holds", " for ",
              short_name_of(h.dtype), IntArrayRef(h.sizes));
  std::vector<int64_t> sizes = h.sizes;
  if (h.fortran) std::reverse(sizes.begin(), sizes.end());
  Tensor t(TensorBase::empty(sizes, h.dtype, Device(kCPU, 0)));
  next(t.data_ptr(), there);
  if (h.swapped) swap_bytes(t.data_ptr(), there, item_size(h.dtype));
  check_bools(op, where, t);
  if (!h.fortran || sizes.size() < 2) return t;
  std::vector<int64_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
  return t.permute(order).contiguous();
}

std::string npy_header(const char* op, const std::string& name, const Tensor& tensor) {
  RAMET_CHECK(tensor.defined(), op, name, ": got an undefined tensor, expected values");
  const TypeName* found = nullptr;
  for (const TypeName& t : kTypes)
    if (t.dtype == tensor.scalar_type()) found = &t;
  RAMET_CHECK(found, op, name, ": got dtype ", short_name_of(tensor.scalar_type()),
              ", which NumPy does not have, expected another one (float32 holds its values)");
  std::string text = "{'descr': '";
  text += item_size(found->dtype) == 1 ? '|' : '<';
  text += {found->kind, found->size};
  text += "', 'fortran_order': False, 'shape': (";
  for (int64_t i = 0; i < tensor.dim(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.size(i));
  text += tensor.dim() == 1 ? ",), }" : "), }";
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());  // a rank of 64 at most
  std::string head(kMagic, kMagicBytes);
  head += {'\x01', '\0', static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  return head + text;
}

}  // namespace detail

namespace {
Tensor on(const Tensor& t, std::optional<Device> device) {
  NoGradGuard no_grad;
  return device ? t.to(resolve(*device)) : t;
}
Tensor load(serialize::detail::Source& in, const std::string& name, std::optional<Device> device) {
  uint64_t at = 0;
  const auto next = [&](void* to, uint64_t bytes) {
    in.read(at, to, bytes);
    at += bytes;
  };
  return on(detail::read_npy("load_npy", "\"" + name + "\"", in.size(), next), device);
}
}  // namespace

Tensor load_npy(const std::string& path, std::optional<Device> device) {
  serialize::detail::FileSource in("load_npy", path, "an array of NumPy's");
  return load(in, path, device);
}
Tensor load_npy(const char* data, size_t bytes, const std::string& name,
                std::optional<Device> device) {
  serialize::detail::MemorySource in(data, bytes);
  return load(in, name, device);
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const std::string header = detail::npy_header("save_npy", "\"" + path + "\"", tensor);
  const Tensor dense = detail::as_written(tensor);
  AtomicFile file(path);
  file.write(header);
  file.write(dense.data_ptr(), dense.nbytes());
  file.commit();
}

}  // namespace ramet::formats
