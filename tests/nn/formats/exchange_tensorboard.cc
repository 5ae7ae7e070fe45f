// TensorBoard's event files, and their pictures: one program with exchange_test.cc.
#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <set>

#include "autograd/ops.h"
#include "nn/formats/tensorboard/png_internal.h"
#include "nn/formats/tensorboard/tensorboard.h"
#include "nn/layers/basic/linear.h"
#include "tests/error_text.h"
#include "tests/nn/formats/exchange_support.h"
#include "tests/nn/formats/proto_reader.h"

namespace ramet {
namespace {

using namespace testing;  // ramet::testing

// CRC-32C by its definition, a bit at a time.
uint32_t crc32c(std::string_view bytes) {
  uint32_t c = ~0u;
  for (unsigned char b : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool odd = ((c >> 0) ^ (b >> bit)) & 1;
      c = c >> 1 ^ (odd ? 0x82f63b78u : 0u);
    }
  return ~c;
}

// The events of a file up to where it is cut off; check sums are verified.
std::vector<std::string> events(const std::string& file) {
  std::vector<std::string> all;
  const auto number = [&](size_t at, auto v) {
    std::memcpy(&v, file.data() + at, sizeof v);
    return v;
  };
  const auto good = [&](size_t at, size_t n) {
    const uint32_t crc = crc32c(std::string_view(file).substr(at, n));
    return number(at + n, uint32_t{}) == (crc >> 15 | crc << 17) + 0xa282ead8u;
  };
  for (size_t at = 0; at + 12 <= file.size();) {
    const auto n = static_cast<size_t>(number(at, uint64_t{}));
    if (n > file.size() || at + 16 + n > file.size()) break;
    EXPECT_TRUE(good(at, 8) && good(at + 12, n)) << "record at " << at;
    all.push_back(file.substr(at + 12, n));
    at += 16 + n;
  }
  return all;
}
std::string_view value_of(std::string_view event) { return text_of(text_of(event, 5), 1); }

TEST(TensorBoard, WritesWhatItReads) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);  // published
  const fs::path runs = folder("events") / "deep" / "run";
  fs::path file;
  Tensor image = zeros({3, 2, 4});
  image[0][1][3] = 1.5;
  image[1][0][0] = 0.5;
  image[2][1][1] = NAN;
  {
    EventWriter writer(runs.string());
    file = writer.path();
    EXPECT_EQ(file.parent_path(), runs);
    EXPECT_EQ(file.filename().string().rfind("events.out.tfevents.", 0), 0u);
    writer.add_scalar("loss", 0.25, 7, 1234.5);
    writer.add_scalar("loss", INFINITY, INT64_MAX);
    writer.add_histogram("w", tensor({-1.f, 0.f, 0.f, 2.f, 2.1f, NAN, INFINITY}), 3);
    writer.add_histogram("none", empty({0}), 3);
    writer.add_image("picture", image, 5);
    nn::Linear fc(2, 1);
    const Tensor loss = fc(ones({1, 2})).tanh().sum();
    std::vector<std::pair<std::string, Tensor>> names;
    for (const auto& item : fc->named_parameters())
      names.emplace_back("fc." + item.key(), item.value());
    writer.add_graph(autograd::collect_graph({loss}, names));
  }
  const std::vector<std::string> all = events(read(file));
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(text_of(all[0], 3), "brain.Event:2");
  EXPECT_GT(real64(fields_of(all[0], 1).at(0)), 1.7e9);
  EXPECT_EQ(real64(fields_of(all[1], 1).at(0)), 1234.5);
  EXPECT_EQ(integer_of(all[1], 2), 7);
  EXPECT_EQ(integer_of(all[2], 2), INT64_MAX);
  EXPECT_EQ(text_of(value_of(all[1]), 1), "loss");
  EXPECT_EQ(real32(fields_of(value_of(all[1]), 2).at(0)), 0.25f);
  EXPECT_EQ(real32(fields_of(value_of(all[2]), 2).at(0)), INFINITY);
  const std::string_view histogram = text_of(value_of(all[3]), 5);
  const double sums[] = {-1, 2.1, 5, 3.1, 1 + 4 + 2.1 * 2.1};
  const Tensor finite = tensor({-1.f, 0.f, 0.f, 2.f, 2.1f});  // float32, as given
  for (uint32_t k = 1; k <= 5; ++k)
    EXPECT_NEAR(real64(fields_of(histogram, k).at(0)), sums[k - 1], 1e-6);
  const std::string_view ends = text_of(histogram, 6), counts = text_of(histogram, 7);
  ASSERT_EQ(ends.size(), counts.size());
  double below = -INFINITY, total = 0;
  for (size_t i = 0; i < ends.size(); i += 8) {
    double end, count;
    std::memcpy(&end, ends.data() + i, 8);
    std::memcpy(&count, counts.data() + i, 8);
    EXPECT_GT(end, below);
    EXPECT_EQ(count, finite.ge(below).logical_and(finite.lt(end)).sum().item<double>()) << end;
    total += count;
    below = end;
  }
  EXPECT_EQ(total, 5);
  EXPECT_EQ(real64(fields_of(text_of(value_of(all[4]), 5), 3).at(0)), 0);
  const std::string_view picture = text_of(value_of(all[5]), 4), png = text_of(picture, 4);
  EXPECT_EQ(integer_of(picture, 1), 2);
  EXPECT_EQ(integer_of(picture, 2), 4);
  EXPECT_EQ(integer_of(picture, 3), 3);
  // The chunk of pixels begins after 8 bytes of signature and 25 of header.
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png.substr(37, 4), "IDAT");
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(png[i]); };
  const size_t n = static_cast<size_t>(byte(35)) << 8 | byte(36);
  std::string pixels(2 * (1 + 4 * 3), '?');
  uLongf size = pixels.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(pixels.data()), &size,
                       reinterpret_cast<const Bytef*>(png.data()) + 41, n),
            Z_OK);
  ASSERT_EQ(size, pixels.size());
  std::string wanted(pixels.size(), '\0');
  wanted[1 + 1] = static_cast<char>(128);           // green of (0, 0): 127.5
  wanted[13 + 1 + 3 * 3] = static_cast<char>(255);  // red of (1, 3)
  EXPECT_EQ(pixels, wanted);
  std::map<std::string, std::set<std::string>> graph;
  for (const ProtoField& node : fields_of(text_of(all[6], 4), 1)) {
    auto& inputs = graph[std::string(text_of(node.text, 1))];
    for (const ProtoField& i : fields_of(node.text, 3)) inputs.insert(std::string(i.text));
  }
  EXPECT_EQ(graph.size(), 5u);
  for (const auto& [name, inputs] : graph)
    for (const std::string& i : inputs) EXPECT_TRUE(graph.count(i)) << name << ": " << i;
  EXPECT_EQ(graph.count("fc/weight") + graph.count("fc/bias"), 2u);
  if (!python("check_tensorboard.py " + runs.string()))
    std::cout << "(python3 has no tensorboard)\n";
  fs::remove_all(runs.parent_path().parent_path());
}

