#include "tools/ledger/ledger_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "nn/serialize/json_internal.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/error.h"
#include "tools/ledger/difference.h"
#include "tools/ledger/hash.h"

namespace ramet {
namespace ledger {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char *kChain = ",\"chain\":\"", *kFormat = "ramet ledger 1";

Json texts(const std::vector<uint64_t>& hashes) {
  Json all = Json::array();
  for (const uint64_t hash : hashes) all.push_back(hash == 0 ? Json(nullptr) : Json(hex(hash)));
  return all;
}

uint64_t hash_from(const Json& j) {
  if (j.is_null()) return 0;
  const std::string text = j.get<std::string>();
  RAMET_CHECK(text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos,
              "ledger", "got \"", text, "\", expected a hash");
  return std::strtoull(text.c_str(), nullptr, 16);
}

// Levels of a line. A file may be made to nest more.
constexpr int kMaxDepth = 8;
Json parsed(const std::string& path, const std::string& line) {
  return serialize::detail::parse_json("ledger", "a line of \"" + path + "\"", line, kMaxDepth);
}

bool is_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::vector<uint64_t> hashes_from(const Json& j) {
  std::vector<uint64_t> hashes;
  for (const Json& one : j) hashes.push_back(hash_from(one));
  return hashes;
}

// Calls f(name, member) for each member.
template <class H, class F> void fields(H& header, const F& f) {
  f("settings", header.settings);
  f("order", header.order);
  f("device", header.device);
  f("kernels", header.kernels);
  f("parameters", header.parameters);
  f("buffers", header.buffers);
  f("states", header.states);
  f("command", header.command);
  f("folder", header.folder);
  f("processes", header.processes);
}

// "{...}" without its end becomes a line.
std::string with_chain(std::string text, uint64_t* chain) {
  text.pop_back();
  *chain = hash_of(hex(*chain) + text);
  return text + kChain + hex(*chain) + "\"}\n";
}

}  // namespace

// ---- reading ------------------------------------------------------------------------------------

ReadLedger::ReadLedger(std::string path) : path_(std::move(path)) {
  std::ifstream in(path_, std::ios::binary);
  const int error = errno;
  RAMET_CHECK(!in.good() || is_file(path_), "ledger", "\"", path_,
              "\": got something that is no file, expected a ledger");
  RAMET_CHECK(in.good(), "ledger", "cannot read \"", path_, "\" (", std::strerror(error), ")");
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  uint64_t chain = 0;
  size_t count = 0;
  for (size_t at = 0; at < all.size();) {
    const size_t end = all.find('\n', at);
    if (end == std::string::npos) {
      cut_ = true;
      break;
    }
    const std::string text = all.substr(at, end - at);
    at = end + 1;
    ++count;
    const size_t body = text.rfind(kChain);
    RAMET_CHECK(body != std::string::npos, "ledger", "line ", count, " of \"", path_,
                "\": got no chain, expected a line of a ledger");
    const uint64_t expected = hash_of(hex(chain) + text.substr(0, body));
    RAMET_CHECK(text.substr(body) == kChain + hex(expected) + "\"}", "ledger", "line ", count,
                " of \"", path_,
                "\" does not follow the line before it: one of both was changed, "
                "or a line between them is missing");
    chain = expected;
    if (count == 1) first_ = text;
    else lines_.push_back(line_of(text));
  }
  RAMET_CHECK(!first_.empty(), "ledger", "\"", path_,
              "\": got a first line that is no header, expected a ledger");
  try {
    const Json j = parsed(path_, first_);
    RAMET_CHECK(j.at("format") == kFormat, "ledger", "\"", path_, "\": got a file of the format \"",
                j.at("format").get<std::string>(), "\", expected \"", kFormat, "\"");
    fields(header_, [&](const char* name, auto& value) { j.at(name).get_to(value); });
  } catch (const Json::exception&) {
    fail("ledger", "\"", path_, "\": got a first line that is no header, expected a ledger");
  }
}

// "{"step":N,...": a line begins with its kind.
constexpr const char* kKinds[] = {"step", "checkpoint"};

ReadLedger::Line ReadLedger::line_of(std::string text) {
  for (const Kind kind : {Kind::kStep, Kind::kCheckpoint}) {
    const std::string begin = std::string("{\"") + kKinds[static_cast<size_t>(kind)] + "\":";
    if (text.compare(0, begin.size(), begin) != 0) continue;
    const int64_t number = std::strtoll(text.c_str() + begin.size(), nullptr, 10);
    return {kind, number, std::move(text)};
  }
  return {Kind::kOther, 0, std::move(text)};
}

std::vector<int64_t> ReadLedger::numbers(Kind kind) const {
  std::vector<int64_t> all;
  for (const Line& line : lines_)
    if (line.kind == kind) all.push_back(line.number);
  return all;
}

const ReadLedger::Line* ReadLedger::find(Kind kind, int64_t number) const {
  for (const Line& line : lines_)
    if (line.kind == kind && line.number == number) return &line;
  return nullptr;
}

const std::string& ReadLedger::text_of(Kind kind, int64_t number) const {
  if (const Line* const found = find(kind, number)) return found->text;
  const std::vector<int64_t> has = numbers(kind);
  fail("ledger", "\"", path_, "\": got ", kKinds[static_cast<size_t>(kind)], " ", number,
       ", expected one that it has: ",
       has.empty()
           ? "none"
           : "those from " + std::to_string(has.front()) + " to " + std::to_string(has.back()),
       cut_ ? " (its last line is cut)" : "");
}

StepLine ReadLedger::step(int64_t number) const {
  try {
    const Json j = parsed(path_, text_of(Kind::kStep, number));
    StepLine s;
    s.step = number;
    s.batch = hash_from(j.at("batch"));
    s.random = hash_from(j.at("random"));
    for (const Json& pass : j.at("gradients")) s.gradients.push_back(hashes_from(pass));
    s.parameters = hashes_from(j.at("parameters"));
    s.buffers = hashes_from(j.at("buffers"));
    if (!j.contains("operations")) return s;
    for (const Json& o : j.at("operations"))
      s.operations.push_back({o.at(0).get<int64_t>(), o.at(1).get<int64_t>(), o.at(2).get<bool>(),
                              o.at(3).get<std::string>(), hash_from(o.at(4))});
    return s;
  } catch (const Json::exception& e) {
    fail("ledger", "\"", path_, "\": step ", number, " is damaged (", e.what(), ")");
  }
}

CheckpointLine ReadLedger::checkpoint(int64_t number) const {
  try {
    const Json j = parsed(path_, text_of(Kind::kCheckpoint, number));
    return {number, hashes_from(j.at("parameters")), hashes_from(j.at("buffers")),
            hashes_from(j.at("states"))};
  } catch (const Json::exception& e) {
    fail("ledger", "\"", path_, "\": checkpoint ", number, " is damaged (", e.what(), ")");
  }
}

bool ReadLedger::is_ledger(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string expected = std::string("{\"format\":\"") + kFormat + "\"";
  std::string begin(expected.size(), ' ');
  return is_file(path) && in.read(begin.data(), static_cast<std::streamsize>(begin.size())) &&
         begin == expected;
}

std::string ReadLedger::up_to(int64_t step) const {
  std::string text = first_ + "\n";
  for (const Line& line : lines_) {
    if (line.number > step) break;
    text += line.text + "\n";
  }
  return text;
}

// ---- writing ------------------------------------------------------------------------------------

LedgerWriter::~LedgerWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void LedgerWriter::open() {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  RAMET_CHECK(fd_ >= 0, "ledger", "cannot write \"", path_, "\" (", std::strerror(errno), ")");
}

void LedgerWriter::begin(const std::string& path, const Header& header) {
  path_ = path;
  Json j = {{"format", kFormat}};
  fields(header, [&](const char* name, const auto& value) { j[name] = value; });
  write_file_atomically(
      path, with_chain(j.dump(-1, ' ', false, Json::error_handler_t::replace), &chain_));
  open();
}

bool LedgerWriter::go_on(const std::string& path, const Header& header, int64_t step) {
  path_ = path;
  const ReadLedger before(path);
  check_same_run(before.header(), header);
  const std::string kept = before.up_to(step);
  const size_t last = kept.rfind(kChain) + std::strlen(kChain);
  chain_ = std::strtoull(kept.substr(last, 16).c_str(), nullptr, 16);
  write_file_atomically(path, kept);
  open();
  return before.has_step(step);
}

void LedgerWriter::write(std::string text) {
  uint64_t chain = chain_;
  const std::string line = with_chain(std::move(text), &chain);
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  const ssize_t done = ::write(fd_, line.data(), line.size());
  if (done == static_cast<ssize_t>(line.size())) {
    chain_ = chain;
    return;
  }
  const std::string reason = done < 0 ? std::strerror(errno) : "the disk is full";
  const bool whole = ::ftruncate(fd_, end) == 0;  // without a part of the line
  fail("ledger", "cannot write a line to \"", path_, "\" (", reason, ")",
       whole ? "" : "; its last line is cut");
}

void LedgerWriter::add(const StepLine& line) {
  Json j = {{"step", line.step}, {"batch", hex(line.batch)}, {"random", hex(line.random)}};
  j["gradients"] = Json::array();
  for (const auto& pass : line.gradients) j["gradients"].push_back(texts(pass));
  j["parameters"] = texts(line.parameters);
  j["buffers"] = texts(line.buffers);
  for (const Operation& o : line.operations)
    j["operations"].push_back({o.shard, o.number, o.backward, o.name, hex(o.hash)});
  write(j.dump());
}

void LedgerWriter::add(const CheckpointLine& line) {
  write(Json{{"checkpoint", line.step},
             {"parameters", texts(line.parameters)},
             {"buffers", texts(line.buffers)},
             {"states", texts(line.states)}}
            .dump());
}

std::string checkpoint_path(const std::string& ledger, int64_t step) {
  return ledger + ".checkpoints/" + std::to_string(step);
}

}  // namespace ledger
}  // namespace ramet
