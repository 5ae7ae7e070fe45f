#include "nn/formats/pytorch/pickle_text_internal.h"

#include <cstring>

#include "nn/formats/zip/zip_internal.h"

namespace ramet {
namespace formats {
namespace detail {

void PickleText::little(uint64_t n, int bytes) {
  for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(n >> (8 * i));
}
void PickleText::integer(int64_t n) {
  if (n >= 0 && n < 256) {
    text_ += 'K', little(static_cast<uint64_t>(n), 1);
  } else if (n >= INT32_MIN && n <= INT32_MAX) {
    text_ += 'J', little(static_cast<uint64_t>(n), 4);
  } else {
    text_ += "\x8a\x08", little(static_cast<uint64_t>(n), 8);
  }
}
void PickleText::real(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, 8);
  text_ += 'G';
  for (int i = 8; i-- > 0;) text_ += static_cast<char>(bits >> (8 * i));
}
void PickleText::string(const std::string& s) {
  RAMET_CHECK(s.size() <= UINT32_MAX, op_, "a text of ", s.size(), " bytes, expected at most ",
              UINT32_MAX);
  RAMET_CHECK(is_utf8(s), op_, "a text: got bytes that are no valid UTF-8");
  text_ += 'X', little(s.size(), 4), text_ += s;
}
void PickleText::global(const std::string& module, const std::string& name) {
  text_ += 'c' + module + '\n' + name + '\n';
}
void PickleText::integers(IntArrayRef list) {
  text_ += '(';
  for (const int64_t n : list) integer(n);
  text_ += 't';
}
void PickleText::rebuilt(const Tensor& t, size_t number, const Tensor& memory, int64_t offset,
                         IntArrayRef strides) {
  const ScalarType dtype = t.scalar_type();
  // Python has no storages of these: they are written as bytes, and the dtype is named after them.
  const bool untyped = !for_torchscript_ && (dtype == kUInt16 || dtype == kUInt32);
  global("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
  text_ += "((";
  string("storage");
  if (untyped) global("torch.storage", "UntypedStorage");
  else global("torch", std::string(name_of(dtype)) + "Storage");
  string(std::to_string(number));
  string("cpu");
  integer(memory.numel() * (untyped ? static_cast<int64_t>(item_size(dtype)) : 1));
  text_ += "tQ";
  integer(offset);
  integers(t.sizes());
  integers(strides);
  boolean(t.requires_grad());
  global("collections", "OrderedDict");
  text_ += ")R";
  if (untyped) global("torch", short_name_of(dtype));
  text_ += "tR";
}

}  // namespace detail
}  // namespace formats
}  // namespace ramet
