#include "runtime/observe/chrome_trace.h"

#include <cctype>
#include <cstdio>
#include <fstream>
#include <future>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/devices/devices.h"
#include "runtime/observe/observer.h"
#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

// A small reader of JSON that refuses what RFC 8259 refuses: the trace is judged by another program
// than the one that wrote it.
struct Json {
  enum { kNull, kNumber, kText, kList, kMap } kind = kNull;
  double number = 0;
  std::string text;
  std::vector<Json> list;
  std::map<std::string, Json> map;
  const Json& operator[](const std::string& key) const { return map.at(key); }
};
class Reader {
 public:
  explicit Reader(const std::string& s) : s_(s) {}
  Json whole() {
    Json j = value();
    space();
    if (at_ != s_.size()) throw std::runtime_error("text after the end");
    return j;
  }

 private:
  void space() {
    while (at_ < s_.size() && (s_[at_] == ' ' || s_[at_] == '\n')) ++at_;
  }
  char next() {
    if (at_ >= s_.size()) throw std::runtime_error("unexpected end");
    return s_[at_++];
  }
  void expect(char c) {
    if (next() != c)
      throw std::runtime_error(std::string("expected ") + c + " at " + std::to_string(at_));
  }
  Json value() {
    space();
    Json j;
    const char c = s_.at(at_);
    if (c == '{' || c == '[') {
      ++at_;
      j.kind = c == '{' ? Json::kMap : Json::kList;
      space();
      if (s_.at(at_) == (c == '{' ? '}' : ']')) return ++at_, j;
      for (;;) {
        space();
        if (c == '{') {
          const std::string key = string();
          space();
          expect(':');
          if (!j.map.emplace(key, value()).second) throw std::runtime_error("key twice: " + key);
        } else {
          j.list.push_back(value());
        }
        space();
        const char d = next();
        if (d == (c == '{' ? '}' : ']')) return j;
        if (d != ',') throw std::runtime_error("expected a comma");
      }
    }
    if (c == '"') {
      j.kind = Json::kText;
      j.text = string();
      return j;
    }
    j.kind = Json::kNumber;
    size_t end = at_;
    while (end < s_.size() &&
           (std::isdigit(static_cast<unsigned char>(s_[end])) || s_[end] == '.' || s_[end] == '-'))
      ++end;
    if (end == at_ || !std::isdigit(static_cast<unsigned char>(s_[end - 1])))
      throw std::runtime_error("bad number");
    j.number = std::stod(s_.substr(at_, end - at_));
    at_ = end;
    return j;
  }
  std::string string() {
    expect('"');
    std::string out;
    for (char c = next(); c != '"'; c = next()) {
      if (static_cast<unsigned char>(c) < 0x20) throw std::runtime_error("control character");
      if (c == '\\') {
        c = next();
        if (c == 'u') {
          out += static_cast<char>(std::stoi(s_.substr(at_, 4), nullptr, 16));
          at_ += 4;
          continue;
        }
        if (c != '"' && c != '\\') throw std::runtime_error("unknown escape");
      }
      out += c;
    }
    return out;
  }
  const std::string& s_;
  size_t at_ = 0;
};

struct Span {
  std::string name, category;
  double from, to;
  int tid;
};
struct Trace {
  std::vector<Span> spans;
  std::map<int, std::string> lanes;
  double dropped;
};
Trace read(const std::string& text) {
  const Json j = Reader(text).whole();
  Trace t;
  t.dropped = j["otherData"]["dropped_events"].number;
  for (const Json& e : j["traceEvents"].list) {
    const int tid = static_cast<int>(e["tid"].number);
    if (e["ph"].text == "X")
      t.spans.push_back(
          {e["name"].text, e["cat"].text, e["ts"].number, e["ts"].number + e["dur"].number, tid});
    else if (e["name"].text == "thread_name") t.lanes[tid] = e["args"]["name"].text;
  }
  return t;
}
void expect_nested(const Trace& t) {
  for (size_t i = 0; i < t.spans.size(); ++i)
    for (size_t k = i + 1; k < t.spans.size(); ++k) {
      const Span &a = t.spans[i], &b = t.spans[k];
      if (a.tid != b.tid) continue;
      const bool apart = a.to <= b.from + 2e-3 || b.to <= a.from + 2e-3;
      const bool inside =
          (a.from <= b.from && b.to <= a.to + 2e-3) || (b.from <= a.from && a.to <= b.to + 2e-3);
      EXPECT_TRUE(apart || inside) << a.name << " and " << b.name << " cross";
    }
}

void kernel(const char* name, Device device) {
  if (auto* observer = detail::kernel_observer.load()) {
    KernelCall call{name, {device, 0}, nullptr, 0};
    observer(call);
    call.done = true;
    observer(call);
  }
}