TEST(TensorBoard, WhatWasFlushedIsThereWhenAProgramIsKilled) {
  const fs::path runs = folder("killed");
  const pid_t child = ::fork();
  if (child == 0) {
    EventWriter writer(runs.string());
    for (int i = 0; i < 100; ++i) writer.add_scalar("a", i, i);
    writer.flush(/*to_disk=*/true);
    writer.add_scalar("a", 100, 100);
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  std::string path;
  for (const auto& entry : fs::directory_iterator(runs)) path = entry.path();
  const std::string whole = read(path);
  const std::vector<std::string> all = events(whole);
  ASSERT_EQ(all.size(), 101u);
  EXPECT_EQ(integer_of(all[100], 2), 99);
  // However much of the file arrived, its complete records can be read.
  size_t complete = 0, end = 16 + all[0].size();
  for (size_t n = 0; n < whole.size(); n += 7) {
    while (complete < all.size() && end <= n)
      if (++complete < all.size()) end += 16 + all[complete].size();
    EXPECT_EQ(events(whole.substr(0, n)).size(), complete) << n;
  }
  {  // a run that goes on writes another file
    EventWriter first(runs.string(), 0), second(runs.string(), 0);
    EXPECT_NE(first.path(), second.path());
    EXPECT_NE(first.path(), path);
    first.add_scalar("a", 1, 1);
    EXPECT_EQ(events(read(first.path())).size(), 2u);  // at once
    EventWriter moved(std::move(first));
    moved.add_scalar("a", 2, 2);
    EXPECT_EQ(events(read(moved.path())).size(), 3u);
  }
  EXPECT_EQ(read(path), whole);
  fs::remove_all(runs);
}

TEST(TensorBoard, Refuses) {
  const fs::path runs = folder("refused");
  std::ofstream(runs / "file") << "x";
  EXPECT_ERROR_TEXT(EventWriter((runs / "file").string()), "cannot make the folder");
  EventWriter writer(runs.string());
  EXPECT_ERROR_TEXT(writer.add_histogram("a", Tensor(), 0), "undefined");
  EXPECT_ERROR_TEXT(writer.add_image("a", Tensor(), 0), "undefined");
  EXPECT_ERROR_TEXT(writer.add_image("a", zeros({2, 3, 3}), 0), "2 channels");
  EXPECT_ERROR_TEXT(writer.add_image("a", zeros({3, 0, 3}), 0), "0 x 3");
  EXPECT_ERROR_TEXT(writer.add_image("a", zeros({3}), 0), "expected (channels");
  EXPECT_ERROR_TEXT(writer.add_image("a", zeros({3, 3}, kLong), 0), "expected uint8");
  writer.add_image("grey", full({2, 2}, 7, kByte), 0);
  writer.flush();
  EXPECT_EQ(events(read(writer.path())).size(), 2u);  // of the others nothing
  fs::remove_all(runs);
}

// What an add_...() has refused is not in the file; what it has accepted is there once, and whole.
TEST(TensorBoard, WhatCannotBeWrittenIsNotKept) {
  const fs::path runs = folder("full");
  EventWriter writer(runs.string(), 0);
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limits{};
  ::getrlimit(RLIMIT_FSIZE, &limits);
  // The disk is full except for so many bytes.
  const auto with_room = [&](rlim_t more, const auto& f) {
    rlimit small = limits;
    small.rlim_cur = fs::file_size(writer.path()) + more;
    ::setrlimit(RLIMIT_FSIZE, &small);
    std::string error;
    try {
      f();
    } catch (const Error& e) { error = e.what(); }
    ::setrlimit(RLIMIT_FSIZE, &limits);
    return error;
  };
  const auto add = [&](int64_t step) { return [&, step] { writer.add_scalar("a", 1, step); }; };
  expect_part(with_room(0, add(1)), "cannot write");
  EXPECT_EQ(with_room(1000, add(2)), "");
  EXPECT_EQ(with_room(5, add(3)), "");  // its beginning is there
  expect_part(with_room(0, add(4)), "cannot write");
  expect_part(with_room(5, [&] { writer.flush(); }), "cannot write");
  EXPECT_EQ(with_room(1000, add(5)), "");
  std::vector<int64_t> steps;
  for (const std::string& event : events(read(writer.path())))
    for (const ProtoField& step : fields_of(event, 2))
      steps.push_back(static_cast<int64_t>(step.integer));
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 2, 3, 5}));
  ::signal(SIGXFSZ, before);
  fs::remove_all(runs);
}

