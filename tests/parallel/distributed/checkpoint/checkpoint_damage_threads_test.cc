// Folders of checkpoints: how many stay, which is the newest, and what becomes of damaged ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "parallel/distributed/checkpoint/checkpoint.h"
#include "tests/parallel/distributed/checkpoint/checkpoint_support.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/share.h"

namespace ramet::distributed {
namespace {

namespace fs = std::filesystem;

// Values that name the step they were saved at.
std::vector<TensorPart> parts_at(int64_t step, int rank, int ranks) {
  return {part_of("sharded", numbered({50, 7}, kFloat, step), Spread::rows, rank, ranks),
          part_of("big", numbered({1 << 19}, kFloat, step + 1), Spread::flat, rank, ranks),
          part_of("alike", numbered({33}, kDouble, step + 2), Spread::whole, rank, ranks)};
}
void save(const std::string& folder, const std::vector<int64_t>& steps, int keep = 2) {
  with_groups(2, seconds(60), [&](const Group& g) {
    for (const int64_t step : steps) {
      SaveOptions o;
      o.keep = keep;
      DistributedCheckpoint c(g);
      int64_t number = step;
      c.add_tensors("t", parts_at(step, g->rank(), 2)).add("number", number);
      c.save(folder, step, o);
    }
  });
}
// What one rank, or several, load: the report, after a check of every value. Or the error's text.
struct Loaded {
  LoadReport report;
  std::string error;
};
Loaded load(const std::string& folder, std::optional<int64_t> step = {}, int ranks = 1) {
  Loaded all;
  with_groups(ranks, seconds(60), [&](const Group& g) {
    std::vector<TensorPart> mine = parts_at(0, g->rank(), ranks);
    for (TensorPart& p : mine) p = blank(p);
    int64_t number = -1;
    DistributedCheckpoint c(g);
    c.add_tensors("t", mine).add("number", number);
    LoadOptions o;
    o.step = step;
    LoadReport report;
    std::string error;
    try {
      report = c.load(folder, o);
    } catch (const Error& e) { error = e.what(); }
    const auto expected = parts_at(error.empty() ? report.step : 0, g->rank(), ranks);
    for (size_t i = 0; i < mine.size(); ++i) {
      // After an error: as before.
      const Tensor want = error.empty() ? expected[i].local : blank(expected[i]).local;
      EXPECT_TRUE(same_bits(mine[i].local, want)) << mine[i].name << " " << error;
    }
    EXPECT_EQ(number, error.empty() ? report.step : -1);
    if (g->rank() == 0) all = {report, error};
  });
  return all;
}

std::vector<fs::path> files(const std::string& folder, const std::string& part = "") {
  std::vector<fs::path> all;
  for (const auto& e : fs::directory_iterator(folder))
    if (e.path().filename().string().find(part) != std::string::npos) all.push_back(e.path());
  std::sort(all.begin(), all.end());
  return all;
}
void change_byte(const fs::path& path, int64_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(at);
  const char c = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(c);
  ASSERT_TRUE(file.good());
}
fs::path copy_of(const std::string& folder, const std::string& to) {
  fs::remove_all(to);
  fs::copy(folder, to);
  return to;
}

TEST(CheckpointFolder, KeepsTheNewest) {
  TempFolder folder;
  const std::string c = folder.path("a/b/c");  // made with those above it
  save(c, {10, 20, 30});
  EXPECT_EQ(files(c, ".json").size(), 2u);
  EXPECT_EQ(files(c).size(), 6u);
  EXPECT_EQ(load(c).report.step, 30);
  EXPECT_EQ(load(c, 20).report.step, 20);
  expect_part(load(c, 10).error, "got no whole checkpoint of step 10 in ");
  // Back to step 20, and on from there: what was saved last is the newest.
  save(c, {21});
  EXPECT_EQ(load(c).report.step, 21);
  EXPECT_EQ(load(c, 30).report.step, 30);
  // The same step again.
  save(c, {21}, 1);
  EXPECT_EQ(files(c).size(), 3u);
  EXPECT_EQ(load(c, {}, 3).report.step, 21);
}

// Leftovers of killed saves go, of every kind; what is the user's stays.
TEST(CheckpointFolder, RemovesLeftovers) {
  TempFolder folder;
  const std::string c = folder.path("c");
  save(c, {1});
  const std::vector<std::string> left = {
      "checkpoint-000009-step-7-rank-0-of-2-0123abcd.safetensors",
      "checkpoint-000009-step-7-rank-1-of-2-0123abcd.safetensors.tmp.77.0",
      "checkpoint-000009-step-7.json.tmp.77.1"};
  const std::vector<std::string> users = {"checkpoint", "checkpoint-best.safetensors", "notes.txt",
                                          "checkpoint-000009-step-", "checkpoint-x-step-7.json"};
  for (const auto& names : {left, users})
    for (const std::string& name : names) std::ofstream(c + "/" + name) << "text";
  EXPECT_EQ(load(c).report.step, 1);
  save(c, {2}, 1);
  for (const std::string& name : left) EXPECT_FALSE(fs::exists(c + "/" + name)) << name;
  for (const std::string& name : users) EXPECT_TRUE(fs::exists(c + "/" + name)) << name;
  EXPECT_EQ(load(c).report.step, 2);
}

// Any changed byte, in any file, is noticed: the step before is loaded, or the error says why.
TEST(CheckpointFolder, AnyChangedByte) {
  TempFolder folder;
  const std::string c = folder.path("c");
  save(c, {1, 2});
  std::mt19937 random(7);
  for (const fs::path& file : files(c, "step-2")) {
    const auto size = static_cast<int64_t>(fs::file_size(file));
    std::vector<int64_t> places = {0, 7, 8, 9, size / 2, size - 1};
    for (int i = 0; i < 6 / testing::one_repeat_in(); ++i)
      places.push_back(static_cast<int64_t>(random()) % size);
    for (const int64_t at : places) {
      const fs::path copy = copy_of(c, folder.path("copy"));
      change_byte(copy / file.filename(), at);
      const Loaded passed = load(copy, {}, 1 + static_cast<int>(random() % 2));
      EXPECT_EQ(passed.error, "") << file << " " << at;
      EXPECT_EQ(passed.report.step, 1) << file << " " << at;
      ASSERT_EQ(passed.report.passed_over.size(), 1u) << file << " " << at;
      expect_part(passed.report.passed_over[0], "step 2: checkpoint-000002-step-2");
      const Loaded asked = load(copy, 2);
      expect_part(asked.error, "got no whole checkpoint of step 2 in ");
      expect_part(asked.error, file.filename().string());
    }
  }
}

TEST(CheckpointFolder, FilesThatAreShortLongOrMissing) {
  TempFolder folder;
  const std::string c = folder.path("c");
  save(c, {1, 2});
  for (const fs::path& file : files(c, "step-2")) {
    const uint64_t size = fs::file_size(file);
    const bool manifest = file.extension() == ".json";
    for (const uint64_t now : {uint64_t{0}, uint64_t{5}, size - 1, size + 1}) {
      const fs::path copy = copy_of(c, folder.path("copy"));
      fs::resize_file(copy / file.filename(), now);
      const Loaded passed = load(copy);
      EXPECT_EQ(passed.report.step, 1) << passed.error;
      ASSERT_EQ(passed.report.passed_over.size(), 1u);
      if (!manifest)
        expect_part(passed.report.passed_over[0],
                    "got " + std::to_string(now) + " bytes, expected " + std::to_string(size));
    }
    const fs::path copy = copy_of(c, folder.path("copy"));
    if (manifest) {  // deeper than a stack is
      std::ofstream(copy / file.filename())
          << "{\"format\": " << std::string(1 << 20, '[') << std::string(1 << 20, ']') << "}";
      const Loaded passed = load(copy);
      EXPECT_EQ(passed.report.step, 1) << passed.error;
      ASSERT_EQ(passed.report.passed_over.size(), 1u);
      expect_part(passed.report.passed_over[0], "is damaged");
    }
    fs::remove(copy / file.filename());
    const Loaded passed = load(copy);
    EXPECT_EQ(passed.report.step, 1);
    EXPECT_EQ(passed.report.passed_over.size(), manifest ? 0u : 1u);
  }
  // Nothing is whole: the text has all of it.
  for (const fs::path& file : files(c, "rank-1")) fs::resize_file(file, 1);
  const Loaded nothing = load(c);
  expect_part(nothing.error, "got no whole checkpoint in ");
  expect_part(nothing.error, "; step 2: checkpoint-000002-step-2-rank-1-of-2-");
  expect_part(nothing.error, "; step 1: checkpoint-000001-step-1-rank-1-of-2-");
  // A save does not mind, and the next load neither.
  save(c, {3});
  EXPECT_EQ(load(c).report.step, 3);
}

// One rank alone sees the damage: all pass over the step.
TEST(CheckpointFolder, OneRankSeesTheDamage) {
  TempFolder folder;
  const std::string c = folder.path("c");
  save(c, {1, 2});
  // The last rows belong to the last rank, then as now.
  const fs::path file = files(c, "step-2-rank-1")[0];
  change_byte(file, static_cast<int64_t>(fs::file_size(file)) - 1);
  const Loaded passed = load(c, {}, 2);
  EXPECT_EQ(passed.report.step, 1);
  EXPECT_EQ(passed.report.passed_over.size(), 1u);
}

}  // namespace
}  // namespace ramet::distributed
