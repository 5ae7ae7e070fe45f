#include "tools/see/recording_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "runtime/base/atomic_file.h"
#include "runtime/base/error.h"
#include "tools/see/recording_fields.h"

namespace ramet {
namespace see {
namespace {

using Json = nlohmann::json;

constexpr const char* kVersionKey = "ramet_recording";
constexpr int kMostLevels = 8;
constexpr size_t kMostText = size_t{4} << 30;

template <class... What> [[noreturn]] void refuse(const std::string& name, const What&... what) {
  auto text = ramet::detail::classic<std::ostringstream>();
  (text << ... << what);
  throw Error("[see] " + name + ": " + text.str());
}

// ---- writing ------------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class T> void operator()(const char* name, const T& value) {
    key(name);
    put(value);
  }
  template <class T> void id(const char* name, const T& value, List) { (*this)(name, value); }
  template <class Row> void rows(const char* name, const std::vector<Row>& list) {
    key(name);
    out_ += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ += ',';
      out_ += '{';
      Writer row(out_);
      fields(row, list[i]);
      out_ += '}';
    }
    out_ += ']';
  }

 private:
  void key(const char* name) {
    if (!std::exchange(first_, false)) out_ += ',';
    ((out_ += '"') += name) += "\":";
  }
  void put(const std::string& text) {  // what is no UTF-8 becomes U+FFFD
    out_ += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void put(bool b) { out_ += b ? "true" : "false"; }
  template <class N>
  requires std::is_arithmetic_v<N>
  void put(N n) {
    if constexpr (std::is_floating_point_v<N>)
      if (!std::isfinite(n)) {
        out_ += "null";
        return;
      }
    char digits[32];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
  }
  template <class List>
  requires requires(const List& l) { l.begin() != l.end(); }
  void put(const List& list) {
    out_ += '[';
    bool first = true;
    for (const auto& one : list) {
      if (!std::exchange(first, false)) out_ += ',';
      put(one);
    }
    out_ += ']';
  }
  std::string& out_;
  bool first_ = true;
};

// ---- reading ------------------------------------------------------------------------------------

const char* kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "a text";
    case Json::value_t::boolean: return "true or false";
    default: return "a number";
  }
}

class Reader {
 public:
  Reader(const Json& from, const std::string& file, const std::string& place)
      : from_(from), file_(file), place_(place) {
    if (!from.is_object()) wrong(place.empty() ? "its text" : place, from, "an object");
  }
  // An absent member keeps the struct's default: older writers did not write it.
  template <class T> void operator()(const char* name, T& value) {
    if (const auto at = from_.find(name); at != from_.end()) get(*at, path(name), value);
  }
  template <class T> void id(const char* name, T& value, List) { (*this)(name, value); }
  template <class Row> void rows(const char* name, std::vector<Row>& list) {
    const auto at = from_.find(name);
    if (at == from_.end()) return;
    const std::string where = path(name);
    if (!at->is_array()) wrong(where, *at, "a list");
    list.resize(at->size());
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string row_place = where + "[" + std::to_string(i) + "]";
      Reader row((*at)[i], file_, row_place);
      fields(row, list[i]);
    }
  }

 private:
  [[noreturn]] void wrong(const std::string& where, const Json& got, const char* expected) const {
    refuse(file_, where, ": got ", kind_of(got), ", expected ", expected);
  }
  std::string path(const char* name) const { return place_.empty() ? name : place_ + "." + name; }

  void get(const Json& from, const std::string& where, std::string& to) const {
    if (!from.is_string()) wrong(where, from, "a text");
    to = from.get_ref<const std::string&>();
  }
  void get(const Json& from, const std::string& where, bool& to) const {
    if (!from.is_boolean()) wrong(where, from, "true or false");
    to = from.get<bool>();
  }
  template <class N>
  requires std::is_arithmetic_v<N>
  void get(const Json& from, const std::string& where, N& to) const {
    if constexpr (std::is_floating_point_v<N>) {
      if (from.is_null()) {
        to = std::numeric_limits<N>::quiet_NaN();
        return;
      }
      if (!from.is_number()) wrong(where, from, "a number");
      to = from.get<N>();
    } else {
      if (!from.is_number_integer()) wrong(where, from, "a whole number");
      const bool fits = from.is_number_unsigned() ? std::in_range<N>(from.get<uint64_t>())
                                                  : std::in_range<N>(from.get<int64_t>());
      if (!fits)
        refuse(file_, where, ": got ", from.dump(), ", expected ",
               int64_t{std::numeric_limits<N>::min()}, " to ",
               uint64_t{std::numeric_limits<N>::max()});
      to = from.get<N>();
    }
  }
  template <class T>
  void get(const Json& from, const std::string& where, std::vector<T>& to) const {
    if (!from.is_array()) wrong(where, from, "a list");
    to.resize(from.size());
    for (size_t i = 0; i < to.size(); ++i) get(from[i], where, to[i]);
  }
  template <class T, size_t N>
  void get(const Json& from, const std::string& where, std::array<T, N>& to) const {
    if (!from.is_array()) wrong(where, from, "a list");
    if (from.size() != N) refuse(file_, where, ": got ", from.size(), " numbers, expected ", N);
    for (size_t i = 0; i < N; ++i) get(from[i], where, to[i]);
  }
  const Json& from_;
  const std::string& file_;
  const std::string& place_;
};

