// Pictures of numbers: what stands in the pixels, in the SVG, in the lines of text.
#include "tools/see/show.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tests/tools/pictures.h"
#include "tools/see/pictures/picture.h"
#include "tools/see/plot.h"

namespace ramet::see {
namespace {

const double kNaN = std::nan(""), kInf = std::numeric_limits<double>::infinity();

std::string hex(uint32_t rgb) {
  return {static_cast<char>(rgb >> 16), static_cast<char>(rgb >> 8), static_cast<char>(rgb)};
}

// What was drawn, decoded; nothing may touch the edges, where letters would be cut.
struct Seen : DecodedPicture {
  explicit Seen(const std::string& png, bool margin = true) : DecodedPicture(decode(png)) {
    if (!margin) return;
    const std::string paper = at(0, 0);
    for (size_t i = 0; i < 3; ++i) {
      for (size_t x = 0; x < width; ++x)
        EXPECT_TRUE(at(x, i) == paper && at(x, height - 1 - i) == paper) << "cut at x " << x;
      for (size_t y = 0; y < height; ++y)
        EXPECT_TRUE(at(i, y) == paper && at(width - 1 - i, y) == paper) << "cut at y " << y;
    }
  }
  std::string at(size_t x, size_t y) const { return pixels.substr(3 * (y * width + x), 3); }
  bool is(size_t x, size_t y, const std::string& color) const {
    return pixels.compare(3 * (y * width + x), 3, color) == 0;
  }
  // The first pixel of that colour, row by row.
  std::pair<size_t, size_t> find(const std::string& color) const {
    for (size_t y = 0; y < height; ++y)
      for (size_t x = 0; x < width; ++x)
        if (is(x, y, color)) return {x, y};
    ADD_FAILURE() << "no pixel of this colour";
    return {0, 0};
  }
  size_t count(const std::string& color) const {
    size_t n = 0;
    for (size_t i = 0; i < pixels.size(); i += 3) n += pixels.compare(i, 3, color) == 0;
    return n;
  }
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ShowTest : public ::testing::Test {
 protected:
  ShowTest() {
    const char* base = std::getenv("TEST_TMPDIR");
    folder_ = std::string(base ? base : "/tmp") + "/show_" + std::to_string(::getpid()) + "_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  ~ShowTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string folder_;
};

// ---- pixels -------------------------------------------------------------------------------------

constexpr size_t kCell = 48;

// Cells of a matrix that begins with its smallest number, and the bar next to it.
TEST_F(ShowTest, CellsAndColourBar) {
  show(tensor({{0.0, 1.0}, {2.0, 3.0}}), path("x.png"));
  const Seen p(read_file(path("x.png")));
  const std::string low = hex(0x440154), high = hex(0xfde725);
  const auto [x, y] = p.find(low);
  EXPECT_TRUE(p.is(x + 3, y + 3, low));
  EXPECT_TRUE(p.is(x + kCell - 1, y + kCell - 1, low));
  EXPECT_TRUE(p.is(x + kCell + 3, y + 3, hex(0x31688e))) << "a third of the way";
  EXPECT_TRUE(p.is(x + 3, y + kCell + 3, hex(0x35b779)));
  EXPECT_TRUE(p.is(x + kCell + 3, y + kCell + 3, high));
  EXPECT_TRUE(p.is(x + 2 * kCell, y + 3, p.at(0, 0))) << "paper beside it";
  // Its ends are the smallest and the largest number, in all of its 16 pixels.
  const size_t left = x + 2 * kCell + 22, bottom = y + 119;
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(p.is(left + i, y, high));
    EXPECT_TRUE(p.is(left + i, bottom, low));
  }
  EXPECT_FALSE(p.is(left, bottom + 2, low));
}

TEST_F(ShowTest, ColoursOfBothSignsMeetAtZero) {
  const Seen p(show_bytes(tensor({{-1.0, 0.0, 4.0}}),
                          ".png"));  // first found: the bar's end, in the first row of both
  EXPECT_GT(p.count(hex(0xf7f7f7)), 1500u) << "zero is white";
  EXPECT_GT(p.count(hex(0x67001f)), 1500u);
  EXPECT_EQ(p.count(hex(0x053061)), 0u) << "-1 is a quarter as strong as 4";
  const Seen given(show_bytes(tensor({{-1.0, 0.0, 4.0}}), ".png",
                              ShowOptions().map(ColorMap::kGray).range(std::pair(0.0, 2.0))));
  EXPECT_GT(given.count(hex(0x000000)), 2 * 1500u) << "-1 and 0 are at the lower end";
}

TEST_F(ShowTest, NanIsGreyAndCounted) {
  const Tensor x = tensor({{0.0, kNaN}, {kInf, 1.0}});
  for (const bool dark : {false, true}) {
    const Seen p(show_bytes(x, ".png", ShowOptions().dark(dark)));
    EXPECT_GT(p.count(hex(0x808080)), 1500u);
    EXPECT_GT(p.count(hex(0xfde725)), 2 * 1500u) << "infinity has the end's colour";
    EXPECT_EQ(p.at(0, 0), dark ? hex(0x14171c) : hex(0xffffff));
  }
  for (const double bad : {kNaN, kInf, -kInf})
    for (const Kind kind : {Kind::kMatrix, Kind::kHistogram})
      Seen(show_bytes(full({3, 4}, bad), ".png", ShowOptions().kind(kind)));
  Seen(show_bytes(full({4}, kNaN), ".png"));
}

TEST_F(ShowTest, EveryDtypeAndDevice) {
  const Tensor x = tensor({{0, 1, 1}, {1, 0, 1}});
  std::string expected;
  for (const ScalarType t :
       {kByte, kChar, kShort, kInt, kLong, kHalf, kBFloat16, kFloat, kDouble, kBool}) {
    const Seen p(show_bytes(x.to(t), ".png"));
    const auto [left, top] = p.find(hex(0x440154));
    std::string cells;
    for (size_t r = 0; r < 2; ++r)
      for (size_t c = 0; c < 3; ++c) cells += p.at(left + c * kCell + 2, top + r * kCell + 2);
    if (expected.empty()) expected = cells;
    EXPECT_EQ(cells, expected);
    EXPECT_EQ(cells.substr(3, 3), hex(0xfde725));
  }
  // With a gradient, on another device, not contiguous: the same numbers, the same text.
  const Tensor y = randn({4, 6}).requires_grad_();
  EXPECT_EQ(show_text(y, ShowOptions().columns(60)),
            show_text(y.detach().t().clone().t(), ShowOptions().columns(60)));
  EXPECT_EQ(Seen(show_bytes(y.to(Device(kCPU, 1)), ".png")).width,
            Seen(show_bytes(y, ".png")).width);
}

// 8000 x 16 in blocks; what has extreme shapes is still seen.
TEST_F(ShowTest, LargeAndLongMatrices) {
  Tensor x = zeros({8000, 16});
  x.slice(1, 8).fill_(1);
  const Seen p(show_bytes(x, ".png"));
  EXPECT_LT(p.height, 800u);
  const auto [left, top] = p.find(hex(0x440154));
  EXPECT_TRUE(p.is(left, top + 400, hex(0x440154)));
  size_t right = left;
  while (p.is(right, top + 400, hex(0x440154))) ++right;
  EXPECT_GT(right - left, 30u);
  EXPECT_TRUE(p.is(right, top + 400, hex(0xfde725)));
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 5000}, {5000, 1}, {1, 2}, {300, 400}}) {
    const Seen q(show_bytes(randn({rows, columns}), ".png", ShowOptions().title("A title")));
    EXPECT_GE(q.width, 300u);
    EXPECT_LT(q.width, 1000u);
    EXPECT_GE(q.height, 100u);
  }
}

