// Files of other programs. NumPy, PyTorch and LibTorch wrote those that are checked in
// (goldens/make_goldens.py); where Python has them, they also write some now. Others are damaged.
// Parts of this program: formats_torch.cc (PyTorch), formats_pickles.cc, formats_names.cc.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>

#include "nn/formats/numpy/npy.h"
#include "nn/formats/numpy/npz.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/pytorch/state_dict.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/serialize/safetensors.h"
#include "tests/nn/formats/formats_support.h"
#include "tests/nn/formats/fuzz_formats.h"

namespace ramet {
namespace {

using formats::load_npy;
using formats::load_npz;

// ---- NumPy --------------------------------------------------------------------------------------

TEST(Npy, ReadsNumPysFiles) {
  expect_same(load_npy(kGoldens + "v1.npy"), known(kFloat, {2, 3}), "v1");
  expect_same(load_npy(kGoldens + "v2.npy"), known(kInt, {2, 3}), "v2");
  expect_same(load_npy(kGoldens + "v3.npy"), known(kDouble, {3}), "v3");
  expect_same(load_npy(kGoldens + "fortran.npy"), known(kShort, {2, 3, 4}), "fortran");
  EXPECT_TRUE(load_npy(kGoldens + "fortran.npy").is_contiguous());
  const Tensors arrays = load_npz(kGoldens + "arrays.npz");
  ASSERT_EQ(arrays.size(), 45u);
  for (const ScalarType dtype : dtypes()) {
    if (dtype == kBFloat16) continue;
    const std::string name = short_name_of(dtype);
    expect_same(arrays[name], known(dtype, {2, 3}), name);
    expect_same(arrays[name + "_big"], known(dtype, {2, 3}), name + "_big");
    expect_same(arrays[name + "_0d"], known(dtype, {}), name + "_0d");
    expect_same(arrays[name + "_empty"], known(dtype, {0, 3}), name + "_empty");
    expect_same(arrays[name + "_fortran"], known(dtype, {3, 4}), name + "_fortran");
  }
  EXPECT_EQ(arrays[0].key(), "bool");
  const Tensors compressed = load_npz(kGoldens + "compressed.npz", Device(kCPU, 1));
  expect_same(compressed["arr_0"].to(kHost), known(kFloat, {50, 4}), "arr_0");
  EXPECT_EQ(compressed["named"].device(), Device(kCPU, 1));
}

TEST(Npy, UnsignedIntegers) {
  const Tensor narrow = load_npy(kGoldens + "uint16.npy"), wide = load_npy(kGoldens + "uint32.npy");
  EXPECT_EQ(narrow.scalar_type(), kUInt16);
  EXPECT_EQ(wide.scalar_type(), kUInt32);
  EXPECT_TRUE(equal(narrow.to(kLong), tensor({1, 2, 65535})));
  EXPECT_TRUE(equal(wide.to(kLong), tensor({{int64_t{0}, int64_t{4294967295}}})));
}

TEST(Npy, RefusesWhatItDoesNotHave) {
  const auto refused = [](const std::string& file, const std::string& part) {
    const std::string error = error_of([&] { load_npy(kGoldens + file); });
    expect_part(error, "[load_npy] \"" + kGoldens + file + "\", offset ");
    expect_part(error, part);
  };
  refused("complex.npy", "got '<c8' (complex numbers)");
  refused("objects.npy", "got '|O' (Python objects, which are never loaded)");
  refused("texts.npy", "got '<U2' (texts)");
  refused("uint64.npy", "got '<u8' (unsigned integers of 64 bits)");
  refused("fields.npy", "got a structure of several fields");
  refused("raw.npy", "bfloat16 say");
  const auto header = [](const std::string& text, const std::string& data) {
    std::string s("\x93NUMPY\x01\0", 8);
    s += {static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
    return s + text + data;
  };
  const auto wrong = [&](const std::string& text, const std::string& data,
                         const std::string& part) {
    const std::string bytes = header(text, data);
    expect_part(error_of([&] { load_npy(bytes.data(), bytes.size(), "f"); }), part);
  };
  const std::string good = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
  wrong(good, "a", "got 1 bytes of data, expected 2 for uint8[2]");
  wrong(good, "abc", "got 3 bytes of data, expected 2");
  wrong("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\x01\x02", "a bool of byte 2");
  wrong(
      "{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387904, "
      "4611686018427387904)}",
      "", "more than an int64 holds");
  wrong("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}", "",
        "more than an int64 holds");
  wrong("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}", "", "expected whole numbers");
  wrong("{'descr': '|u1', 'fortran_order': 0, 'shape': ()}", "a", "expected True or False");
  wrong("{'descr': '|u1', 'fortran_order': False}", "a", "expected the keys");
  wrong("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False}", "a", "\"descr\" twice");
  wrong("{'descr': '|u1', 'fortran_order': False, 'shape': (), 'x': 1}", "a", "got the key \"x\"");
  wrong("", "", "in the header: expected '{'");
  wrong(good + "x", "ab", "expected the header to end here");
  EXPECT_EQ(load_npy(header(good, "ab").data(), header(good, "ab").size()).sizes(),
            IntArrayRef({2}));
  const std::string plain = "{'descr': 'f4', 'fortran_order': False, 'shape': ()}";  // no order
  const std::string one_and_half = header(plain, std::string("\0\0\xc0\x3f", 4));
  EXPECT_EQ(load_npy(one_and_half.data(), one_and_half.size()).item<float>(), 1.5f);
  wrong("{'descr': 'f3', 'fortran_order': False, 'shape': ()}", "abc", "got 'f3' (floats of");
  EXPECT_ERROR_TEXT(load_npy("\x93NUMPY\x04\0ab", 10), "got version 4.0");
  EXPECT_ERROR_TEXT(load_npy("PK", 2), "is truncated: got 2 bytes");
  EXPECT_ERROR_TEXT(load_npy(kGoldens + "none.npy"), "cannot open the file");
  EXPECT_ERROR_TEXT(load_npy(kGoldens), "got the folder");
  const Folder folder;
  EXPECT_ERROR_TEXT(formats::save_npy(folder / "x.npy", known(kBFloat16, {2})),
                    "got dtype bfloat16, which NumPy does not have");
  EXPECT_ERROR_TEXT(formats::save_npy(folder / "x.npy", Tensor()), "got an undefined tensor");
  Tensors one;
  one.insert("a", known(kFloat, {2}));
  one.insert("b", known(kBFloat16, {2}));
  EXPECT_ERROR_TEXT(formats::save_npz(folder / "x.npz", one), "array \"b\": got dtype bfloat16");
  for (const std::string& name : {std::string("\xff"), std::string(70000, 'a')}) {
    Tensors named;
    named.insert(name, known(kFloat, {2}));
    EXPECT_ERROR_TEXT(formats::save_npz(folder / "x.npz", named), "name of an entry: got \"");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Npz, ArchivesThatLie) {
  std::ifstream stream(kGoldens + "arrays.npz", std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    expect_part(error_of([&] { load_npz(bytes.data(), bytes.size(), "f"); }), part);
  };
  std::string bad = good;
  bad[140] ^= 1;  // in the first array's data
  refused(bad, "[load_npz] \"f\", entry \"bool.npy\"");
  refused(good.substr(0, 3000), "\"f\": got no zip archive");
  refused("", "\"f\": got 0 bytes, expected a zip archive");
  // A directory that says that the first entry has 4 GiB.
  bad = good;
  const size_t directory = bad.find("PK\x01\x02");
  std::memset(&bad[directory + 24], 0x7f, 4);
  refused(bad, "expected as many as are there");
  bad = good;
  bad[directory + 10] = 12;  // bzip2
  refused(bad, "got the compression method 12");
  // A directory that names one entry's bytes several times.
  const std::string array = std::string(1000, ' ');
  const std::vector<char> made =
      formats::detail::zip_bytes("test", {{"a.npy", {{array.data(), array.size()}}}}, false);
  bad.assign(made.begin(), made.end());
  const size_t begin = bad.find("PK\x01\x02"), end = bad.rfind("PK\x05\x06");
  std::string entry = bad.substr(begin, end - begin), tail = bad.substr(end);
  for (const char name : {'b', 'c'}) {
    entry[46] = name;
    bad.insert(bad.size() - tail.size(), entry);
  }
  bad[bad.size() - 14] = bad[bad.size() - 12] = 3;
  bad[bad.size() - 10] = static_cast<char>(3 * entry.size());
  refused(bad, "entry 1: \"b.npy\": got 1000 bytes in 1000 of a file of ");
}

TEST(Npz, RoundTrips) {
  const Folder folder;
  const Tensors all = every_kind(/*with_bfloat16=*/false);
  for (const bool compressed : {false, true}) {
    formats::save_npz(folder / "x.npz", all, compressed);
    expect_all(load_npz(folder / "x.npz"), all);
    const auto size = std::filesystem::file_size(folder / "x.npz");
    formats::save_npz(folder / "y.npz", all, compressed);
    EXPECT_EQ(std::filesystem::file_size(folder / "y.npz"), size);
  }
  for (const auto& item : all) {
    formats::save_npy(folder / "x.npy", item.value());
    expect_same(load_npy(folder / "x.npy"), item.value(), item.key());
  }
  formats::save_npz(folder / "none.npz", Tensors());
  EXPECT_EQ(load_npz(folder / "none.npz").size(), 0u);
  Tensors twice;
  twice.insert("a/b", known(kFloat, {2}));
  formats::save_npz(folder / "z.npz", twice);
  EXPECT_TRUE(load_npz(folder / "z.npz").contains("a/b"));
}

// ---- safetensors --------------------------------------------------------------------------------

TEST(Index, SeveralFiles) {
  const Folder folder;
  serialize::Safetensors content;
  for (const auto& item : every_kind(true)) content.tensors.emplace_back(item.key(), item.value());
  content.metadata["made by"] = "test";
  const std::string path = folder / "model.safetensors.index.json";
  serialize::save_safetensors_index(path, content, 20000);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files += entry.path().extension() == ".safetensors";
  EXPECT_GT(files, 3u);
  const auto in = serialize::load_safetensors_index(path, Device(kCPU, 1));
  EXPECT_EQ(in.metadata.at("made by"), "test");
  ASSERT_EQ(in.tensors.size(), content.tensors.size());
  for (const auto& [name, tensor] : content.tensors)
    expect_same(in.find(name)->to(kHost), tensor, name);
  expect_same(formats::state_dict(path)["float32_large"], every_kind(true)["float32_large"],
              "large");
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  const auto refused = [&](const std::string& text, const std::string& part) {
    write(text);
    const std::string error = error_of([&] { serialize::load_safetensors_index(path); });
    expect_part(error, "\"" + path + "\"");
    expect_part(error, part);
  };
  refused("{", "no valid JSON");
  refused("{\"weight_map\": []}", "no object \"weight_map\"");
  refused("{\"weight_map\": {\"a\": \"../a\"}}",
          "got \"../a\", expected the name of a file beside it");
  refused("{\"weight_map\": {\"a\": 1}}", "got \"1\"");
  refused("{\"weight_map\": {\"a\": \"f\", \"a\": \"g\"}}", "the key \"a\" twice");
  serialize::Safetensors one;
  one.tensors.emplace_back("a", known(kFloat, {2}));
  serialize::save_safetensors(folder / "f", one);
  refused("{\"weight_map\": {\"b\": \"f\"}}", "\"f\" has the tensor \"a\", which the map does not");
  refused("{\"weight_map\": {\"a\": \"f\", \"b\": \"f\"}}", "got no tensor \"b\" in \"f\"");
  refused("{\"weight_map\": {\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}}",
          "nested deeper than 256");
  // What cannot be written is known before the first file is.
  one.metadata["a"] = "\xff";
  EXPECT_ERROR_TEXT(
      serialize::save_safetensors_index(folder / "x.safetensors.index.json", one, 100),
      "expected valid UTF-8");
  EXPECT_FALSE(std::filesystem::exists(folder / "x-00001-of-00001.safetensors"));
  write("{\"weight_map\": {\"a\": \"none\"}}");
  EXPECT_ERROR_TEXT(serialize::load_safetensors_index(path), "cannot open the file");
}

TEST(Mapped, IsTheFileAndNobodyElses) {
  const Folder folder;
  const std::string path = folder / "m.safetensors";
  serialize::Safetensors content;
  for (const auto& item : every_kind(true)) content.tensors.emplace_back(item.key(), item.value());
  serialize::save_safetensors(path, content);
  serialize::Safetensors in = serialize::map_safetensors(path);
  for (const auto& [name, tensor] : content.tensors) expect_same(*in.find(name), tensor, name);
  Tensor large = *in.find("float32_large");
  in = serialize::Safetensors();  // the pages stay as long as a tensor shows them
  large.fill_(2);
  EXPECT_EQ(large.sum().item<float>(), 2 * 301 * 17);
  expect_same(*serialize::load_safetensors(path).find("float32_large"),
              *content.find("float32_large"), "the file");
  // A header of an odd length: bytes that lie anywhere.
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_NE(header.size() % 4, 0u);
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  std::ofstream(path, std::ios::binary)
      << bytes << header << std::string("\0\0\x80\x3f\0\0\0\x40", 8);
  expect_same(*serialize::map_safetensors(path).find("a"), tensor({1.f, 2.f}), "a");
}

// ---- Python's own -------------------------------------------------------------------------------

TEST(Python, RoundTripsBitForBit) {
  const Folder folder;
  Tensors all = every_kind(/*with_bfloat16=*/false);
  formats::save_npz(folder / "all.npz", all);
  formats::save_npz(folder / "deflated.npz", all, /*compressed=*/true);
  formats::save_npy(folder / "one.npy", all["float16_strided"]);
  Tensors state = every_kind(/*with_bfloat16=*/true);
  const Tensor base = any(kFloat, {4, 6}, 7);
  state.insert("tied", base);
  state.insert("view", base.slice(1, 1, 6, 2));
  formats::save_pt(folder / "all.pt", state);
  const char* python = std::getenv("RAMET_PYTHON");
  const std::string command = std::string(python ? python : "python3") + " " + kGoldens +
                              "round_trip.py " + folder.path() + " > " + (folder / "said") +
                              " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream stream(folder / "said");
  const std::string said{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::cout << said;
  if (contains(said, "not found")) GTEST_SKIP() << "no Python here (RAMET_PYTHON names one)";
  ASSERT_EQ(status, 0) << said;
  if (contains(said, "done numpy")) {
    for (const char* back : {"back.npz", "back_deflated.npz", "back_fortran.npz", "back_big.npz"}) {
      SCOPED_TRACE(back);
      expect_all(load_npz(folder / back), all);
    }
    expect_same(load_npy(folder / "back.npy"), all["float16_strided"], "back.npy");
  }
  if (contains(said, "done torch")) {
    for (const char* back : {"back.pt", "back_old.pt", "back_protocol5.pt"}) {
      SCOPED_TRACE(back);
      const Tensors in = formats::state_dict(folder / back);
      expect_all(in, state);
      in["tied"].fill_(1);
      EXPECT_EQ(in["view"].sum().item<float>(), 12);
    }
  }
  if (!contains(said, "done")) GTEST_SKIP() << said;
}

// ---- damaged ------------------------------------------------------------------------------------

// Pages that this process has had at most: a file of some kilobytes may not cost hundreds of
// megabytes.
TEST(Damaged, IsReadOrRefusedAndCostsLittle) {
  const auto peak = [] {
    rusage usage;
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;  // MiB
  };
  const int64_t before = peak();
  fuzz::check_tapes(300, 60, fuzz::check_npy);
  fuzz::check_tapes(300, 60, fuzz::check_npz);
  fuzz::check_tapes(500, 60, fuzz::check_pt);
  fuzz::check_tapes(300, 60, fuzz::check_old_pt);
  fuzz::check_tapes(500, 100, fuzz::check_pickle);
  fuzz::check_tapes(5, 60, fuzz::check_index);
  fuzz::check_tapes(10, 200, fuzz::check_mapped);
  EXPECT_LT(peak() - before, 700);
}

}  // namespace
}  // namespace ramet