TEST(ChromeTrace, OneLaneADevice) {
  ChromeTrace trace;
  trace.start();
  {
    RecordScope forward("forward");
    kernel("add", Device(kCPU, 0));
    for (int d = 1; d < 3; ++d)
      devices::post(Device(kCPU, static_cast<DeviceIndex>(d)), [d] {
        RecordScope replica("replica");
        kernel("mul", Device(kCPU, static_cast<DeviceIndex>(d)));
      });
    devices::synchronize();
  }
  trace.stop();
  { RecordScope after("after"); }
  EXPECT_EQ(trace.size(), 6u);
  const Trace t = read(trace.json());
  ASSERT_EQ(t.spans.size(), 6u);
  EXPECT_EQ(t.dropped, 0);
  std::map<std::string, int> lanes;
  for (auto& [tid, name] : t.lanes) lanes[name] = tid;
  ASSERT_EQ(lanes.size(), 3u);
  std::map<std::string, std::vector<const Span*>> of;
  for (const Span& s : t.spans) of[t.lanes.at(s.tid)].push_back(&s);
  ASSERT_EQ(of["cpu:0"].size(), 2u);
  EXPECT_EQ(of["cpu:0"][0]->name, "forward");
  EXPECT_EQ(of["cpu:0"][0]->category, "scope");
  EXPECT_EQ(of["cpu:0"][1]->name, "add");
  EXPECT_EQ(of["cpu:0"][1]->category, "kernel");
  EXPECT_EQ(of["cpu:1"].size(), 2u);
  ASSERT_EQ(of["cpu:2"].size(), 2u);
  EXPECT_EQ(of["cpu:2"][0]->name, "replica");
  EXPECT_GE(of["cpu:2"][0]->from, of["cpu:0"][0]->from);
  EXPECT_LE(of["cpu:2"][0]->to, of["cpu:0"][0]->to);
  expect_nested(t);
}

TEST(ChromeTrace, ThreadsThatOverlapOnADeviceGetLanes) {
  ChromeTrace trace;
  trace.start();
  {
    std::promise<void> begun, over;
    std::thread other;
    {
      RecordScope a("a");
      other = std::thread([&] {
        RecordScope b("b");  // begins inside a, ends after it
        begun.set_value();
        over.get_future().wait();
      });
      begun.get_future().wait();
    }
    over.set_value();
    other.join();
  }
  trace.stop();
  const Trace t = read(trace.json());
  ASSERT_EQ(t.spans.size(), 2u);
  EXPECT_NE(t.spans[0].tid, t.spans[1].tid);
  expect_nested(t);
  std::vector<std::string> names;
  for (auto& [tid, name] : t.lanes) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"cpu:0", "cpu:0 (2)"}));
}

TEST(ChromeTrace, NamesAreEscaped) {
  const std::string name = "a \"quoted\" \\ back\nline\ttab \x01 \xc3\xa4";
  ChromeTrace trace;
  trace.start();
  { RecordScope scope(name); }
  const Trace t = read(trace.json());
  ASSERT_EQ(t.spans.size(), 1u);
  EXPECT_EQ(t.spans[0].name, name);
}

TEST(ChromeTrace, KeepsTheFirstEvents) {
  ChromeTrace trace(2);
  trace.start();
  for (const char* name : {"a", "b", "c"}) RecordScope scope(name);
  Trace t = read(trace.json());
  ASSERT_EQ(t.spans.size(), 2u);
  EXPECT_EQ(t.spans[0].name, "a");
  EXPECT_EQ(t.dropped, 1);
  trace.start();  // starts again
  { RecordScope scope("d"); }
  t = read(trace.json());
  ASSERT_EQ(t.spans.size(), 1u);
  EXPECT_EQ(t.dropped, 0);
}

TEST(ChromeTrace, IgnoresWhatBeganBefore) {
  ChromeTrace trace;
  {
    ChromeTrace other;  // with an observer the scope exists
    other.start();
    RecordScope before("before");
    trace.start();
    RecordScope inside("inside");
  }
  trace.stop();
  const Trace t = read(trace.json());
  ASSERT_EQ(t.spans.size(), 1u);
  EXPECT_EQ(t.spans[0].name, "inside");
  EXPECT_EQ(read(ChromeTrace().json()).spans.size(), 0u);
}

TEST(ChromeTrace, WritesAFile) {
  ChromeTrace trace;
  trace.start();
  { RecordScope scope("s"); }
  const std::string path = testing::TempDir() + "ramet_trace.json";
  trace.write(path);
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), trace.json());
  std::remove(path.c_str());
  EXPECT_ERROR(trace.write("/no/such/folder/trace.json"), Error, "/no/such/folder/trace.json");
}

}  // namespace
}  // namespace ramet