// ---- indices ------------------------------------------------------------------------------------

constexpr const char* kListNames[kLists] = {"devices",    "sources",    "modules", "tensors",
                                            "statistics", "operations", "nodes",   "buckets",
                                            "parameters", "storages",   "threads"};

// Checks that every index, and every event's edge, is valid.
class Checker {
 public:
  Checker(const std::string& file, const std::array<int64_t, kLists>& sizes, std::string place)
      : file_(file), sizes_(sizes), place_(std::move(place)) {}
  template <class T> void operator()(const char*, const T&) {}
  template <class T> void id(const char* name, const T& value, List list) {
    if constexpr (std::is_arithmetic_v<T>) {
      const auto n = static_cast<int64_t>(value);
      const auto end = sizes_[static_cast<size_t>(list)];
      if (n < -1 || n >= end)
        refuse(file_, place_, ".", name, ": got index ", n, ", expected -1 or one of ", end, " ",
               kListNames[static_cast<size_t>(list)]);
    } else {
      for (const Id one : value) id(name, one, list);
    }
  }
  template <class Row> void rows(const char* name, const std::vector<Row>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      Checker row(file_, sizes_,
                  (place_.empty() ? "" : place_ + ".") + name + "[" + std::to_string(i) + "]");
      fields(row, list[i]);
    }
  }

 private:
  const std::string& file_;
  const std::array<int64_t, kLists>& sizes_;
  const std::string place_;
};

void check(const RecordingData& d, const std::string& name) {
  const auto sizes = sizes_of(d);
  Checker checker(name, sizes, "");
  lists(checker, d);
  for (size_t i = 0; i < d.events.size(); ++i) {
    const EventRow& e = d.events[i];
    const auto edges =
        e.node < 0 ? Id{0} : static_cast<Id>(d.nodes[static_cast<size_t>(e.node)].edges.size());
    if (e.edge < -1 || e.edge >= edges)
      refuse(name, "events[", i, "].edge: got index ", e.edge, ", expected -1 or one of ", edges,
             " edges of its node");
  }
  for (size_t i = 0; i < d.modules.size(); ++i)  // so that going up ends
    if (d.modules[i].parent >= static_cast<Id>(i))
      refuse(name, "modules[", i, "].parent: got index ", d.modules[i].parent,
             ", expected an earlier one");
}

// ---- compression --------------------------------------------------------------------------------

std::string compressed(const std::string& text) {
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    fail("see", "no memory to compress a recording");
  std::string out;
  std::vector<char> room(size_t{1} << 18);
  size_t at = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const size_t piece = std::min(text.size() - at, size_t{1} << 30);
    if (z.avail_in == 0) {
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + at));
      z.avail_in = static_cast<uInt>(piece);
      at += piece;
    }
    z.next_out = reinterpret_cast<Bytef*>(room.data());
    z.avail_out = static_cast<uInt>(room.size());
    status = deflate(&z, at == text.size() ? Z_FINISH : Z_NO_FLUSH);
    out.append(room.data(), room.size() - z.avail_out);
  }
  deflateEnd(&z);
  return out;
}