TEST_F(ShowTest, ImagesAndFilters) {
  // Bytes: 0 is black, 255 white; a colour image keeps its channels.
  Tensor bytes = zeros({3, 2, 2}, kByte);
  bytes[0].fill_(255), bytes[2].fill_(51);
  const Seen p(show_bytes(bytes, ".png"));
  EXPECT_GE(p.count(hex(0xff0033)), 480u * 480);
  // Two images of one channel, and the range that is not theirs.
  const Tensor two = stack({zeros({1, 4, 4}), ones({1, 4, 4}) * 7}, 0);
  const Seen q(show_bytes(two, ".png"));
  EXPECT_GE(q.count(hex(0x000000)), 128u * 128);
  // Filters by shape: 2 rows of 5, the numbers at the edges; the first of many.
  const Seen f(show_bytes(randn({2, 5, 3, 3}), ".png"));
  EXPECT_GT(f.width, 5 * 96u);
  EXPECT_LT(f.height, 5 * 96u);
  Seen(show_bytes(randn({70, 65, 1, 1}), ".png"));
  Seen(show_bytes(randn({300, 9, 9}), ".png"));
  Seen(show_bytes(rand({2, 1, 1500, 700}), ".png"));
  expect_part(show_text(rand({300, 1, 1, 1}), ShowOptions().columns(80)), "the first 256 of 300");
  expect_part(show_text(rand({70, 65, 2, 2}), ShowOptions().columns(500)),
              "the first 4096 of 4550");
}

