#include "nn/formats/numpy/npz.h"

#include <list>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npy_internal.h"
#include "nn/formats/zip/zip_internal.h"

namespace ramet::formats {
namespace {

constexpr std::string_view kEnding = ".npy";

OrderedDict<std::string, Tensor> load(detail::ZipReader& zip, std::optional<Device> device) {
  NoGradGuard no_grad;
  const std::optional<Device> target = device ? std::optional(resolve(*device)) : std::nullopt;
  OrderedDict<std::string, Tensor> arrays("Array");
  for (const auto& entry : zip.entries()) {
    const std::string where = "\"" + zip.file() + "\", entry \"" + entry.name + "\"";
    const size_t n = entry.name.size();
    RAMET_CHECK(n > kEnding.size() && entry.name.compare(n - kEnding.size(), n, kEnding) == 0,
                zip.op(), where, ": got no array, expected names that end in .npy");
    detail::ZipReader::Stream in(zip, entry);
    const Tensor t = detail::read_npy(zip.op(), where, entry.bytes,
                                      [&](void* to, uint64_t bytes) { in.read(to, bytes); });
    arrays.insert(entry.name.substr(0, n - kEnding.size()), target ? t.to(*target) : t);
  }
  return arrays;
}

}  // namespace

OrderedDict<std::string, Tensor> load_npz(const std::string& path, std::optional<Device> device) {
  detail::ZipReader zip("load_npz", path);
  return load(zip, device);
}
OrderedDict<std::string, Tensor> load_npz(const char* data, size_t bytes, const std::string& name,
                                          std::optional<Device> device) {
  detail::ZipReader zip("load_npz", name, data, bytes);
  return load(zip, device);
}

void save_npz(const std::string& path, const OrderedDict<std::string, Tensor>& arrays,
              bool compressed) {
  std::list<std::string> headers;  // they and the tensors stay where the archive's parts say
  std::vector<Tensor> tensors;
  std::vector<detail::ZipPart> parts;
  for (const auto& item : arrays) {
    RAMET_CHECK(!item.key().empty() && item.key().find('\0') == std::string::npos, "save_npz",
                "name of an array: got \"", item.key(), "\", expected a text");
    headers.push_back(detail::npy_header("save_npz", "array \"" + item.key() + "\"", item.value()));
  }
  auto header = headers.begin();
  for (const auto& item : arrays) {
    const Tensor& dense = tensors.emplace_back(detail::as_written(item.value()));
    parts.push_back({item.key() + std::string(kEnding),
                     {{header->data(), header->size()}, {dense.data_ptr(), dense.nbytes()}}});
    ++header;
  }
  detail::write_zip("save_npz", path, parts, compressed);
}

}  // namespace ramet::formats
