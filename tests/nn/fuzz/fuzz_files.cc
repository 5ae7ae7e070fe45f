#include "tests/nn/fuzz/fuzz_files.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "nn/data/idx.h"
#include "nn/serialize/archive.h"
#include "nn/serialize/safetensors.h"

namespace ramet {
namespace fuzz {
namespace {

using serialize::InputArchive;
using serialize::OutputArchive;
using serialize::Safetensors;

constexpr size_t kLength = 8;  // of the length of a header

uint64_t header_length(const std::string& bytes) {
  uint64_t n = 0;
  for (size_t i = kLength; i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[i]);
  return n;
}
void set_header_length(std::string& bytes, uint64_t n) {
  for (size_t i = 0; i < kLength; ++i) bytes[i] = static_cast<char>(n >> (8 * i));
}
size_t position(Tape& tape, size_t size) {
  return static_cast<size_t>(tape.below(static_cast<int64_t>(size) + 1));
}

// Puts another number in place of one of the runs of digits.
void change_number(Tape& tape, std::string& bytes) {
  static const std::vector<std::string> numbers = {"0",
                                                   "1",
                                                   "-1",
                                                   "4",
                                                   "1e3",
                                                   "1e400",
                                                   "0.5",
                                                   "4294967296",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "18446744073709551615",
                                                   "99999999999999999999999",
                                                   "true",
                                                   "[]"};
  std::vector<size_t> starts;
  for (size_t i = 1; i < bytes.size(); ++i)
    if (std::isdigit(static_cast<unsigned char>(bytes[i])) &&
        !std::isdigit(static_cast<unsigned char>(bytes[i - 1])))
      starts.push_back(i);
  if (starts.empty()) return;
  const size_t at = tape.one_of(starts);
  size_t end = at;
  while (end < bytes.size() && std::isdigit(static_cast<unsigned char>(bytes[end]))) ++end;
  bytes.replace(at, end - at, tape.one_of(numbers));
}

std::string written(const Safetensors& content) {
  std::string bytes;
  serialize::save_safetensors(
      [&](const void* data, size_t n) {
        bytes.append(static_cast<const char*>(data), n);
        return n;
      },
      content);
  return bytes;
}

const std::vector<ScalarType>& all_dtypes() {
  static const std::vector<ScalarType> list = [] {
    std::vector<ScalarType> out;
    for (int i = 0; i < kScalarTypes; ++i) out.push_back(static_cast<ScalarType>(i));
    return out;
  }();
  return list;
}

bool same_content(const Safetensors& a, const Safetensors& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, tensor] : a.tensors) {
    const Tensor* other = b.find(name);
    if (!other || !same_bytes(tensor, *other)) return false;
  }
  return true;
}

}  // namespace

void damage(Tape& tape, std::string& bytes, bool sized) {
  // Mostly without the checksum, which would find everything and leave nothing to the parser.
  const size_t checksum = bytes.find("\"xxh64\"");
  if (sized && checksum != std::string::npos && !tape.one_in(4)) bytes[checksum + 1] = 'X';
  for (int64_t n = tape.between(1, 4); n > 0; --n) {
    // The header is small and interesting.
    const size_t at = position(tape,
                               tape.one_in(3) ? bytes.size() : std::min<size_t>(bytes.size(), 300)),
                 some = 1 + position(tape, 16);
    switch (tape.below(8)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << tape.below(8));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(tape.below(256));
        break;
      case 2: bytes.resize(at); break;
      case 3: bytes.insert(at, some, static_cast<char>(tape.below(256))); break;
      case 4: bytes.erase(at, some); break;
      case 5: bytes.insert(at, bytes.substr(position(tape, bytes.size()), some)); break;
      case 6: change_number(tape, bytes); break;
      default:
        if (tape.one_in(8)) bytes.insert(at, 20000, '[');  // nested deeper than a stack is
        else if (sized && bytes.size() >= kLength)
          set_header_length(bytes, uint64_t{1} << tape.below(64));
    }
  }
  if (!sized || bytes.size() < kLength || tape.one_in(3)) return;
  // The end of the header is the last brace before the data, which is hardly ever one.
  const size_t end = bytes.rfind('}');
  if (end != std::string::npos && end >= kLength) set_header_length(bytes, end + 1 - kLength);
}