// A straight line is where it should be: from one corner of the area to the other. On a logarithmic
// axis it goes through the middle, too.
TEST_F(ShowTest, CurvesStandWhereTheNumbersAre) {
  std::vector<double> x, line, powers;
  for (int i = 0; i <= 100; ++i)
    x.push_back(i), line.push_back(2.0 * i), powers.push_back(std::pow(10.0, 4 * i / 100.0));
  const std::string blue = hex(0x0072b2);
  const auto ends = [&](const Seen& p) {
    // The area: leftmost to rightmost pixel of the line, and its rows there.
    size_t left = p.width, right = 0, low = 0, high = 0, middle = 0;
    for (size_t cx = 0; cx < p.width; ++cx)
      for (size_t cy = 0; cy < p.height; ++cy)
        if (p.is(cx, cy, blue)) {
          if (cx < left) left = cx, low = cy;
          if (cx >= right) right = cx, high = cy;
        }
    for (size_t cy = 0; cy < p.height; ++cy)
      if (p.is((left + right) / 2, cy, blue)) middle = cy;
    return std::array<double, 3>{static_cast<double>(low), static_cast<double>(high),
                                 static_cast<double>(middle)};
  };
  for (const bool log : {false, true}) {
    Curve curve("", x, log ? powers : line);
    curve.width = 5;  // so that some pixels of each column have the whole colour
    const std::vector<Panel> panels = {{{curve}, "", {}, AxisOptions().log(log)}};
    const auto [low, high, middle] = ends(Seen(plot_bytes(panels, ".png")));
    EXPECT_GT(low - high, 300);
    EXPECT_NEAR(middle, (low + high) / 2, 4) << log;
  }
}

TEST_F(ShowTest, GapsSpikesAndPoints) {
  const std::string blue = hex(0x0072b2);
  std::vector<double> y(100, 1.0);
  for (size_t i = 40; i < 60; ++i) y[i] = i % 2 ? kNaN : kInf;
  const auto columns = [&](const std::vector<double>& values, bool log = false) {
    const Seen p(plot_bytes({{{Curve("", values)}, "", {}, AxisOptions().log(log)}}, ".png"));
    std::vector<size_t> seen;
    for (size_t x = 0; x < p.width; ++x)
      for (size_t cy = 0; cy < p.height; ++cy)
        if (p.is(x, cy, blue)) {
          seen.push_back(x);
          break;
        }
    return seen;
  };
  const auto gap = [&](bool log) {
    const std::vector<size_t> seen = columns(y, log);
    size_t widest = 0;
    for (size_t i = 1; i < seen.size(); ++i) widest = std::max(widest, seen[i] - seen[i - 1]);
    return widest;
  };
  EXPECT_GT(gap(false), 120u);
  for (double& v : y)
    if (!std::isfinite(v)) v = -1;
  EXPECT_LT(gap(false), 3u);
  EXPECT_GT(gap(true), 120u) << "there is no place for -1 on a logarithmic axis";
  // A number between two gaps is a dot.
  EXPECT_GE(columns({kNaN, 1, kNaN}).size(), 2u);
  // Of a million points none is lost that sticks out.
  std::vector<double> many(1000000, 0.0);
  many[333333] = 1, many[777777] = -1;
  const Seen p(plot_bytes({{{Curve("", many)}, "", {}, {}}}, ".png"));
  size_t top = p.height, bottom = 0;
  for (size_t i = 0; i < p.pixels.size() / 3; ++i)
    if (p.pixels.compare(3 * i, 3, blue) == 0)
      top = std::min(top, i / p.width), bottom = std::max(bottom, i / p.width);
  EXPECT_GT(bottom - top, 300u);
  // Nothing at all, one number, the largest ones.
  const std::string empty = plot_bytes({{{Curve("", std::vector<double>{})}, "", {}, {}}}, ".png");
  EXPECT_EQ(Seen(empty).count(blue), 0u);
  for (const std::vector<double>& odd : {std::vector<double>{5}, {-1.7e308, 1.7e308}, {5e-324, 0}})
    EXPECT_GT(Seen(plot_bytes({{{Curve("", odd)}, "", {}, {}}}, ".png")).count(blue), 3u);
}

