// What the training program draws and writes beside the model: curve, graph, metrics, progress
// line.
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tests/tools/train_support.h"
#include "tools/training/canvas.h"
#include "tools/training/curve.h"
#include "tools/training/graph_svg.h"
#include "tools/training/grid.h"
#include "tools/training/history.h"
#include "tools/training/progress.h"
#include "tools/training/stroke_font.h"

namespace ramet::training {
namespace {

// ---- PNG ----------------------------------------------------------------------------------------

struct Picture {
  uint32_t width = 0, height = 0;
  std::string pixels;  // RGB rows
};
uint32_t big_endian(const std::string& s, size_t at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<uint8_t>(s[at + i]);
  return v;
}
// A reader for 8-bit RGB, by the PNG specification, checksums included.
Picture decode(const std::string& png) {
  Picture p;
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  std::string packed;
  for (size_t at = 8; at + 12 <= png.size();) {
    const uint32_t n = big_endian(png, at);
    const std::string type = png.substr(at + 4, 4), body = png.substr(at + 8, n);
    EXPECT_EQ(big_endian(png, at + 8 + n),
              crc32(0, reinterpret_cast<const Bytef*>(png.data() + at + 4), n + 4))
        << type;
    if (type == "IHDR") {
      p.width = big_endian(body, 0), p.height = big_endian(body, 4);
      EXPECT_EQ(body.substr(8, 5), std::string("\x08\x02\x00\x00\x00", 5));
    }
    if (type == "IDAT") packed += body;
    at += 12 + n;
  }
  const size_t row = 3 * p.width;
  std::string raw(p.height * (row + 1), '\0');
  uLongf size = raw.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  p.pixels.resize(p.height * row);
  for (size_t y = 0; y < p.height; ++y) {
    const int filter = raw[y * (row + 1)];
    for (size_t i = 0; i < row; ++i) {
      const auto at = [&](size_t yy, size_t ii) {
        return static_cast<uint8_t>(p.pixels[yy * row + ii]);
      };
      const int a = i >= 3 ? at(y, i - 3) : 0, b = y > 0 ? at(y - 1, i) : 0,
                c = i >= 3 && y > 0 ? at(y - 1, i - 3) : 0;
      const int pa = std::abs(b - c), pb = std::abs(a - c), pc = std::abs(a + b - 2 * c);
      const int guess[] = {0, a, b, (a + b) / 2, pa <= pb && pa <= pc ? a : pb <= pc ? b : c};
      p.pixels[y * row + i] =
          static_cast<char>(static_cast<uint8_t>(raw[y * (row + 1) + 1 + i]) + guess[filter]);
    }
  }
  return p;
}

TEST(Canvas, PngHoldsWhatWasDrawn) {
  Canvas c(40, 30, {255, 255, 255});
  c.box(10, 5, 20, 4, {200, 30, 40});
  c.line(0, 20.5, 40, 20.5, 3, {0, 0, 255});
  c.dot(5, 10, 2, {0, 255, 0});
  const Picture p = decode(c.png());
  ASSERT_EQ(p.width, 40u);
  ASSERT_EQ(p.height, 30u);
  const auto pixel = [&](size_t x, size_t y) { return p.pixels.substr(3 * (y * 40 + x), 3); };
  EXPECT_EQ(pixel(0, 0), "\xff\xff\xff");
  EXPECT_EQ(pixel(15, 7), "\xc8\x1e\x28");
  EXPECT_EQ(pixel(15, 9), "\xff\xff\xff");
  EXPECT_EQ(pixel(33, 20), std::string("\x00\x00\xff", 3));
  EXPECT_EQ(pixel(4, 9), std::string("\x00\xff\x00", 3));
  for (int y = 0; y < 30; ++y)
    for (int x = 0; x < 40; ++x) {
      const Color a = c.at(x, y);
      EXPECT_EQ(
          pixel(static_cast<size_t>(x), static_cast<size_t>(y)),
          std::string({static_cast<char>(a.r), static_cast<char>(a.g), static_cast<char>(a.b)}));
    }
}

TEST(Canvas, DrawingOutsideIsClipped) {
  Canvas c(10, 10, {255, 255, 255});
  c.box(-100, -100, 105, 105, {0, 0, 0});
  c.line(-1e6, 8, 1e6, 8, 1, {0, 0, 0});
  c.text(-50, 5, 12, "wide text that leaves the picture", {0, 0, 0});
  c.dot(500, 500, 20, {0, 0, 0});
  EXPECT_EQ(c.at(2, 2).r, 0);
  EXPECT_EQ(c.at(9, 6).r, 255);
}

TEST(Grid, PicturesStandInRows) {
  // Three pictures of 2 x 3 pixels, two in a row: 42 times as large, 4 pixels apart.
  const Tensor gray = arange(18, kFloat).view({3, 1, 2, 3}) / 17;
  const Tensor colours = cat({gray, gray * 0 + 2, gray * 0 - 1}, 1);
  for (const Tensor& pictures : {gray, colours}) {
    const Picture p = decode(draw_grid(pictures, 2));
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
  expect_part(error_of([] { draw_grid(zeros({1, 2, 3, 3}), 1); }), "expected (N, 1 or 3,");
}

TEST(StrokeFont, EveryLetterAndDigitHasAShapeOfItsOwn) {
  std::set<std::string> shapes;
  std::string all = "0123456789.,:-_+=/%()?";
  for (char c = 'a'; c <= 'z'; ++c) all += {c, static_cast<char>(c - 32)};
  for (char c : all) {
    const Glyph g = glyph(c);
    EXPECT_GT(g.advance, 1.5) << c;
    std::string key;
    for (const Points& stroke : g.strokes) {
      EXPECT_GE(stroke.size(), 2u) << c;
      for (const auto& [x, y] : stroke) {
        EXPECT_TRUE(x >= -1.5 && x <= 7.5 && y >= -3 && y <= 9) << c;
        key += std::to_string(x) + "," + std::to_string(y) + " ";
      }
    }
    EXPECT_TRUE(shapes.insert(key).second) << c;
  }
  EXPECT_TRUE(glyph(' ').strokes.empty());
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
    const Picture p = decode(draw_curve(filled(h, epochs, steps), steps, "title", "subtitle"));
    EXPECT_EQ(p.width, 1280u);
    std::map<std::string, int> colors;
    for (size_t i = 0; i < p.pixels.size(); i += 3) ++colors[p.pixels.substr(i, 3)];
    EXPECT_EQ(colors.count("\x25\x63\xbe"), 1u) << "the loss's heading";
    if (epochs > 0) { EXPECT_GT(colors.at("\xd3\x54\x26"), 20) << "the dots of accuracy"; }
  }
  History two;
  for (int s = 1; s <= 20; ++s)
    two.add(StepRecord{s, 1, 1.0, 0.5, 1e-3, 1, {{"generator_loss", 3.0}}});
  two.add(EpochRecord{1, 20, 1, 0.5, 1, {{"iou", 0.7}}});
  const std::string pixels = decode(draw_curve(two, 20, "", "", "iou")).pixels;
  EXPECT_NE(pixels.find("\x14\x8c\x78"), std::string::npos) << "the other loss";
  EXPECT_NE(pixels, decode(draw_curve(two, 20, "", "")).pixels) << "another measure";
  History odd;
  odd.add(StepRecord{1, 1, std::nan(""), 0, 1, 1});
  odd.add(StepRecord{2, 1, INFINITY, 0, 1, 1});
  odd.add(EpochRecord{1, 2, std::nan(""), 0, 1});
  EXPECT_EQ(decode(draw_curve(odd, 2, "", "")).height, 640u);
}

// ---- graph.svg ----------------------------------------------------------------------------------

// Tags open and close in order, attributes are quoted, '&' begins an entity: enough to be read by
// any XML reader.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&') { EXPECT_NE(xml.find(';', at), std::string::npos); }
    if (xml[at] != '<') continue;
    size_t end = at;
    bool quoted = false;
    for (; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      ASSERT_TRUE(end == at || quoted || xml[end] != '<') << xml.substr(at, 40);
    }
    ASSERT_LT(end, xml.size());
    const std::string tag = xml.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find(' '));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}
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
