// torch::jit::load() and script::Module::save().
#include <istream>
#include <limits>
#include <ostream>

#include "nn/script/exported/exported_internal.h"
#include "nn/script/module_internal.h"
#include "nn/serialize/source_internal.h"

namespace ramet::jit {
namespace {

using formats::detail::ZipReader;
using ramet::script::LoadOptions;
using serialize::detail::Source;

constexpr const char* kLoad = "torch::jit::load";
constexpr const char* kSave = "torch::jit::Module::save";

// A stream from its position on.
class StreamSource final : public Source {
 public:
  explicit StreamSource(std::istream& in) : in_(in), start_(in.tellg()) {
    in_.seekg(0, std::ios::end);
    const std::streampos end = in_.tellg();
    in_.seekg(start_);
    RAMET_CHECK(in_.good() && start_ >= std::streampos(0) && end >= start_, kLoad,
                "got a stream that cannot be read at any position, expected one that can");
    bytes_ = static_cast<uint64_t>(end - start_);
  }
  uint64_t size() const override { return bytes_; }
  void read(uint64_t at, void* to, uint64_t bytes) override {
    in_.clear();
    in_.seekg(start_ + static_cast<std::streamoff>(at));
    in_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    RAMET_CHECK(in_.gcount() == static_cast<std::streamsize>(bytes), kLoad, "stream: got ",
                in_.gcount(), " bytes at offset ", at, ", expected ", bytes);
  }

 private:
  std::istream& in_;
  std::streampos start_;
  uint64_t bytes_ = 0;
};

class AdapterSource final : public Source {
 public:
  explicit AdapterSource(const ReadAdapter& in) : in_(in), bytes_(in.size()) {}
  uint64_t size() const override { return bytes_; }
  void read(uint64_t at, void* to, uint64_t bytes) override {
    const size_t got = bytes == 0 ? 0 : in_.read(at, to, bytes, "a TorchScript file");
    RAMET_CHECK(got == bytes, kLoad, "ReadAdapter: got ", got, " bytes at offset ", at,
                ", expected ", bytes);
  }

 private:
  const ReadAdapter& in_;
  uint64_t bytes_;
};

void set_home(const Module& module, ramet::script::CompilationUnit& unit) {
  if (unit.device) {
    unit.home = *unit.device;
    return;
  }
  for (const bool parameters : {true, false})
    for (const Tensor& t : parameters ? module.parameters() : module.buffers())
      if (t.defined()) {
        unit.home = t.device();
        return;
      }
}

Module read(ZipReader& zip, const LoadOptions& options, ExtraFilesMap* extra) {
  const auto loaded = ramet::script::is_exported(zip)
                          ? ramet::script::read_exported(zip, options, extra)
                          : read_archive(zip, options, extra);
  compile_all(loaded);
  const Module module = ModuleAccess::make(loaded);
  loaded.object->unit()->texts = loaded.texts;  // for IValue::toModule()
  set_home(module, *loaded.object->unit());
  return module;
}
Module read(const std::string& path, const LoadOptions& options, ExtraFilesMap* extra) {
  ZipReader zip(kLoad, path);
  return read(zip, options, extra);
}
Module read(std::istream& in, const LoadOptions& options, ExtraFilesMap* extra) {
  StreamSource source(in);
  ZipReader zip(kLoad, "stream", source);
  return read(zip, options, extra);
}
Module read(const std::shared_ptr<ReadAdapter>& in, const LoadOptions& options,
            ExtraFilesMap* extra) {
  RAMET_CHECK(in, kLoad, "ReadAdapter: got an empty pointer");
  AdapterSource source(*in);
  ZipReader zip(kLoad, "ReadAdapter", source);
  return read(zip, options, extra);
}
LoadOptions to_device(std::optional<Device> device) {
  LoadOptions options;
  options.device = device;
  return options;
}

// "dir/net.pt" is written as net/data.pkl, ..., as PyTorch does.
std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  name = name.substr(0, name.rfind('.'));
  return formats::detail::is_entry_name(name) ? name : "archive";
}

}  // namespace

Module load(const std::string& path, std::optional<Device> device) {
  return read(path, to_device(device), nullptr);
}
Module load(std::istream& in, std::optional<Device> device) {
  return read(in, to_device(device), nullptr);
}
Module load(std::shared_ptr<ReadAdapter> in, std::optional<Device> device) {
  return read(in, to_device(device), nullptr);
}
Module load(const std::string& path, std::optional<Device> device, ExtraFilesMap& extra_files) {
  return read(path, to_device(device), &extra_files);
}
Module load(std::istream& in, std::optional<Device> device, ExtraFilesMap& extra_files) {
  return read(in, to_device(device), &extra_files);
}
Module load(std::shared_ptr<ReadAdapter> in, std::optional<Device> device,
            ExtraFilesMap& extra_files) {
  return read(in, to_device(device), &extra_files);
}
Module load(const std::string& path, const LoadOptions& options) {
  return read(path, options, nullptr);
}
Module load(std::istream& in, const LoadOptions& options) { return read(in, options, nullptr); }

void Module::save(const std::string& path, const ExtraFilesMap& extra_files) const {
  (void)object();
  ramet::script::ArchiveWriter writer(kSave, folder_of(path) + "/");
  const auto parts = writer.parts(ModuleAccess::loaded(*this), extra_files);
  formats::detail::write_zip(kSave, path, parts, /*deflate=*/false);
}
void Module::save(std::ostream& out, const ExtraFilesMap& extra_files) const {
  (void)object();
  ramet::script::ArchiveWriter writer(kSave, "archive/");
  const auto parts = writer.parts(ModuleAccess::loaded(*this), extra_files);
  const std::vector<char> bytes = formats::detail::zip_bytes(kSave, parts, /*deflate=*/false);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  RAMET_CHECK(out.good(), kSave, "cannot write ", bytes.size(), " bytes to the stream");
}

}  // namespace ramet::jit