std::string decompressed(const std::string& bytes, const std::string& name) {
  if (bytes.size() < 2 || bytes[0] != '\x1f' || bytes[1] != '\x8b')
    refuse(name, "is no recording: got ",
           bytes.empty() ? "an empty file" : "a file that is not compressed by gzip",
           ", expected one that Recording::write() wrote");
  z_stream z{};
  if (inflateInit2(&z, 15 + 16) != Z_OK) fail("see", "no memory to read a recording");
  const struct End {
    z_stream* z;
    ~End() { inflateEnd(z); }
  } end{&z};
  std::string out;
  std::vector<char> room(size_t{1} << 18);
  size_t at = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (z.avail_in == 0) {
      const size_t piece = std::min(bytes.size() - at, size_t{1} << 30);
      if (piece == 0) break;
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
      z.avail_in = static_cast<uInt>(piece);
      at += piece;
    }
    z.next_out = reinterpret_cast<Bytef*>(room.data());
    z.avail_out = static_cast<uInt>(room.size());
    status = inflate(&z, Z_NO_FLUSH);
    out.append(room.data(), room.size() - z.avail_out);
    if (out.size() > kMostText)
      refuse(name, "is too large: got more than ", kMostText, " bytes of text, expected fewer");
  }
  if (status == Z_DATA_ERROR)
    refuse(name, "is damaged: got bytes that gzip did not write (", z.msg ? z.msg : "no reason",
           "), expected a recording");
  if (status != Z_STREAM_END)
    refuse(name, "is cut short: got ", bytes.size(), " bytes, expected more");
  if (z.avail_in != 0 || at != bytes.size())
    refuse(name, "is damaged: got ", bytes.size() - at + z.avail_in,
           " bytes after its end, expected none");
  return out;
}

}  // namespace

std::string detail::compressed(const std::string& text) { return see::compressed(text); }

std::string to_json(const RecordingData& data) {
  std::string out = "{\"" + std::string(kVersionKey) + "\":" + std::to_string(kRecordingVersion);
  std::string rest;
  Writer writer(rest);
  fields(writer, data);
  return out + "," + rest + "}";
}

RecordingData from_json(const std::string& text, const std::string& name) {
  Json json;
  try {
    json = Json::parse(text, [&](int depth, Json::parse_event_t, const Json&) {
      if (depth > kMostLevels)
        refuse(name, "is no recording: got JSON nested deeper than ", kMostLevels,
               ", expected fewer levels");
      return true;
    });
  } catch (const Json::exception& e) {
    std::string why = e.what();
    why.resize(std::min(why.size(), why.find("; last read")));  // which may be the whole text
    refuse(name, "is no recording: got what is no JSON (", why, "), expected a recording");
  }
  const auto version = json.is_object() ? json.find(kVersionKey) : json.end();
  if (version == json.end() || !version->is_number_integer())
    refuse(name, "is no recording: got ", json.is_object() ? "JSON" : kind_of(json), " without \"",
           kVersionKey, "\", expected its version there");
  if (*version != kRecordingVersion)
    refuse(name, "version: got ", version->dump(), ", expected ", kRecordingVersion,
           *version > kRecordingVersion ? ": a newer Ramet wrote it" : "");
  RecordingData data;
  const std::string place;
  Reader reader(json, name, place);
  fields(reader, data);
  check(data, name);
  return data;
}

void write(const RecordingData& data, const std::string& path) {
  write_file_atomically(path, compressed(to_json(data)));
}

RecordingData read(const std::string& path) {
  auto in = ramet::detail::classic<std::ifstream>(path, std::ios::binary);
  auto bytes = ramet::detail::classic<std::ostringstream>();
  if (in.peek() != std::ifstream::traits_type::eof()) bytes << in.rdbuf();
  if (!in.is_open() || in.bad())
    refuse(path, "cannot be read: got \"", std::strerror(errno), "\", expected a file");
  return from_json(decompressed(bytes.str(), path), path);
}

}  // namespace see
}  // namespace ramet
