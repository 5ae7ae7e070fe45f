#include "parallel/distributed/checkpoint/checkpoint_folder_internal.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "autograd/grad_mode.h"
#include "nn/serialize/safetensors.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/logging.h"

namespace ramet::distributed::detail {
namespace {

namespace fs = std::filesystem;
constexpr const char* kOp = "DistributedCheckpoint";
constexpr const char* kDigest = "xxh64";  // in a manifest: digest of the rest, as the shortest JSON

// Parses the number at text[at] and moves `at` past it; -1 if there is none.
int64_t number_at(const std::string& text, size_t& at) {
  int64_t n = -1;
  for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at) {
    if (n > INT64_MAX / 10 - 1) return -1;
    n = std::max<int64_t>(n, 0) * 10 + (text[at] - '0');
  }
  return n;
}

bool parse(const std::string& file, CheckpointName& name) {
  const std::string first = "checkpoint-", second = "-step-";
  if (file.compare(0, first.size(), first) != 0) return false;
  size_t at = first.size();
  name.number = number_at(file, at);
  if (file.compare(at, second.size(), second) != 0) return false;
  at += second.size();
  name.step = number_at(file, at);
  // Neither "checkpoint-000007-step-4" nor ".../step-4x" is a checkpoint file.
  return name.number >= 0 && name.step >= 0 && at < file.size() &&
         (file[at] == '.' || file[at] == '-');
}

std::string lines_of(const Json& manifest) { return dumped(manifest, 1) + "\n"; }

// Collects a file's header: 8 bytes with its length, then that many bytes.
class Header {
 public:
  void add(const void* data, size_t bytes) {
    const char* p = static_cast<const char*>(data);
    while (bytes > 0 && text_.size() < wanted()) {
      const size_t n = std::min(bytes, wanted() - text_.size());
      text_.append(p, n);
      p += n, bytes -= n;
    }
  }
  const std::string& text() const { return text_; }

 private:
  size_t wanted() const {
    if (text_.size() < 8) return 8;
    uint64_t n = 0;
    for (int i = 7; i >= 0; --i)
      n = n << 8 | static_cast<unsigned char>(text_[static_cast<size_t>(i)]);
    return 8 + n;
  }
  std::string text_;
};

}  // namespace

std::string CheckpointName::stem() const {
  char text[64];
  std::snprintf(text, sizeof(text), "checkpoint-%06lld-step-%lld", static_cast<long long>(number),
                static_cast<long long>(step));
  return text;
}

std::string CheckpointName::data(int rank, int ranks, const std::string& digits) const {
  return stem() + "-rank-" + std::to_string(rank) + "-of-" + std::to_string(ranks) + "-" + digits +
         ".safetensors";
}

std::vector<CheckpointFile> list_checkpoints(const std::string& folder) {
  std::vector<CheckpointFile> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    CheckpointFile f{{}, at->path().filename().string()};
    if (parse(f.file, f.name)) files.push_back(std::move(f));
  }
  if (error == std::errc::no_such_file_or_directory) return {};
  RAMET_CHECK(!error, kOp, "cannot read the folder: got \"", error.message(), "\" for ", folder);
  std::sort(files.begin(), files.end(), [](const CheckpointFile& a, const CheckpointFile& b) {
    return a.name.number != b.name.number ? a.name.number < b.name.number : a.file < b.file;
  });
  return files;
}

void make_folder(const std::string& folder) {
  RAMET_CHECK(!folder.empty(), kOp, "folder: got \"\", expected a path");
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code error;
  std::vector<fs::path> above;  // the parent of each level that is made
  for (fs::path p = path; !fs::exists(p, error) && p.has_relative_path(); p = p.parent_path())
    above.push_back(p.parent_path());
  fs::create_directories(path, error);
  RAMET_CHECK(!error, kOp, "cannot make the folder: got \"", error.message(), "\" for ", folder,
              ", expected a writable place");
  for (const fs::path& p : above) sync_folder(p.string());
}