TEST_F(ShowTest, TextHasRoomEverywhere) {
  std::vector<Curve> curves;
  for (int k = 0; k < 12; ++k) {
    std::vector<double> y;
    for (int i = 0; i < 30; ++i) y.push_back(std::sin(0.3 * i + k) * std::pow(10.0, k - 4));
    curves.emplace_back("a name of some length, number " + std::to_string(k), y);
  }
  curves[0].labels.assign(30, "12.34%");
  curves[0].style = Curve::Style::kLineAndPoints;
  for (const auto& [width, height] :
       std::vector<std::pair<int64_t, int64_t>>{{200, 200}, {320, 240}, {900, 520}, {2000, 300}}) {
    for (const bool dark : {false, true}) {
      const auto options = PlotOptions()
                               .title("A title that is far too long for a small picture")
                               .subtitle(std::string(300, 'm') + " and words, and words, and words")
                               .width(width)
                               .height(height)
                               .dark(dark);
      const AxisOptions x = AxisOptions(std::string(100, 'x')).unit("ms");
      Seen(plot_bytes({{curves, "Left", x, x}, {curves, "Right", x, {}}}, ".png", options));
    }
  }
}

// ---- files --------------------------------------------------------------------------------------

void expect_settled(const std::string& svg) {
  expect_well_formed(svg);
  std::set<std::string> ids;
  for (size_t at = svg.find(" id=\""); at != std::string::npos; at = svg.find(" id=\"", at + 1))
    EXPECT_TRUE(ids.insert(svg.substr(at + 5, svg.find('"', at + 5) - at - 5)).second);
  EXPECT_GT(ids.size(), 3u);
  for (const std::string reference : {"href=\"#", "url(#"})
    for (size_t at = svg.find(reference); at != std::string::npos;
         at = svg.find(reference, at + 1)) {
      const size_t from = at + reference.size();
      const std::string name = svg.substr(from, svg.find_first_of("\")", from) - from);
      EXPECT_EQ(ids.count(name), 1u) << name;
    }
}

TEST_F(ShowTest, TheSameBytesAgain) {
  manual_seed(5);
  const Tensor x = randn({20, 30});
  const std::vector<Curve> curves = {{"a", x[0]}, {"b", x[1]}};
  for (const std::string ending : {".png", ".svg"}) {
    show(x, path("a" + ending));
    plot(curves, path("c" + ending), PlotOptions().dark(true));
    show(x, path("h" + ending), ShowOptions().kind(Kind::kHistogram));
    const std::string first = read_file(path("a" + ending)),
                      plotted = read_file(path("c" + ending));
    show(randn({3, 1, 5, 5}), path("b" + ending));
    show(x, path("a" + ending));
    plot(curves, path("c" + ending), PlotOptions().dark(true));
    EXPECT_EQ(read_file(path("a" + ending)), first);
    EXPECT_EQ(read_file(path("c" + ending)), plotted);
    EXPECT_EQ(show_bytes(x, ending), first);
    if (ending == ".svg")
      for (const char* name : {"a.svg", "b.svg", "c.svg", "h.svg"})
        expect_settled(read_file(path(name)));
  }
  EXPECT_NE(read_file(path("a.svg")).find("<image style=\"image-rendering:pixelated\""),
            std::string::npos);
}