Tensor any_tensor(Tape& tape, const std::vector<ScalarType>& dtypes) {
  std::vector<int64_t> sizes;
  for (int64_t rank = tape.below(4); rank > 0; --rank) sizes.push_back((tape.below(5) + 1) % 5);
  Tensor t(TensorBase::empty(sizes, tape.one_of(dtypes), Device(kCPU, 0)));
  auto* p = static_cast<unsigned char*>(t.data_ptr());
  const int64_t from = tape.below(256);
  for (size_t i = 0; i < t.nbytes(); ++i)
    p[i] = static_cast<unsigned char>(
        t.scalar_type() == kBool ? i % 2 : static_cast<size_t>(from) + i * 89);
  if (tape.one_in(3) && !sizes.empty()) t = t.transpose(0, -1);
  if (tape.one_in(4) && !sizes.empty()) t = t.slice(0, 0, std::nullopt, 2);
  return t;
}

std::string any_text(Tape& tape) {
  static const std::vector<std::string> parts = {"a",    "weight", "7",  "\"", "\\",   "\n",
                                                 "\x01", "é",      "漢", "😀",  " ",    "{",
                                                 "]",    "\x7f",   "/",  "__", "null", ":"};
  std::string text;
  for (int64_t n = tape.below(4); n >= 0; --n) text += tape.one_of(parts);
  return text;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

void check_safetensors(Tape& tape) {
  Safetensors out;
  for (int64_t n = tape.below(4); n >= 0; --n) {
    const std::string name = any_text(tape) + std::to_string(n);
    out.tensors.emplace_back(name, any_tensor(tape, all_dtypes()));
    if (tape.one_in(3)) out.metadata[any_text(tape)] = any_text(tape);
  }
  const std::string good = written(out);
  const auto read = [](const std::string& bytes) {
    return serialize::load_safetensors(bytes.data(), bytes.size());
  };
  RC_ASSERT(same_content(out, read(good)));
  for (int64_t n = tape.below(8); n >= 0; --n) {
    std::string bad = good;
    damage(tape, bad, true);
    Safetensors in;
    if (!loads_or_refuses(bad.size(), [&] { in = read(bad); })) continue;
    // What was read is what the file says. No byte of data is left over or read twice, and a second
    // write has the same content.
    size_t data = 0;
    for (const auto& entry : in.tensors) data += entry.second.nbytes();
    RC_ASSERT(data == bad.size() - kLength - header_length(bad));
    RC_ASSERT(same_content(in, read(written(in))));
  }
}

namespace {

IValue any_value(Tape& tape) {
  static const std::vector<double> numbers = {0.0,      -0.0,     0.1,      1e-310,
                                              -1.5e300, INFINITY, -INFINITY};
  static const std::vector<int64_t> integers = {0, 1, -1, INT64_MAX, INT64_MIN};
  switch (tape.below(8)) {
    case 0: return tape.one_of(integers);
    case 1: return tape.one_of(numbers);
    case 2: return tape.one_in(2);
    case 3: return any_text(tape);
    case 4: return IValue();
    case 5: return std::vector<int64_t>(static_cast<size_t>(tape.below(4)), tape.one_of(integers));
    case 6: return std::vector<double>(static_cast<size_t>(tape.below(4)), tape.one_of(numbers));
    default: {
      std::vector<Tensor> list;
      for (int64_t n = tape.below(3); n > 0; --n) list.push_back(any_tensor(tape, all_dtypes()));
      return list;
    }
  }
}
bool same_number(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }
bool same_value(const IValue& a, const IValue& b) {
  if (a.isInt()) return b.isInt() && a.toInt() == b.toInt();
  if (a.isDouble()) return b.isDouble() && same_number(a.toDouble(), b.toDouble());
  if (a.isBool()) return b.isBool() && a.toBool() == b.toBool();
  if (a.isString()) return b.isString() && a.toStringRef() == b.toStringRef();
  if (a.isIntList()) return b.isIntList() && a.toIntVector() == b.toIntVector();
  if (a.isDoubleList()) {
    return b.isDoubleList() &&
           std::equal(a.toDoubleVector().begin(), a.toDoubleVector().end(),
                      b.toDoubleVector().begin(), b.toDoubleVector().end(), same_number);
  }
  if (a.isTensorList()) {
    return b.isTensorList() &&
           std::equal(a.toTensorVector().begin(), a.toTensorVector().end(),
                      b.toTensorVector().begin(), b.toTensorVector().end(), same_bytes);
  }
  return a.isNone() && b.isNone();
}

struct Content {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, IValue> values;
  std::map<std::string, Content> archives;
};
Content any_content(Tape& tape, int depth) {
  Content c;
  for (int64_t n = tape.below(5); n > 0; --n) {
    // Keys of one level begin differently: no two are the same.
    const std::string key = std::to_string(n) + any_text(tape);
    switch (tape.below(depth > 0 ? 3 : 2)) {
      case 0: c.tensors[key] = tape.one_in(5) ? Tensor() : any_tensor(tape, all_dtypes()); break;
      case 1: c.values[key] = any_value(tape); break;
      default: c.archives[key] = any_content(tape, depth - 1);
    }
  }
  return c;
}
OutputArchive archive_of(const Content& c) {
  OutputArchive out;
  for (const auto& [key, tensor] : c.tensors) out.write(key, tensor);
  for (const auto& [key, value] : c.values) out.write(key, value);
  for (const auto& [key, nested] : c.archives) {
    OutputArchive inner = archive_of(nested);
    out.write(key, inner);
  }
  return out;
}
void expect_content(InputArchive& in, const Content& c) {
  for (const auto& [key, tensor] : c.tensors) {
    Tensor t;
    in.read(key, t);
    RC_ASSERT(t.defined() == tensor.defined());
    RC_ASSERT((!t.defined() || same_bytes(t, tensor)));
  }
  for (const auto& [key, value] : c.values) {
    IValue v;
    in.read(key, v);
    RC_ASSERT(same_value(v, value));
  }
  for (const auto& [key, nested] : c.archives) {
    InputArchive inner;
    in.read(key, inner);
    expect_content(inner, nested);
  }
  RC_ASSERT(in.keys().size() == c.tensors.size() + c.values.size() + c.archives.size());
}
// Asks for everything that a damaged archive lists.
void read_all(InputArchive& in, int depth) {
  for (const std::string& key : in.keys()) {
    Tensor t;
    in.try_read(key, t);
    IValue v;
    in.try_read(key, v);
    InputArchive inner;
    if (depth > 0 && in.try_read(key, inner)) read_all(inner, depth - 1);
  }
}

}  // namespace

void check_archive(Tape& tape) {
  const Content content = any_content(tape, 2);
  std::ostringstream text;
  archive_of(content).save_to(text);
  const std::string good = text.str();
  InputArchive in;
  in.load_from(good.data(), good.size());
  expect_content(in, content);
  for (int64_t n = tape.below(8); n >= 0; --n) {
    std::string bad = good;
    damage(tape, bad, true);
    // Reading copies what was loaded.
    loads_or_refuses(4 * bad.size(), [&] {
      InputArchive broken;
      broken.load_from(bad.data(), bad.size());
      read_all(broken, 6);
    });
  }
}

void check_idx(Tape& tape) {
  static const std::vector<ScalarType> dtypes = {kByte, kChar, kShort, kInt, kFloat, kDouble};
  const char* base = std::getenv("TEST_TMPDIR");
  const std::string path =
      std::string(base ? base : "/tmp") + "/fuzz_" + std::to_string(::getpid());
  const Tensor t = any_tensor(tape, dtypes).contiguous();
  const bool zipped = tape.one_in(2);
  const std::string file = path + (zipped ? ".gz" : "");
  data::write_idx(file, t);
  RC_ASSERT(same_bytes(data::read_idx(file), t));
  std::ifstream stream(file, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  // Many of one: writing whole or not at all waits for the disk.
  while (tape.left()) {
    std::string bad = good;
    damage(tape, bad, false);
    std::ofstream(file, std::ios::binary) << bad;
    Tensor in;
    data::IdxHeader header;
    // Compressed data may be a thousand times as long.
    const size_t most = bad.size() * (zipped ? 1100 : 1);
    const bool loaded = loads_or_refuses(most, [&] { in = data::read_idx(file); });
    loads_or_refuses(most, [&] { header = data::read_idx_header(file); });
    if (!loaded) continue;
    RC_ASSERT(in.sizes() == IntArrayRef(header.sizes));
    RC_ASSERT(in.scalar_type() == header.dtype);
    if (!zipped) RC_ASSERT(4 + 4 * header.sizes.size() + in.nbytes() == bad.size());
  }
  ::unlink(file.c_str());
}

}  // namespace fuzz
}  // namespace ramet
