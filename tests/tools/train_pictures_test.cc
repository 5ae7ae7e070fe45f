// What the training program draws and writes in addition to the model: curve, graph, metrics,
// progress line.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <limits>
#include <map>
#include <thread>

#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tests/tools/pictures.h"
#include "tests/tools/train_support.h"
#include "tools/training/curve.h"
#include "tools/training/graph_svg.h"
#include "tools/training/history.h"
#include "tools/training/image_data.h"
#include "tools/training/progress.h"

namespace ramet::training {
namespace {

// ---- pictures -----------------------------------------------------------------------------------

TEST(Grid, PicturesStandInRows) {
  // Three pictures of 2 x 3 pixels, two in a row: 42 times as large, 4 pixels apart.
  const Tensor gray = arange(18, kFloat).view({3, 1, 2, 3}) / 17;
  const Tensor colours = cat({gray, gray * 0 + 2, gray * 0 - 1}, 1);
  for (const Tensor& pictures : {gray, colours}) {
    const DecodedPicture p = decode(picture_grid(pictures, 2));
    ASSERT_EQ(p.width, 2 * (3 * 42 + 4) + 4u);
    ASSERT_EQ(p.height, 2 * (2 * 42 + 4) + 4u);
    const auto pixel = [&](size_t x, size_t y) {
      return p.pixels.substr(3 * (y * p.width + x), 3);
    };
    for (size_t i = 0; i < 18; ++i) {
      const size_t picture = i / 6, x = i % 3, y = i / 3 % 2;
      const char first = static_cast<char>(static_cast<uint8_t>(std::lround(i / 17.0 * 255)));
      const std::string expected =
          pictures.size(1) == 1 ? std::string(3, first) : std::string({first, '\xff', '\0'});
      for (size_t corner : {0, 41})
        EXPECT_EQ(
            pixel(4 + picture % 2 * 130 + 42 * x + corner, 4 + picture / 2 * 88 + 42 * y + corner),
            expected)
            << i;
    }
    EXPECT_EQ(pixel(0, 0), "\xff\xff\xff");
    EXPECT_EQ(pixel(140, 100), "\xff\xff\xff") << "there is no fourth picture";
  }
  EXPECT_ERROR_TEXT(picture_grid(zeros({1, 2, 3, 3}), 1), "expected (N, 1 or 3, height, width)");
}

History& filled(History& h, int epochs, int steps) {
  for (int s = 1; s <= epochs * steps; ++s) {
    h.add(StepRecord{s, (s - 1) / steps + 1, 2.0 / s, 0.5, 1e-3, 0.1 * s});
    if (s % steps == 0) h.add(EpochRecord{s / steps, s, 0.4, 0.8 + 0.001 * s / steps, 0.1 * s});
  }
  return h;
}

TEST(Curve, DrawsAnyAmountOfData) {
  for (const auto& [epochs, steps] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 1}, {1, 5}, {3, 100}, {40, 10}}) {
    History h;
    const DecodedPicture p =
        decode(draw_curve(filled(h, epochs, steps), steps, "title", "subtitle"));
    EXPECT_EQ(p.width, 1280u);
    int loss = 0, accuracy = 0;
    for (size_t i = 0; i < p.pixels.size(); i += 3) {
      loss += p.pixels.compare(i, 3, "\x00\x72\xb2", 3) == 0;
      accuracy += p.pixels.compare(i, 3, "\xd5\x5e\x00", 3) == 0;
    }
    EXPECT_EQ(loss > 10, epochs > 0) << loss;
    EXPECT_EQ(accuracy > 30, epochs > 0) << accuracy;
  }
  History two;
  for (int s = 1; s <= 20; ++s)
    two.add(StepRecord{s, 1, 1.0, 0.5, 1e-3, 1, {{"generator_loss", 3.0}}});
  two.add(EpochRecord{1, 20, 1, 0.5, 1, {{"iou", 0.7}}});
  const std::string bytes = draw_curve(two, 20, "", "", "iou"), pixels = decode(bytes).pixels;
  EXPECT_EQ(bytes, draw_curve(two, 20, "", "", "iou"));
  EXPECT_NE(pixels.find(std::string("\x00\x9e\x73", 3)), std::string::npos) << "the other loss";
  EXPECT_NE(pixels, decode(draw_curve(two, 20, "", "")).pixels) << "another measure";
  History odd;
  odd.add(StepRecord{1, 1, std::nan(""), 0, 1, 1});
  odd.add(StepRecord{2, 1, INFINITY, 0, 1, 1});
  odd.add(EpochRecord{1, 2, std::nan(""), 0, 1});
  EXPECT_EQ(decode(draw_curve(odd, 2, "", "")).height, 640u);
}