TEST_F(ShowTest, TextCannotBreakAnSvg) {
  const std::string odd =
      "</svg><script>&\"'\n\t\x01 \xff\xc3 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x9c\x93";
  const std::vector<Panel> panels = {
      {{Curve(odd, std::vector<double>{1, 2})}, odd, AxisOptions(odd), AxisOptions().unit(odd)}};
  const auto options = PlotOptions().title(odd).subtitle(odd);
  const std::string svg = plot_bytes(panels, ".svg", options);
  expect_settled(svg);
  EXPECT_EQ(svg.find("script"), std::string::npos) << "letters are outlines";
  Seen(plot_bytes(panels, ".png", options));
}

TEST_F(ShowTest, AFileIsWholeOrNotThere) {
  const Tensor x = ones({2, 2});
  show(x, path("x.png"));
  const std::string before = read_file(path("x.png"));
  EXPECT_ERROR_TEXT(show(full({}, 1.0), path("x.png")), "expected 1 to 64 dimensions");
  EXPECT_EQ(read_file(path("x.png")), before);
  EXPECT_ERROR_TEXT(show(x, path("none/x.png")), "expected a writable place");
  EXPECT_ERROR_TEXT(plot(x[0], path("none/x.svg")), "No such file or directory");
  EXPECT_ERROR_TEXT(show(x, folder_), "expected a name that ends in .png or .svg");
  std::filesystem::create_directory(path("folder.png"));
  EXPECT_ERROR_TEXT(show(x, path("folder.png")), "folder.png");
  const std::filesystem::directory_iterator begin(folder_);
  const auto files = std::distance(begin, std::filesystem::directory_iterator());
  EXPECT_EQ(files, 2) << "nothing temporary is left";
}

TEST_F(ShowTest, Errors) {
  const Tensor x = ones({2, 2});
  const std::string file = path("x.png");
  EXPECT_ERROR_TEXT(show(Tensor(), file), "[show] x: got an undefined tensor, expected numbers");
  EXPECT_ERROR_TEXT(show(zeros({0, 3}), file),
                    "x: got float32[0, 3] on cpu, expected at least one element");
  EXPECT_ERROR_TEXT(show(zeros({1, 1, 1, 1, 2}), file), "expected 1 to 4 dimensions");
  EXPECT_ERROR_TEXT(show(x, path("x.jpg")), "expected a name that ends in .png or .svg");
  EXPECT_ERROR_TEXT(show(x, ".png"), "expected a name that ends in .png or .svg");
  const auto kind = [](Kind k) { return ShowOptions().kind(k); };
  EXPECT_ERROR_TEXT(show(x, file, kind(Kind::kCurve)), "expected 1 dimension for a curve");
  EXPECT_ERROR_TEXT(show(x[0], file, kind(Kind::kMatrix)), "expected 2 dimensions for a matrix");
  EXPECT_ERROR_TEXT(show(ones({2, 2, 2}), file, kind(Kind::kImages)),
                    "expected (N, 1 or 3, height, width)");
  EXPECT_ERROR_TEXT(show(x, file, kind(Kind::kFilters)), "expected (N, height, width)");
  EXPECT_ERROR_TEXT(show(x, file, ShowOptions().range(std::pair(1.0, 1.0))), "range: got 1 to 1");
  EXPECT_ERROR_TEXT(show(x, file, ShowOptions().range(std::pair(0.0, kNaN))), "expected finite");
  EXPECT_ERROR_TEXT(show(x, file, ShowOptions().in_row(-1)), "in_row: got -1");
  EXPECT_ERROR_TEXT(show(x, file, ShowOptions().bins(1001)), "bins: got 1001");
  EXPECT_ERROR_TEXT(show_text(x, ShowOptions().columns(5)), "columns: got 5, expected 0 or 20");
  EXPECT_ERROR_TEXT(show_text(x, ShowOptions().lines(0)), "lines: got 0");
  EXPECT_ERROR_TEXT(plot(std::vector<Curve>{}, file), "curves: got none");
  EXPECT_ERROR_TEXT(plot(std::vector<Panel>{}, file), "panels: got none");
  EXPECT_ERROR_TEXT(plot(x, file), "y: got float32[2, 2] on cpu, expected 1 dimension");
  EXPECT_ERROR_TEXT(plot(Tensor(), file), "[plot] y: got an undefined tensor");
  EXPECT_ERROR_TEXT(plot({Curve("c", {1, 2}, {1, 2, 3})}, file),
                    "curve \"c\": got 2 x and 3 y, expected as many");
  Curve labels("c", {1, 2}, {1, 2});
  labels.labels = {"a"};
  EXPECT_ERROR_TEXT(plot({labels}, file), "got 1 labels for 2 points");
  const std::vector<Curve> one = {Curve("c", std::vector<double>{1, 2})};
  EXPECT_ERROR_TEXT(plot(one, file, PlotOptions().width(100)), "got 100 and 520, expected 200");
  EXPECT_ERROR_TEXT(plot(one, file, PlotOptions().height(1 << 20)), "expected 200 to 8192");
  EXPECT_ERROR_TEXT(plot(one, file, PlotOptions().y(AxisOptions().low(3).high(3))),
                    "y axis: got 3 to 3, expected low < high");
  EXPECT_ERROR_TEXT(plot(one, file, PlotOptions().x(AxisOptions().log(true).low(0))),
                    "x axis: got 0 as an end, expected a finite number above 0");
  EXPECT_FALSE(std::filesystem::exists(file));
}