void remove_old(const std::string& folder, int keep, const Stage& at) {
  const std::vector<CheckpointFile> files = list_checkpoints(folder);
  std::vector<int64_t> kept;  // numbers
  for (auto f = files.rbegin(); f != files.rend(); ++f)
    if (f->is_manifest() && static_cast<int>(kept.size()) < keep) kept.push_back(f->name.number);
  // Manifests first: a manifest must never exist without its files.
  for (const bool manifests : {true, false}) {
    for (const CheckpointFile& f : files) {
      if (f.is_manifest() != manifests || std::count(kept.begin(), kept.end(), f.name.number))
        continue;
      std::error_code error;
      fs::remove(fs::path(folder) / f.file, error);
      if (error) RAMET_WARN("[", kOp, "] cannot remove ", f.file, ": ", error.message());
    }
    if (manifests) at("removing");
  }
}

void write_manifest(const std::string& path, const Manifest& m, const Stage& at) {
  Json json = {{"format", 1},
               {"step", m.step},
               {"world_size", m.world_size},
               {"archive", m.other.to_json()},
               {"files", Json::array()}};
  for (const DataFile& f : m.files)
    json["files"].push_back({{"name", f.name}, {"bytes", f.bytes}, {"header", f.header}});
  json[kDigest] = digest_of(dumped(json));
  at("manifest");
  AtomicFile file(path);
  file.write(lines_of(json));
  at("manifest written");
  file.commit();
  at("committed");
}

Manifest read_manifest(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const auto damaged = [&](const std::string& why) -> Damaged { return Damaged(name + " " + why); };
  auto in = ramet::detail::classic<std::ifstream>(path, std::ios::binary);
  if (!in) throw damaged("cannot be read");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  try {
    Json json = json_of(text);
    if (lines_of(json) != text) throw damaged("is damaged: it is not as it was written");
    const std::string expected = json.at(kDigest).get<std::string>();
    json.erase(kDigest);
    const std::string found = digest_of(dumped(json));
    if (found != expected)
      throw damaged("is damaged: got content with the checksum " + found + ", expected " +
                    expected);
    if (json.at("format") != 1)
      throw damaged("is of format " + dumped(json.at("format")) + ", expected 1");
    Manifest m{json.at("step").get<int64_t>(),
               json.at("world_size").get<int>(),
               CheckpointValues::of(json.at("archive")),
               {}};
    for (const Json& f : json.at("files"))
      m.files.push_back({f.at("name").get<std::string>(), f.at("bytes").get<uint64_t>(),
                         f.at("header").get<std::string>()});
    return m;
  } catch (const Json::exception&) { throw damaged("is damaged: it is no JSON of a checkpoint"); }
}

DataFile write_data(const std::string& folder, const std::string& name,
                    const std::vector<SavedPiece>& pieces,
                    const std::map<std::string, TensorPart>& tensors, const Stage& at) {
  const NoGradGuard off;
  serialize::Safetensors content;
  Json parts = Json::object();
  for (const SavedPiece& piece : pieces) {
    const TensorPart& part = tensors.at(piece.name);
    const bool entire = piece.length == part.local.numel();
    Tensor saved = part.local.detach().contiguous();
    std::vector<Cut> cuts = part.cuts;
    if (!entire) {
      saved = saved.view({-1}).slice(0, piece.begin, piece.begin + piece.length);
      cuts.push_back({1, part.local.numel(), 1, piece.begin, piece.length});
    } else if (cuts.empty()) {
      saved = saved.view(part.sizes);
    }
    const Tensor dense = in_main_memory(saved);
    std::string digests;
    const char* p = static_cast<const char*>(dense.data_ptr());
    const int64_t bytes = static_cast<int64_t>(dense.nbytes());
    for (int64_t b = 0; b < bytes; b += kBlock)
      digests += digest_of(p + b, static_cast<size_t>(std::min(kBlock, bytes - b)));
    parts[piece.name] = {{"dtype", short_name_of(saved.scalar_type())},
                         {"sizes", part.sizes},
                         {"cuts", to_json(cuts)},
                         {"xxh64", digests}};
    content.tensors.emplace_back(piece.name, saved);
  }
  content.metadata[kParts] = dumped(parts);

  at("data");
  AtomicFile file((fs::path(folder) / name).string());
  Header header;
  DataFile written{name, 0, {}};
  serialize::save_safetensors(
      [&](const void* data, size_t bytes) {
        file.write(data, bytes);
        header.add(data, bytes);
        written.bytes += bytes;
        return bytes;
      },
      content);
  written.header = digest_of(header.text());
  at("data written");
  file.commit();
  at("data in place");
  return written;
}

}  // namespace ramet::distributed::detail
