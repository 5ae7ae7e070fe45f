// Recognises files of other programs by their first bytes and, in zip archives, by the names at the
// end.
#include <algorithm>
#include <string_view>

#include "nn/serialize/foreign_internal.h"
#include "runtime/base/error.h"

namespace ramet::serialize::detail {
namespace {

constexpr std::string_view kZip("PK\x03\x04", 4), kNumPy("\x93NUMPY", 6);

bool begins_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}
bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
// Pickle's protocols 2 to 5: what PyTorch wrote before it wrote zip archives.
bool is_pickle(std::string_view head) {
  return head.size() > 8 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

// What to do with a file that `call` of the library //:formats can read, and Python by `reading`.
std::string advice(const std::string& call, const std::string& reading) {
  return "A program that links the library formats besides reads it by " + call +
         ". Or, in Python, save the tensors as safetensors, and load that file here: "
         "safetensors.torch.save_file(" +
         reading + ", \"weights.safetensors\")";
}

bool is_foreign(std::string_view head) {
  // The length of a safetensors header may begin like another format's first bytes. But its {
  // stands where no other format has one.
  if (head.size() > 8 && head[8] == '{') return false;
  return begins_with(head, kZip) || begins_with(head, kNumPy) || is_pickle(head);
}

}  // namespace

void refuse_foreign(const std::string& name, uint64_t size,
                    const std::function<void(uint64_t, void*, size_t)>& read) {
  const auto part = [&](uint64_t at, uint64_t most) {
    std::string text(std::min(size - at, most), ' ');
    read(at, text.data(), text.size());
    return text;
  };
  const std::string head = part(0, 256);
  if (!is_foreign(head)) return;
  // A zip archive lists at its end what is in it.
  const uint64_t most = 65536;
  const std::string tail = part(size - std::min(size, most), most);
  // A stream or memory has no file name to give to Python.
  const bool unnamed = name == "stream" || name == "memory";
  const std::string quoted = unnamed ? "FILE" : "\"" + name + "\"";
  const auto refuse = [&](const char* what, const char* function, const char* header,
                          const std::string& reading) {
    const std::string call =
        std::string("ramet::formats::") + function + quoted + ") of \"nn/formats/" + header + "\"";
    fail("load", "\"", name, "\": got ", what,
         ", expected a file that save() wrote, or safetensors. ", advice(call, reading));
  };
  if (begins_with(head, kNumPy))
    refuse("an array that NumPy wrote", "load_npy(", "numpy/npy.h",
           "{\"0\": torch.from_numpy(numpy.load(" + quoted + "))}");
  if (!begins_with(head, kZip))
    refuse("a pickle, as old versions of PyTorch wrote it", "load_torch(value, ", "pytorch/pt.h",
           "torch.load(" + quoted + ")");
  // The names of LibTorch's entries: model/data.pkl, model/data/0, and with code: a module's or an
  // optimizer's archive by C++, or TorchScript.
  if (has(tail, "/constants.pkl") || has(tail, "/code/"))
    refuse("an archive that LibTorch wrote (torch::save in C++, or TorchScript)",
           "load_torch(value, ", "pytorch/pt.h", "torch.jit.load(" + quoted + ").state_dict()");
  if (has(tail, "/data.pkl") || has(head, "/data.pkl") || has(head, "/data/"))
    refuse("an archive that PyTorch or LibTorch wrote (torch.save)", "load_torch(value, ",
           "pytorch/pt.h", "torch.load(" + quoted + ")");
  if (has(tail, ".npy") || has(head, ".npy"))
    refuse("an archive that NumPy wrote (.npz)", "load_npz(", "numpy/npz.h",
           "{k: torch.from_numpy(v) for k, v in numpy.load(" + quoted + ").items()}");
  fail("load", "\"", name,
       "\": got a zip archive, expected a file that save() wrote, or safetensors");
}

}  // namespace ramet::serialize::detail
