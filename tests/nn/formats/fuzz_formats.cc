#include "tests/nn/formats/fuzz_formats.h"

#include <unistd.h>

#include <fstream>
#include <map>

#include "nn/formats/numpy/npy.h"
#include "nn/formats/numpy/npz.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/pytorch/state_dict.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/save.h"
#include "tests/nn/fuzz/fuzz_files.h"

namespace ramet {
namespace fuzz {
namespace {

using formats::detail::ZipReader;

const std::string kGoldens = "tests/nn/formats/goldens/";

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  RC_ASSERT(stream.good());
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}
const std::string& golden(const std::string& name) {
  static std::map<std::string, std::string> read;
  std::string& bytes = read[name];
  if (bytes.empty()) bytes = contents(kGoldens + name);
  return bytes;
}

using Parts = std::vector<std::pair<std::string, std::string>>;

Parts parts_of(const std::string& bytes) {
  ZipReader zip("test", "f", bytes.data(), bytes.size());
  Parts parts;
  for (const auto& e : zip.entries()) parts.emplace_back(e.name, zip.text(e));
  return parts;
}
std::string archive_of(const Parts& parts, bool deflate) {
  std::vector<formats::detail::ZipPart> list;
  for (const auto& [name, text] : parts) list.push_back({name, {{text.data(), text.size()}}});
  const std::vector<char> bytes = formats::detail::zip_bytes("test", list, deflate);
  return {bytes.begin(), bytes.end()};
}

std::string temporary(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  return std::string(base ? base : "/tmp") + "/fuzz_" + std::to_string(::getpid()) + "_" + name;
}

// As loads_or_refuses(), of an Error that says which file it is.
template <class F> bool read_or_refused(size_t most, F&& load) {
  return loads_or_refuses(most, [&] {
    try {
      load();
    } catch (const OutOfMemoryError&) { throw; } catch (const Error& e) {
      RC_ASSERT(std::string(e.what()).find("\"f\"") != std::string::npos);
      throw;
    }
  });
}

// A tree is visited to its end: all memory of its tensors is there.
double sum_of_bytes(const Tensor& t) {
  double sum = 0;
  if (t.numel() > 100000) return 0;  // an expanded one
  const Tensor dense = t.detach().contiguous();
  for (size_t i = 0; i < dense.nbytes(); ++i) sum += static_cast<const char*>(dense.data_ptr())[i];
  return sum;
}

void read_npy(const std::string& bad) {
  Tensor t;
  if (read_or_refused(2 * bad.size(), [&] { t = formats::load_npy(bad.data(), bad.size(), "f"); }))
    RC_ASSERT(t.nbytes() < bad.size());
}
void read_npz(const std::string& bad, bool deflated) {
  OrderedDict<std::string, Tensor> arrays;
  read_or_refused(bad.size() * (deflated ? 1100 : 2),
                  [&] { arrays = formats::load_npz(bad.data(), bad.size(), "f"); });
}
void read_pt(const std::string& bad, bool deflated) {
  // Printing it and iterating over it end, too.
  read_or_refused(bad.size() * (deflated ? 1100 : 2), [&] {
    const IValue tree = formats::load_pt(bad.data(), bad.size(), "f");
    if (tree.isGenericDict() && tree.toGenericDict().size() > 1000000) return;
    try {
      double sum = 0;
      for (const auto& item : formats::tensors_of(tree)) sum += sum_of_bytes(item.value());
      (void)sum;
      formats::torch_archive(tree, "f");
    } catch (const OutOfMemoryError&) {  // views of one storage are dense here
    } catch (const Error&) {             // two of one name
    }
  });
}

// A text in place of another of the same length, or not.
void change_words(Tape& tape, std::string& bytes) {
  static const std::vector<std::string> words = {
      "torch._utils", "_rebuild_tensor_v2", "FloatStorage", "LongStorage", "BoolStorage",
      "collections",  "OrderedDict",        "storage",      "posix",       "system"};
  const std::string& from = tape.one_of(words);
  const size_t at = bytes.find(from);
  if (at != std::string::npos) bytes.replace(at, from.size(), tape.one_of(words));
}

}  // namespace

void check_npy(Tape& tape) {
  static const std::vector<std::string> names = {"v1.npy",      "v2.npy",      "v3.npy",
                                                 "fortran.npy", "objects.npy", "fields.npy"};
  std::string bad = golden(tape.one_of(names));
  damage(tape, bad, false);
  read_npy(bad);
}

void check_npz(Tape& tape) {
  const bool deflated = tape.one_in(2);
  const std::string& good = golden(deflated ? "compressed.npz" : "arrays.npz");
  if (tape.one_in(2)) {
    std::string bad = good;
    damage(tape, bad, false);
    if (tape.one_in(2)) {  // the directory is at the end
      std::string tail = bad.substr(bad.size() - std::min<size_t>(bad.size(), 120));
      bad.resize(bad.size() - tail.size());
      damage(tape, tail, false);
      bad += tail;
    }
    read_npz(bad, true);
    return;
  }
  Parts parts = parts_of(good);
  parts.resize(std::min<size_t>(parts.size(), 4));
  for (auto& part : parts)
    if (tape.one_in(2)) damage(tape, part.second, false);
  read_npz(archive_of(parts, deflated), deflated);
}

void check_pt(Tape& tape) {
  static const std::vector<std::string> names = {
      "state.pt",           "checkpoint.pt",      "protocol5.pt",     "big.pt",
      "tensor.pt",          "optimizers.pt",      "libtorch_list.pt", "libtorch_adam.pt",
      "libtorch_values.pt", "libtorch_module.pt", "refused_code.pt",  "libtorch_pickle.pt",
      "mixed.pt",           "mixed_protocol4.pt"};
  const std::string& good = golden(tape.one_of(names));
  if (tape.one_in(4)) {
    std::string bad = good;
    damage(tape, bad, false);
    read_pt(bad, true);
    return;
  }
  Parts parts = parts_of(good);
  for (auto& [name, text] : parts) {
    const bool pickle = name.find("/data.pkl") != std::string::npos;
    if (name.find("/code/") != std::string::npos) text.clear();
    if (pickle || tape.one_in(8)) {
      if (tape.one_in(4)) change_words(tape, text);
      // Anywhere in a pickle, not at its begin alone.
      const size_t cut =
          pickle ? static_cast<size_t>(tape.below(static_cast<int64_t>(text.size()) + 1)) : 0;
      std::string end = text.substr(cut);
      damage(tape, end, false);
      text = text.substr(0, cut) + end;
    }
  }
  const bool deflate = tape.one_in(4);
  read_pt(archive_of(parts, deflate), deflate);
}

void check_old_pt(Tape& tape) {
  static const std::vector<std::string> names = {"old.pt", "old_protocol4.pt",
                                                 "refused_old_code.pt", "mixed_old.pt"};
  std::string bad = golden(tape.one_of(names));
  const size_t cut = static_cast<size_t>(tape.below(static_cast<int64_t>(bad.size()) + 1));
  std::string end = bad.substr(cut);
  if (tape.one_in(4)) change_words(tape, end);
  damage(tape, end, false);
  read_pt(bad.substr(0, cut) + end, false);
}

void check_pickle(Tape& tape) {
  using namespace std::string_literals;
  static const std::string tensor =
      "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
      "0X\x03\0\0\0cpuK\x02tQK\0K\x02\x85K\x01\x85\x89"
      "ccollections\nOrderedDict\n)RtR"s;
  static const std::vector<std::string> pieces = {"(",
                                                  ")",
                                                  "]",
                                                  "}",
                                                  "t",
                                                  "l",
                                                  "d",
                                                  "a",
                                                  "e",
                                                  "s",
                                                  "u",
                                                  "0",
                                                  "1",
                                                  "2",
                                                  "N",
                                                  "\x88",
                                                  "\x89",
                                                  "R",
                                                  "b",
                                                  "\x81",
                                                  "\x85",
                                                  "\x86",
                                                  "\x87",
                                                  "\x94",
                                                  "\x93",
                                                  "Q",
                                                  ".",
                                                  "K\x05",
                                                  "J\xff\xff\xff\xff",
                                                  "M\x01\x02",
                                                  "\x8a\x02\0\x80"s,
                                                  "G\x3f\xf0\0\0\0\0\0\0"s,
                                                  "X\x01\0\0\0a"s,
                                                  "\x8c\x01"
                                                  "0",
                                                  "\x8c\x07storage",
                                                  "h\0"s,
                                                  "q\0"s,
                                                  "h\x01",
                                                  "q\x01",
                                                  "ccollections\nOrderedDict\n",
                                                  "ctorch._utils\n_rebuild_tensor_v2\n",
                                                  "ctorch\nFloatStorage\n",
                                                  "ctorch\nSize\n",
                                                  "ctorch\ndevice\n",
                                                  "ctorch._utils\n_rebuild_parameter\n",
                                                  "c__torch__\nModule\n",
                                                  "ctorch.jit._pickle\nrestore_type_tag\n",
                                                  "ctorch\nfloat32\n",
                                                  "ctorch\nuint16\n",
                                                  "ca\nb\n",
                                                  "\x8f",
                                                  "\x90",
                                                  "\x91",
                                                  "\x92",
                                                  tensor,
                                                  "X\x01\0\0\0w"s + tensor + "s",
                                                  "]" + tensor + "a"};
  std::string pickle("\x80\x02", 2);
  for (int64_t n = tape.between(1, 40); n > 0; --n) pickle += tape.one_of(pieces);
  if (!tape.one_in(4)) pickle += '.';
  Parts parts = {
      {"a/data.pkl", pickle}, {"a/data/0", std::string(8, '\x3f')}, {"a/version", "3\n"}};
  if (tape.one_in(2)) parts.emplace_back("a/constants.pkl", "");
  read_pt(archive_of(parts, false), false);
}

void check_index(Tape& tape) {
  const std::string stem = temporary("model"), path = stem + ".safetensors.index.json";
  static const std::vector<ScalarType> dtypes = {kFloat, kByte, kBool};
  serialize::Safetensors content;
  for (int64_t n = tape.below(4); n >= 0; --n)
    content.tensors.emplace_back(any_text(tape) + std::to_string(n), any_tensor(tape, dtypes));
  serialize::save_safetensors_index(path, content, 16);
  const std::string good = contents(path);
  const auto same = [&](const serialize::Safetensors& in) {
    RC_ASSERT(in.tensors.size() == content.tensors.size());
    for (const auto& [name, tensor] : content.tensors) {
      const Tensor* found = in.find(name);
      RC_ASSERT(found != nullptr);
      RC_ASSERT(same_bytes(*found, tensor));
    }
  };
  same(serialize::load_safetensors_index(path));
  same(serialize::map_safetensors_index(path));
  for (int64_t n = 20; n > 0; --n) {
    std::string bad = good;
    damage(tape, bad, false);
    std::ofstream(path, std::ios::binary) << bad;
    loads_or_refuses(65536, [&] { serialize::load_safetensors_index(path); });
  }
  ::unlink(path.c_str());
  for (size_t files = 1; files <= content.tensors.size(); ++files) {
    for (size_t i = 1; i <= files; ++i) {
      char number[48];
      std::snprintf(number, sizeof number, "-%05zu-of-%05zu.safetensors", i, files);
      ::unlink((stem + number).c_str());
    }
  }
}

void check_mapped(Tape& tape) {
  const std::string path = temporary("mapped.safetensors");
  static const std::vector<ScalarType> dtypes = {kFloat, kByte, kBool, kDouble, kHalf};
  serialize::Safetensors content;
  for (int64_t n = tape.below(4); n >= 0; --n)
    content.tensors.emplace_back(any_text(tape) + std::to_string(n), any_tensor(tape, dtypes));
  serialize::save_safetensors(path, content);
  const std::string good = contents(path);
  while (tape.left()) {
    std::string bad = good;
    damage(tape, bad, true);
    std::ofstream(path, std::ios::binary) << bad;
    serialize::Safetensors loaded, mapped;
    const auto error = [](auto&& load) {
      try {
        load();
      } catch (const Error& e) { return std::string(e.what()); }
      return std::string();
    };
    const std::string refused = error([&] { loaded = serialize::load_safetensors(path); });
    RC_ASSERT(error([&] { mapped = serialize::map_safetensors(path, /*verify=*/true); }) ==
              refused);
    const std::string unchecked = error([&] { mapped = serialize::map_safetensors(path); });
    if (refused.find("the checksum") != std::string::npos) {
      RC_ASSERT(unchecked.empty());
      continue;
    }
    RC_ASSERT(unchecked == refused);
    RC_ASSERT(loaded.tensors.size() == mapped.tensors.size());
    for (size_t i = 0; i < loaded.tensors.size(); ++i)
      RC_ASSERT(same_bytes(loaded.tensors[i].second, mapped.tensors[i].second));
  }
  ::unlink(path.c_str());
}

}  // namespace fuzz
}  // namespace ramet
