// Files of recordings: what is written is read, and what is none is refused in one line.
#include "tools/see/recording_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/base/error.h"
#include "tests/error_text.h"

namespace ramet {
namespace see {
namespace {

std::string path_of(const char* name) { return testing::TempDir() + name; }
std::string bytes_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}
void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
std::string gzip(const std::string& text) {
  const std::string path = path_of("text.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return bytes_of(path);
}
std::string gunzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text(1 << 20, '\0');
  text.resize(static_cast<size_t>(gzread(file, text.data(), 1 << 20)));
  gzclose(file);
  return text;
}
// Every member has a value of its own.
RecordingData full() {
  RecordingData d;
  d.program = "train", d.title = "</script> \"q\" \\ \n \x01 ä", d.library = "0.1.0";
  d.created = "2026-11-27T08:00:00Z", d.began = 1795766400000000, d.notes = {"one", "two"};
  d.duration = uint64_t{1} << 52;
  d.devices = {{"cpu:0", "cpu", 0}, {"cuda:0", "emulated gpu", 0}};
  d.sources = {{"a.cc", "main()", 7}};
  d.modules = {{"", "Net", -1}, {"fc", "Linear", 0}};
  Statistics s{10, 1, 2, 3, -1.5, 0.1, 1e-300, 0.25, {}};
  for (size_t i = 0; i < 32; ++i) s.histogram[i] = static_cast<int64_t>(i * i);
  d.statistics = {s};
  d.tensors = {{{2, 0, 3}, "float32", 1, 4, 24, "fc.weight", 0}, {}};
  d.operations = {{"addmm",
                   "beta=2",
                   1,
                   "step > forward",
                   0,
                   {0, -1},
                   {1},
                   {3, 4294967295u},
                   {{0, 24, 3}},
                   1,
                   2,
                   5,
                   0,
                   11,
                   12}};
  d.nodes = {{"AddmmBackward0", 0, 1, -1, false, true, false, true, 9, {{1, 2, 0}, {-1, 0, -1}}},
             {"AccumulateGrad", -1, 0, 0, true, false, true, false, 0, {}}};
  d.kernels = {{"addmm", 1, 0, 0, "step", 5, 13, 14, 99, 100, true}};
  d.movements = {{"scatter", {0}, {1, 1}, 24, 0, 1, 0, 15, 16}};
  d.buckets = {{"reduce_add", {1}, 0, 24}};
  d.events = {{"delivered", 17, 0, 1, -1, 1, 0, 5, ""}, {"slot", 18, 1, -1, 0, 0, -1, 6, "x"}};
  d.parameters = {{"fc.weight", 0, 1, 1, false, {0}}};
  d.memory = {{1, {{0, 0}, {20, 48}}, 48, 20, {{4, 24, "parameter fc.weight", 0, 0, 0}}}};
  d.findings = {{"nan", "text", 0, 0, 0}};
  return d;
}

TEST(RecordingFile, ComesBackAsItWasWritten) {
  const std::string path = path_of("full.ramet.gz");
  const RecordingData data = full();
  write(data, path);
  EXPECT_EQ(read(path), data);
  // As others read it.
  const auto json = nlohmann::json::parse(gunzip(path));
  EXPECT_EQ(json["ramet_recording"], 1);
  EXPECT_EQ(json["title"], data.title);
  EXPECT_EQ(json["nodes"][0]["edges"][0]["to"], 1);
  EXPECT_EQ(json["operations"][0]["saved"][0]["bytes"], 24);
  EXPECT_EQ(json["statistics"][0]["min"], -1.5);
  EXPECT_EQ(json["statistics"][0]["max"], 0.1);
  EXPECT_EQ(json["memory"][0]["curve"][1][1], 48);
  EXPECT_EQ(json["memory"][0]["at_peak"][0]["owner"], "parameter fc.weight");
  EXPECT_EQ(json["events"][1]["text"], "x");
  EXPECT_EQ(json.size(), 23u);
}

TEST(RecordingFile, AnEmptyOneAndTextThatIsNoUtf8) {
  RecordingData data;
  const std::string path = path_of("empty.ramet.gz");
  write(data, path);
  EXPECT_EQ(read(path), data);
  data.title = "\xff";
  write(data, path);
  EXPECT_EQ(read(path).title, "\xef\xbf\xbd");
}

// What a newer writer of the same version adds is passed over; what an older one did not know has
// its default.
TEST(RecordingFile, MembersMayBeMoreOrFewer) {
  const RecordingData d = from_json(
      R"({"ramet_recording":1,"new":[1],"nodes":[{"name":"n","new":{},"edges":[{"to":0}]}]})", "t");
  EXPECT_EQ(d.nodes.at(0).edges.at(0).to, 0);
  EXPECT_EQ(d.nodes[0].device, -1);
}

TEST(RecordingFile, WhatIsNoneIsRefusedInOneLine) {
  const std::string path = path_of("broken.ramet.gz");
  const auto refused = [&](const std::string& bytes) {
    put(path, bytes);
    return error_of([&] { read(path); });
  };
  const auto json_refused = [&](const std::string& text) {
    return error_of([&] { from_json(text, "F"); });
  };
  EXPECT_EQ(error_of([] { read("/nowhere/x.gz"); }),
            "[see] /nowhere/x.gz: cannot be read: got \"No such file or directory\", expected a "
            "file");
  EXPECT_EQ(refused(""), "[see] " + path +
                             ": is no recording: got an empty file, expected one that "
                             "Recording::write() wrote");
  EXPECT_EQ(refused("PNG..."), "[see] " + path +
                                   ": is no recording: got a file that is not compressed by gzip, "
                                   "expected one that Recording::write() wrote");
  EXPECT_EQ(refused(gzip("{\"a\":1}")),
            "[see] " + path +
                ": is no recording: got JSON without \"ramet_recording\", expected its version "
                "there");
  EXPECT_EQ(refused(gzip("[1]")), "[see] " + path +
                                      ": is no recording: got a list without \"ramet_recording\", "
                                      "expected its version there");
  EXPECT_EQ(refused(gzip("{\"ramet_recording\":2,\"nodes\":7}")),
            "[see] " + path + ": version: got 2, expected 1: a newer Ramet wrote it");
  EXPECT_EQ(refused(gzip("{\"ramet_recording\":0}")),
            "[see] " + path + ": version: got 0, expected 1");
  EXPECT_NE(refused(gzip("hello")).find("is no recording: got what is no JSON ("),
            std::string::npos);
  EXPECT_EQ(json_refused(R"({"ramet_recording":1,"nodes":{}})"),
            "[see] F: nodes: got an object, expected a list");
  EXPECT_EQ(json_refused(R"({"ramet_recording":1,"nodes":[{"name":1}]})"),
            "[see] F: nodes[0].name: got a number, expected a text");
  EXPECT_EQ(json_refused(R"({"ramet_recording":1,"nodes":[{"edges":[{"slot":-1}]}]})"),
            "[see] F: nodes[0].edges[0].slot: got -1, expected 0 to 4294967295");
  EXPECT_EQ(json_refused(R"({"ramet_recording":1,"nodes":[{"sequence":1.5}]})"),
            "[see] F: nodes[0].sequence: got a number, expected a whole number");
  EXPECT_EQ(json_refused(R"({"ramet_recording":1,"statistics":[{"histogram":[1]}]})"),
            "[see] F: statistics[0].histogram: got 1 numbers, expected 32");
  EXPECT_EQ(json_refused(R"({"ramet_recording":1,"nodes":[{"edges":[{"to":1}]}]})"),
            "[see] F: nodes[0].edges[0].to: got index 1, expected -1 or one of 1 nodes");
  EXPECT_EQ(json_refused(R"({"ramet_recording":1,"events":[{"edge":0}]})"),
            "[see] F: events[0].edge: got index 0, expected -1 or one of 0 edges of its node");
  EXPECT_EQ(json_refused(R"({"ramet_recording":1,"modules":[{"parent":0}]})"),
            "[see] F: modules[0].parent: got index 0, expected an earlier one");
  EXPECT_EQ(json_refused(std::string(2000000, '[')),
            "[see] F: is no recording: got JSON nested deeper than 8, expected fewer levels");
}

TEST(RecordingFile, CutShortAnywhereOrWithAnyByteChanged) {
  const std::string path = path_of("cut.ramet.gz");
  write(full(), path);
  const std::string whole = bytes_of(path);
  ASSERT_GT(whole.size(), 500u);
  for (size_t n = 2; n < whole.size(); ++n) {
    put(path, whole.substr(0, n));
    EXPECT_EQ(error_of([&] { read(path); }), "[see] " + path + ": is cut short: got " +
                                                 std::to_string(n) + " bytes, expected more");
  }
  put(path, whole + "x");
  EXPECT_EQ(error_of([&] { read(path); }),
            "[see] " + path + ": is damaged: got 1 bytes after its end, expected none");
  // From byte 10 on: what is before says when and where it was compressed.
  for (size_t n = 10; n < whole.size(); ++n) {
    std::string other = whole;
    other[n] = static_cast<char>(other[n] ^ 0x10);
    put(path, other);
    // A changed distance of a repeated text may lead to the same text.
    RecordingData same;
    const std::string error = error_of([&] { same = read(path); });
    if (error == "no error") EXPECT_EQ(same, full()) << n;
    else EXPECT_EQ(error.rfind("[see] " + path + ": is ", 0), 0u) << n << ": " << error;
  }
}

TEST(RecordingFile, RanksAreMerged) {
  const RecordingData one = full();
  RecordingData later = full();
  later.began += 3;
  const RecordingData both = merge({later, one});
  EXPECT_EQ(both.ranks, 2);
  EXPECT_EQ(both.began, one.began);
  EXPECT_EQ(both.devices.size(), 4u);
  EXPECT_EQ(both.devices[0].rank, 0);
  EXPECT_EQ(both.devices[3].rank, 1);
  // Rank 0 began 3000 ns later.
  EXPECT_EQ(both.kernels[0].start, one.kernels[0].start + 3000);
  EXPECT_EQ(both.kernels[1].start, one.kernels[0].start);
  EXPECT_EQ(both.memory[0].curve[1][0], 3020);
  EXPECT_EQ(both.duration, one.duration + 3000);
  EXPECT_EQ(both.nodes[2].edges[0].to, 3);
  EXPECT_EQ(both.nodes[2].edges[1].to, -1);
  EXPECT_EQ(both.nodes[2].device, 3);
  EXPECT_EQ(both.tensors[2].storage, 4 + 5);
  EXPECT_EQ(both.operations[1].thread, 5u + 7);
  EXPECT_EQ(both.operations[1].saved[0].tensor, 2);
  EXPECT_EQ(both.memory[1].at_peak[0].parameter, 1);
  ASSERT_EQ(both.events.size(), 4u);
  EXPECT_EQ(both.events[0].node, 2);  // rank 1's are earlier
  EXPECT_EQ(both.events[2].node, 0);
  EXPECT_EQ(from_json(to_json(both), "both"), both);
  EXPECT_EQ(error_of([&] {
              merge({both, one});
            }),
            "[see] merge: recording 0 is of 2 ranks, expected one of 1");
  EXPECT_EQ(error_of([] { merge({}); }), "[see] merge: got no recordings, expected one a rank");
}

TEST(RecordingFile, APythonOfTenLinesReadsIt) {
  const char* const root = std::getenv("TEST_SRCDIR");
  const char* const workspace = std::getenv("TEST_WORKSPACE");
  ASSERT_TRUE(root && workspace);
  const std::string script = std::string(root) + "/" + workspace + "/tools/see/read_recording.py";
  const std::string path = path_of("python.ramet.gz"), out = path_of("python.txt");
  write(full(), path);
  ASSERT_EQ(std::system(("python3 " + script + " " + path + " > " + out).c_str()), 0);
  const std::string text = bytes_of(out);
  for (const char* line : {"2 nodes", "1 kernels", "2 events", "cuda:0 (emulated gpu)",
                           "AddmmBackward0 -> AccumulateGrad", "48 bytes at the peak"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
}

}  // namespace
}  // namespace see
}  // namespace ramet