// Longer content than one chunk may have.
TEST(Png, ContentIsCutIntoChunks) {
  std::string pixels;
  for (int i = 0; i < 40 * 30 * 3; ++i) pixels.push_back(static_cast<char>(i * i % 251));
  const auto* const data = reinterpret_cast<const uint8_t*>(pixels.data());
  const auto content = [](const std::string& png, size_t* most) {
    std::string all;
    *most = 0;
    for (size_t at = 8; at + 12 <= png.size();) {
      size_t n = 0;
      for (size_t i = 0; i < 4; ++i) n = n << 8 | static_cast<unsigned char>(png[at + i]);
      if (png.compare(at + 4, 4, "IDAT") == 0) {
        all += png.substr(at + 8, n);
        *most = std::max(*most, n);
      }
      at += 12 + n;
      if (at == png.size()) { EXPECT_EQ(png.substr(at - 8, 4), "IEND"); }
    }
    return all;
  };
  size_t whole = 0, cut = 0;
  const std::string one = content(formats::png(data, 40, 30, 3), &whole);
  EXPECT_GT(whole, 200u);
  EXPECT_EQ(one.size(), whole);
  EXPECT_EQ(content(formats::png(data, 40, 30, 3, 100), &cut), one);
  EXPECT_EQ(cut, 100u);
}

}  // namespace
}  // namespace ramet