// Where no font is installed Cairo's own strokes are the letters.
TEST(ShowDeathTest, LettersWithoutAFont) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // fontconfig has not begun there
  const auto draw = [] {
    const std::string none =
        std::string(std::getenv("TEST_TMPDIR") ? std::getenv("TEST_TMPDIR") : "/tmp") +
        "/no_fonts_" + std::to_string(::getpid()) + ".conf";
    std::ofstream(none)
        << "<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM \"fonts.dtd\"><fontconfig/>";
    ::setenv("FONTCONFIG_FILE", none.c_str(), 1);
    const Seen p(plot_bytes({{{Curve("", std::vector<double>{1, 2})}, "", {}, {}}}, ".png",
                            PlotOptions().title("Title")));
    ::unlink(none.c_str());
    size_t ink = 0;
    for (size_t y = 20; y < 50; ++y)
      for (size_t x = 20; x < 100; ++x) ink += !p.is(x, y, p.at(0, 0));
    std::exit(ink > 100 && !::testing::Test::HasFailure() ? 0 : 1);
  };
  EXPECT_EXIT(draw(), ::testing::ExitedWithCode(0), "");
}

// ---- text ---------------------------------------------------------------------------------------

TEST(Text, MatricesAreShades) {
  EXPECT_EQ(show_text(tensor({{0.0f, 1.0f, 2.0f}, {3.0f, 4.0f, std::nanf("")}}),
                      ShowOptions().title("A title").columns(60)),
            "A title\n"
            "float32[2, 3] on cpu: min 0, mean 2, max 4, 1 NaN\n"
            "  ░░▒▒\n"
            "▓▓██××\n"
            "0  ░▒▓█ 4  × NaN\n");
  // Of 100 columns 20 remain: each a mean.
  EXPECT_EQ(show_text(arange(100, kFloat).view({1, 100}), ShowOptions().columns(20)),
            "float32[1, 100] on\n"
            "cpu: min 0,\n"
            "mean 49.5, max 99;\n"
            "means of 1 x 5\n"
            "elements\n"
            "    ░░░░▒▒▒▒▓▓▓▓████\n"
            "2  ░▒▓█ 97\n");
  EXPECT_EQ(
      show_text(tensor({{0, 1}, {1, 0}, {1, 1}}), ShowOptions().columns(60).colors(true)),
      "int64[3, 2] on cpu: min 0, mean 0.6667, max 1\n"
      "\x1b[38;2;68;1;84m\x1b[48;2;253;231;37m▀\x1b[38;2;253;231;37m\x1b[48;2;68;1;84m▀\x1b[0m\n"
      "\x1b[0m\x1b[38;2;253;231;37m▀\x1b[0m\x1b[38;2;253;231;37m▀\x1b[0m\n"
      "0 \x1b[38;2;68;1;84m█\x1b[38;2;59;82;139m█\x1b[38;2;33;144;141m█\x1b[38;2;94;200;98m█"
      "\x1b[38;2;253;231;37m█\x1b[0m 1\n");
}

