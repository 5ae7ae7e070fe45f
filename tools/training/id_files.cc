#include "tools/training/id_files.h"

#include <array>
#include <fstream>

#include "autograd/ops.h"

namespace ramet::training {
namespace {

// llm.c's header: the magic number, the version of files of 16 bits, and the number of ids.
constexpr int32_t kMagic = 20240520, kVersion = 1;
using Header = std::array<int32_t, 256>;

}  // namespace

Tensor load_ids(const std::string& path, int64_t symbols) {
  const auto check = [&](bool good, const auto&... parts) {
    RAMET_CHECK(good, "train", "--data \"", path, "\": ", parts...);
  };
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  int64_t bytes = file.tellg();
  file.seekg(0);
  file.peek();  // a folder opens, too
  check(file.good() || (file.eof() && bytes == 0),
        "got a file that cannot be read, expected a text or ids");
  const auto read = [&](void* to, int64_t n) {
    file.clear();
    file.read(static_cast<char*>(to), n);
    check(file.gcount() == n, "got ", file.gcount(), " bytes, expected ", n);
  };
  const auto of = [](int64_t n, ScalarType dtype) {
    return Tensor(TensorBase::empty({n}, dtype, Device(kCPU, 0)));
  };
  if (!path.ends_with(".bin")) {
    const Tensor text = of(bytes, kByte);
    read(text.data_ptr(), bytes);
    return text.to(kUInt16);
  }
  check(bytes % 2 == 0, "got ", bytes, " bytes, expected an even number of them: ids of 16 bits");
  if (Header header{}; bytes >= static_cast<int64_t>(sizeof header)) {
    read(header.data(), sizeof header);
    if (header[0] == kMagic) {
      check(header[1] == kVersion, "got version ", header[1], " of llm.c's files, expected ",
            kVersion, ": ids of 16 bits");
      bytes -= static_cast<int64_t>(sizeof header);
      check(bytes / 2 == header[2], "got ", bytes / 2, " ids, expected ", header[2],
            " as its header says");
    } else {
      file.seekg(0);
    }
  }
  Tensor ids = of(bytes / 2, kUInt16);
  read(ids.data_ptr(), bytes);
  const auto* p = ids.data_ptr<uint16_t>();
  for (int64_t i = 0; i < ids.numel(); ++i)
    check(p[i] < symbols, "got the id ", p[i], " at place ", i, ", expected less than ", symbols);
  return ids;
}

}  // namespace ramet::training