// ---- graph.svg ----------------------------------------------------------------------------------

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(GraphSvg, DrawsEveryVertexAndEdge) {
  const Tensor w = ones({2, 3}, requires_grad()), b = ones({3}, requires_grad());
  const Tensor h = (mm(ones({4, 2}), w) + b).relu();
  const Tensor loss = (h * h + h).sum();
  const auto graph = autograd::collect_graph({loss}, {{"a<b> & \"w\"", w}, {"bias", b}});
  const std::string svg = draw_graph(graph, "title & <more>");
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "marker-end"), graph.edges.size());
  EXPECT_EQ(count(svg, "<g><title>"), graph.vertices.size());
  EXPECT_NE(svg.find("a&lt;b&gt; &amp; &quot;w&quot; float32[2, 3]"), std::string::npos);
  EXPECT_NE(svg.find("title &amp; &lt;more&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

// Boxes of one layer never overlap.
TEST(GraphSvg, BoxesStandApart) {
  Tensor x = ones({3}, requires_grad());
  std::vector<Tensor> parts;
  for (int i = 0; i < 12; ++i) parts.push_back((x * i).sin() + x * ones({3}, requires_grad()));
  Tensor sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum = i % 2 ? sum + parts[i] : parts[i] * sum;
  const std::string svg = draw_graph(autograd::collect_graph({sum}), "wide");
  expect_well_formed(svg);
  std::map<double, std::vector<std::pair<double, double>>> rows;
  for (size_t at = svg.find("</title><rect"); at != std::string::npos;
       at = svg.find("</title><rect", at + 1)) {
    const auto number = [&](const char* key) {
      return std::stod(svg.substr(svg.find(key, at) + std::string(key).size()));
    };
    rows[number(" y=\"")].emplace_back(number(" x=\""), number(" width=\""));
  }
  EXPECT_GT(rows.size(), 5u);
  for (auto& [y, row] : rows) {
    std::sort(row.begin(), row.end());
    for (size_t i = 0; i + 1 < row.size(); ++i)
      EXPECT_LT(row[i].first + row[i].second + 10, row[i + 1].first);
  }
}

// ---- metrics.jsonl and the progress line --------------------------------------------------------

TEST_F(TrainTest, HistoryIsKeptUpToTheResumedStep) {
  const std::string path = folder_ + "/metrics.jsonl";
  {
    History h;
    h.open(path, 0);
    filled(h, 2, 3);
    h.add(StepRecord{7, 3, std::nan(""), 0.25, 1e-4, 2, {{"generator_loss", 1.5}}});
    h.add(EpochRecord{3, 7, 0.5, 0.5, 2, {{"iou", 0.25}, {"frechet", std::nan("")}}});
  }
  std::ofstream(path, std::ios::app) << "{\"step\":8,\"ep";  // the write that a kill cut off
  History again;
  again.open(path, 7);
  EXPECT_EQ(again.steps().size(), 7u);
  ASSERT_EQ(again.epochs().size(), 3u);
  ASSERT_EQ(again.steps().back().more.size(), 1u);
  EXPECT_EQ(again.steps().back().more[0].name, "generator_loss");
  EXPECT_EQ(again.steps().back().more[0].value, 1.5);
  EXPECT_TRUE(again.steps()[0].more.empty());
  EXPECT_EQ(again.epochs()[2].test("iou"), 0.25);
  EXPECT_EQ(again.epochs()[2].test("accuracy"), 0.5);
  EXPECT_TRUE(std::isnan(again.epochs()[2].test("frechet")));
  EXPECT_TRUE(std::isnan(again.epochs()[2].test("nothing")));
  EXPECT_TRUE(std::isnan(again.steps().back().loss));
  EXPECT_EQ(again.steps()[1].loss, 1.0);
  EXPECT_EQ(again.epochs()[1].test_accuracy, 0.802);
  again.add(StepRecord{8, 3, 0.5, 1, 1e-4, 2});
  std::ifstream in(path);
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines)
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  EXPECT_EQ(lines, 11);
  History early;
  early.open(path, 4);
  EXPECT_EQ(early.steps().size(), 4u);
  EXPECT_EQ(early.epochs().size(), 1u);
  History fresh;
  fresh.open(path, 0);
  EXPECT_TRUE(fresh.steps().empty());
  EXPECT_TRUE(read_file(path).empty());
}

TEST_F(TrainTest, ANewRunRemovesTheOldResults) {
  printed(options());
  Options o = options();
  o.epochs = 100000;
  std::atomic<bool> over{false};
  std::signal(SIGINT, SIG_IGN);
  std::thread user([&] {
    while (!over && exists(out("summary.json"))) std::this_thread::yield();
    while (!over && read_file(out("metrics.jsonl")).empty()) std::this_thread::yield();
    ::kill(::getpid(), SIGINT);
  });
  printed(o, 130);
  over = true;
  user.join();
  std::signal(SIGINT, SIG_DFL);
  EXPECT_FALSE(exists(out("model.safetensors")))
      << "the old run's model beside the new run's checkpoint";
}

TEST(Progress, LineFitsAndSaysWhatMatters) {
  const ProgressBar::State s{2, 3, 120, 469, 0.31234, 0.8876, 6543.2, 75};
  const std::string line = progress_line(s, 120);
  EXPECT_EQ(line.rfind("epoch 2/3 [=====", 0), 0u) << line;
  EXPECT_NE(line.find("] 120/469  loss 0.3123  accuracy 88.8%  6,543 images/s  1:15 left"),
            std::string::npos)
      << line;
  for (int columns : {1, 20, 40, 80, 81, 200})
    EXPECT_LT(progress_line(s, columns).size(), static_cast<size_t>(std::max(columns, 2)));
  EXPECT_NE(progress_line({1, 1, 5, 5, 0, 0, 0, 0}, 100).find("=]"), std::string::npos);
  const double nan = std::nan("");
  for (const double loss : {nan, -nan})  // sums of infinities have a sign
    EXPECT_NE(progress_line({1, 1, 5, 5, loss, 0, 0, 0}, 100).find(" loss nan "),
              std::string::npos);
  EXPECT_EQ(fixed(-nan, 2), "nan");
  EXPECT_EQ(fixed(-1.0 / 3, 2), "-0.33");
  EXPECT_EQ(fixed(-std::numeric_limits<double>::infinity(), 2), "-inf");
  EXPECT_EQ(fixed(1e308, 4).size(), 309u + 5);
  EXPECT_EQ(clock_text(3723.4), "1:02:03");
  EXPECT_EQ(clock_text(7), "0:07");
  EXPECT_EQ(clock_text(std::nan("")), "?");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-1000), "-1,000");
}

}  // namespace
}  // namespace ramet::training