TEST(Text, ImagesStandSideBySide) {
  const Tensor x = tensor({0, 255, 255, 0}).to(kByte).view({1, 1, 2, 2});
  EXPECT_EQ(show_text(cat({x, 255 - x, x}, 0), ShowOptions().columns(20).title("T")),
            "T\n"
            "uint8[3, 1, 2, 2] on\n"
            "cpu: min 0,\n"
            "mean 127.5, max 255\n"
            "  ██ ██     ██\n"
            "██     ██ ██\n"
            "0  ░▒▓█ 255\n");
  const Tensor red = zeros({3, 1, 2});
  red[0].fill_(1);
  EXPECT_EQ(show_text(red, ShowOptions().columns(80)),
            "float32[3, 1, 2] on cpu: min 0, mean 0.3333, max 1\n░░░░\n");
}

TEST(Text, HistogramsAreBars) {
  EXPECT_EQ(
      show_text(tensor({1, 1, 1, 1, 2, 4, 4}), ShowOptions().kind(Kind::kHistogram).columns(24)),
      "int64[7] on cpu: min 1,\n"
      "mean 2, max 4\n"
      "1 4 ███████████████████\n"
      "2 1 ████▊\n"
      "3 0\n"
      "4 2 █████████▌\n");
}

TEST(Text, CurvesAreDots) {
  const std::vector<Curve> curves = {{"up", std::vector<double>{0, 1, 2, 3, 4}},
                                     {"gap", std::vector<double>{4, kNaN, 4, 4, 4}}};
  const auto options = PlotOptions()
                           .title("Two")
                           .x(AxisOptions("step").unit("s"))
                           .y(AxisOptions("loss"))
                           .columns(30)
                           .lines(4);
  EXPECT_EQ(plot_text(curves, options),
            "Two\n"
            "up, gap\n"
            "loss\n"
            "5 ┤⡀            ⢀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀\n"
            "  │                 ⣀⣀⠤⠤⠔⠒⠊⠉⠁\n"
            "  │        ⣀⣀⡠⠤⠔⠒⠒⠉⠉\n"
            "0 ┤⣀⡠⠤⠔⠒⠊⠉⠉\n"
            "  └┬─────┬──────┬──────┬─────┬\n"
            "   0     1      2      3     4\n"
            "   step (s)\n");
  // Lines end where the terminal ends, for any width.
  for (const int64_t columns : {20, 37, 80, 200}) {
    std::istringstream lines(plot_text(curves, PlotOptions(options).columns(columns)));
    for (std::string line; std::getline(lines, line);) {
      int64_t wide = 0;
      for (const char c : line) wide += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
      EXPECT_LE(wide, columns) << line;
    }
  }
}

TEST(Text, AsWideAsTheTerminalSays) {
  ::setenv("COLUMNS", "40", 1);
  const std::string narrow = show_text(arange(1000, kFloat).view({1, 1000}));
  ::setenv("COLUMNS", "nonsense", 1);
  const std::string usual = show_text(arange(1000, kFloat).view({1, 1000}));
  ::unsetenv("COLUMNS");
  if (::isatty(STDOUT_FILENO)) GTEST_SKIP() << "a terminal says itself how wide it is";
  EXPECT_NE(narrow.find("means of 1 x 25"), std::string::npos) << narrow;
  EXPECT_NE(usual.find("means of 1 x 13"), std::string::npos) << usual;
}

}  // namespace
}  // namespace ramet::see
