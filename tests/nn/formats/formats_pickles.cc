// Pickles written by hand, and what small files may cost: a part of the program formats_test.
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/pytorch/state_dict.h"
#include "nn/formats/zip/zip_internal.h"
#include "tests/nn/formats/formats_support.h"

namespace ramet {
namespace {

using formats::load_pt;

// Each is in an archive with a storage "0" of 8 bytes.
using Entries = std::vector<std::pair<std::string, std::string>>;
IValue load_entries(const Entries& entries) {
  std::vector<formats::detail::ZipPart> parts;
  for (const auto& [name, text] : entries) parts.push_back({name, {{text.data(), text.size()}}});
  const std::vector<char> zip = formats::detail::zip_bytes("test", parts, /*deflate=*/false);
  return load_pt(zip.data(), zip.size(), "f");
}
std::string error_of_entries(const Entries& entries) {
  return error_of([&] { load_entries(entries); });
}
std::string error_of_pickle(const std::string& text, const std::string& more = "") {
  return error_of_entries(
      {{"a/data.pkl", "\x80\x02" + text}, {"a/data/0", "12345678"}, {"a/" + more, ""}});
}

TEST(Pt, PicklesThatLie) {
  using namespace std::string_literals;
  const auto refused = [](const std::string& pickle, const std::string& part) {
    const std::string error = error_of_pickle(pickle);
    expect_part(error, "[load_pt] \"f\", entry \"a/data.pkl\", offset ");
    expect_part(error, part);
  };
  const auto text = [](const std::string& s) { return "\x8c"s + static_cast<char>(s.size()) + s; };
  const auto storage = [&](const std::string& key, const std::string& count,
                           const std::string& type = "Float") {
    return "(" + text("storage") + "ctorch\n" + type + "Storage\n" + text(key) + text("cpu") +
           count + "tQ";
  };
  const auto tensor = [&](const std::string& of, const std::string& offset,
                          const std::string& sizes, const std::string& strides,
                          const std::string& metadata = "") {
    return "ctorch._utils\n_rebuild_tensor_v2\n(" + of + offset + sizes + strides + "\x89}" +
           metadata + "tR";
  };
  const std::string zero = "K\0"s, one = "K\x01", two = "K\x02", three = "K\x03",
                    most = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", minus = "J\xff\xff\xff\xff",
                    size1 = "\x85", size2 = "\x86", good = storage("0", two);
  EXPECT_EQ(error_of_pickle(tensor(good, zero, two + size1, one + size1) + "."), "no error");
  EXPECT_EQ(error_of_pickle(tensor(good, one, most + size1, zero + size1) + "."),
            "[load_pt] \"f\", entry \"a/data.pkl\", offset 97: got a tensor of sizes "
            "[9223372036854775807], strides [0] and offset 1, expected one inside the 8 bytes of "
            "storage \"0\"");
  // What PyTorch says of a view that is negated when it is read.
  const auto described = [&](const std::string& metadata) {
    return tensor(good, zero, two + size1, one + size1, metadata) + ".";
  };
  EXPECT_EQ(error_of_pickle(described("}")), "no error");
  EXPECT_EQ(error_of_pickle(described("N")), "no error");
  refused(described("]"), "got a list as metadata");
  // What is no data is its name.
  const auto opaque = [&](const std::string& pickle) {
    const IValue value =
        load_entries({{"a/data.pkl", "\x80\x02" + pickle}, {"a/data/0", "12345678"}});
    return value.isOpaque() ? value.toOpaque().name : "no opaque value";
  };
  EXPECT_EQ(opaque(described("}" + text("neg") + "\x88s")), "torch.float32 (neg)[2]");
  EXPECT_EQ(opaque(good + "."), "a storage");
  EXPECT_EQ(opaque(storage("0", two, "Quaternion") + "."), "torch.QuaternionStorage");
  EXPECT_EQ(opaque(tensor(storage("0", two, "Quaternion"), zero, two + size1, one + size1) + "."),
            "torch.QuaternionStorage");
  EXPECT_EQ(opaque("}]Ns."), "dictionary with a list as a key");
  EXPECT_EQ(opaque("\x8a\x09\1\2\3\4\5\6\7\1\1."), "an integer of more than 64 bits");
  EXPECT_EQ(opaque("cos\nsystem\n."), "os.system");
  EXPECT_EQ(opaque(text("builtins") + text("eval") + "\x93" + text("1") + size1 + "R."),
            "builtins.eval");
  // Of what was called, and of what its result was called with, given, or added to.
  EXPECT_EQ(opaque("ca\nb\n)R)RNb" + text("k") + one + "s(" + one + one + "e."), "a.b");
  EXPECT_EQ(opaque("ca\nb\n)}" + text("k") + one + "s\x92."), "a.b");
  EXPECT_EQ(opaque("\x8f("s + one + two + "\x90."), "builtins.set");
  EXPECT_EQ(opaque("("s + one + two + "\x91."), "builtins.frozenset");
  EXPECT_EQ(opaque("(" + text("module") + "ca\nb\nNNtQ."), "a.b");
  EXPECT_EQ(opaque("ctorch\nSize\n."), "torch.Size");
  EXPECT_EQ(opaque("ctorch\nFloatStorage\n)R."), "torch.FloatStorage");
  EXPECT_EQ(opaque("c__torch__\nModule\n)\x81}X\1\0\0\0aK\1sb."s), "__torch__.Module");
  const std::string inside = "expected one inside the 8 bytes of storage \"0\"";
  refused(tensor(good, zero, three + size1, one + size1) + ".", inside);
  refused(tensor(good, one, two + size1, one + size1) + ".", inside);
  refused(tensor(good, most, one + size1, one + size1) + ".", inside);
  refused(tensor(good, zero, two + size1, most + size1) + ".", inside);
  refused(tensor(good, zero, two + two + size2, one + one + size2) + ".", inside);
  refused(tensor(good, three, zero + size1, one + size1) + ".", inside);
  refused(tensor(good, minus, one + size1, one + size1) + ".", "a tensor of a storage from -1");
  refused(tensor(good, zero, minus + size1, one + size1) + ".", "got -1 among a tensor's sizes");
  refused(tensor(good, zero, one + size1, minus + size1) + ".", "got -1 among a tensor's strides");
  refused(tensor(good, zero, one + size1, one + one + size2) + ".", "got 1 sizes and 2 strides");
  refused(tensor(one, zero, one + size1, one + size1) + ".", "got a tensor of an integer");
  refused(storage("0", three) + ".", "got 8 bytes in entry \"a/data/0\", expected 12");
  refused(storage("0", most, "Long") + ".", "more than this machine has");
  refused(storage("0", minus) + ".", "expected its type, key, location and number of elements");
  refused(storage("9", two) + ".", "got no entry \"a/data/9\"");
  refused("(" + good + storage("0", one) + "t.", "got storage \"0\" of 4 bytes, expected 8");
  refused("(" + text("module") + "NNNNtQ.", "got a persistent \"module\", expected a storage");
  refused("NQ.", "got None, expected a storage");
  // Trees that are none, or never end.
  refused("]q\0h\0a."s, "got a list that holds itself");
  refused("}q\0X\1\0\0\0ah\0s."s, "got a dictionary that holds itself");
  refused(std::string(300, ']') + std::string(299, 'a') + ".", "nested deeper than 256");
  std::string doubled = "]q\0"s;
  for (int i = 0; i < 40; ++i) {
    const char from = static_cast<char>(i), to = static_cast<char>(i + 1);
    doubled += "](h"s + from + "h" + from + "eq" + to;
  }
  refused("(" + doubled + "t.", "the same values very many times");
  std::string long_text = "X\0\0\x10\0"s + std::string(1 << 20, 'x') + "q\0("s;
  for (int i = 0; i < 40; ++i) long_text += "h\0"s;
  refused(long_text + "t\x86.", "the same long texts many times");
  // What is not there.
  refused("h\5.", "got number 5 of the memo, which was not stored");
  refused("N", "the pickle ends in the middle");
  refused(".", "got nothing on the stack");
  refused("NN.", "got more than one value at the end");
  refused("t.", "got no mark on the stack");
  refused(
      "X\xff\xff\xff\x7f"
      "a.",
      "got a text of 2147483647 bytes, expected at most the 2 that");
  refused("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "got a text of 18446744073709551615 bytes");
  refused("\x95\xff\0\0\0\0\0\0\0N."s, "got a frame of 255 bytes");
  refused("X\1\0\0\0\xff."s, "no valid UTF-8");
  refused("NNNs.", "got None, expected a dictionary to put items into");
  refused("NNa.", "got None, expected a list to append to");
  // What makes objects of any class in other protocols.
  refused("(ios\nsystem\n.", "got the opcode 0x69 (INST or OBJ, which make objects of any class)");
  refused("\x82\1.", "got the opcode 0x82 (EXT, which names a class by a number)");
  refused("\x8f("s + "N.", "got more than one value at the end");
  refused("](N\x90.", "got a list, expected a set to add to");
  refused("ccollections\nOrderedDict\n)}NNs\x92.", "got arguments by name for the global");
  refused("V1\n.",
          "got the opcode 0x56 (an opcode of protocol 0, in which PyTorch writes nothing)");
  refused("N)R.", "got a call (REDUCE) of None with a tuple");
  refused("ccollections\nOrderedDict\n)RNb.", "got None, expected a dictionary of attributes");
  refused("]}b.", "got attributes (BUILD) for a list");
  // TorchScript's classes, in archives that have its constants.
  const std::string object = "c__torch__\nModule\n)\x81}X\1\0\0\0aK\1sb."s;
  EXPECT_EQ(error_of_pickle(object, "constants.pkl"), "no error");
  // The archive around it.
  const Entries entries = {{"a/data.pkl", "\x80\x02N."}};
  const auto with = [&](const std::string& name, const std::string& content) {
    Entries more = entries;
    more.emplace_back(name, content);
    return error_of_entries(more);
  };
  EXPECT_EQ(error_of_entries(entries), "no error");
  expect_part(with("a/version", "11\n"), "entry \"a/version\": got \"11\", expected at most 10");
  expect_part(with("a/byteorder", "middle"), "got \"middle\", expected little or big");
  expect_part(with("b/data.pkl", "N."), "got \"b/data.pkl\" besides \"a/data.pkl\"");
  expect_part(error_of_entries({{"a/data.pkl", "\x80\x02N.N"}}), "got 1 bytes behind the pickle's");
  expect_part(error_of_entries({{"a/data.pkl", "\x80\x06N."}}), "got a pickle of protocol 6");
}

// Small files that would cost gigabytes to read.
TEST(Pt, WhatIsNamedOnceIsNotCopiedForEver) {
  const auto archive = [](const std::string& pickle, bool deflate) {
    const std::string storage(256, '\1'), none = "\x80\x02).";
    return formats::detail::zip_bytes("test",
                                      {{"a/data.pkl", {{pickle.data(), pickle.size()}}},
                                       {"a/constants.pkl", {{none.data(), none.size()}}},
                                       {"a/data/0", {{storage.data(), storage.size()}}}},
                                      deflate);
  };
  const auto text = [](const std::string& s) {
    std::string made = "X";
    for (int i = 0; i < 4; ++i) made += static_cast<char>(s.size() >> (8 * i));
    return made + s;
  };
  const auto times = [](int n, const std::string& s) {
    std::string made;
    for (int i = 0; i < n; ++i) made += s;
    return made;
  };
  const auto error = [&](const std::string& pickle, bool deflate = false) {
    const auto bytes = archive("\x80\x02" + pickle + ".", deflate);
    return error_of([&] { formats::tensors_of(load_pt(bytes.data(), bytes.size(), "f")); });
  };
  const std::string much(100000, 'a'), call = "h\1h\2R0", again = "calls with the same long";
  // One list of pairs, made a dictionary again and again; one text; one class's name.
  const std::string pair = "K\1K\2\x86q\3", ordered = "ccollections\nOrderedDict\nq\1";
  const auto dicts = [&](int pairs, int calls) {
    return ordered + "](" + pair + times(pairs, "h\3") + "e\x85q\2" + "00" + times(calls, call) +
           "N";
  };
  expect_part(error(dicts(20000, 200)), again);
  EXPECT_EQ(error(dicts(20000, 2)), "no error");
  expect_part(error("c_codecs\nencode\nq\1" + text(much) + text("latin1") + "\x86q\2" + "00" +
                    times(300, call) + "N"),
              again);
  expect_part(error(text("__torch__") + "q\1" + text(much) + "q\2" + "00" +
                    times(300, "h\1h\2\x93" + std::string("0")) + "N"),
              again);
  // Each tensor of a dictionary has the names above it.
  const auto tensor = [&](const char* how, const char* type, const std::string& count) {
    return std::string("ctorch._utils\n_rebuild_tensor_") + how + "\n((" + text("storage") + type +
           text("0") + text("cpu") + count + "tQK" + std::string(1, '\0') + "K\1\x85K\1\x85\x89" +
           ordered + ")R";
  };
  const std::string floats = tensor("v2", "ctorch\nFloatStorage\n", "K@") + "tR";
  const auto below = [&](size_t name) {
    return "}" + text(std::string(name, 'a')) + "}" + text("b") + floats + "ss";
  };
  EXPECT_EQ(error(below(1000)), "no error");
  expect_part(error(below(5000)), "name of a tensor: got one of 5000 bytes");
  const auto long_name = archive("\x80\x02" + below(5000) + ".", false);
  const IValue tree = load_pt(long_name.data(), long_name.size(), "f");
  EXPECT_ERROR_TEXT(formats::torch_archive(tree), "name of a value: got one of 5001 bytes");
  // One long name of what cannot be read, in a list that is there many times.
  const std::string opaque = text("m") + text(much) + "\x93";
  EXPECT_EQ(error("]" + opaque + "a]" + floats + "a\x86"), "no error");
  expect_part(error("]" + opaque + "aq\4](" + times(4000, "h\4") + "e" + floats + "\x87"),
              "names of tensors: got more than");
  // Bytes of floats, also declared as bools.
  const std::string bools =
      tensor("v3", "ctorch.storage\nUntypedStorage\n", {'M', '\0', '\1'}) + "ctorch\nbool\ntR";
  EXPECT_EQ(error(bools), "no error");
  expect_part(error(bools + floats + "\x86"), "with bools and elements of other sizes");
  // A pickle that is nothing but marks, deflated.
  expect_part(error(std::string(8 << 20, '(') + "N", true),
              "entry \"a/data.pkl\": got 8388612 bytes, expected at most ");
}

}  // namespace
}  // namespace ramet
