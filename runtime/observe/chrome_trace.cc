#include "runtime/observe/chrome_trace.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/base/atomic_file.h"
#include "runtime/observe/observer.h"

namespace ramet {
namespace {

struct Event {
  std::string name;
  bool kernel;
  int device;
  uint64_t start, end;
};

void append_quoted(std::string& out, const std::string& text) {
  static const char digits[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (u < 0x20 || u >= 0x7f) {  // bytes above ASCII: one escape a byte is valid JSON
                                         // whatever their encoding
      out += "\\u00";
      (out += digits[u >> 4]) += digits[u & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

// Nanoseconds as microseconds with three decimals, whatever the locale.
void append_microseconds(std::string& out, uint64_t ns) {
  const std::string fraction = std::to_string(ns % 1000);
  out += std::to_string(ns / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction;
}

// The lane of every event. Events of one lane must nest. So an event takes the first lane where the
// innermost open event contains it, or has ended.
std::vector<int> lanes_of(const std::vector<Event>& events) {
  std::vector<int> lanes(events.size());
  std::map<int, std::vector<std::vector<uint64_t>>> open;  // device -> lane -> ends of open events
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    auto& of_device = open[e.device];
    size_t lane = 0;
    for (;; ++lane) {
      if (lane == of_device.size()) of_device.emplace_back();
      auto& ends = of_device[lane];
      while (!ends.empty() && ends.back() <= e.start) ends.pop_back();
      if (ends.empty() || e.end <= ends.back()) break;
    }
    of_device[lane].push_back(e.end);
    lanes[i] = static_cast<int>(lane);
  }
  return lanes;
}

constexpr int kLanesPerDevice = 1000;

}  // namespace

struct ChromeTrace::Events {
  mutable std::mutex mutex;
  std::vector<Event> list;
  size_t most, dropped = 0;
  uint64_t began = 0, observer = 0;
  bool on = false;

  void add(std::string name, bool kernel, Device device, uint64_t start, uint64_t end) {
    std::lock_guard lock(mutex);
    if (!on || start < began) return;
    if (list.size() >= most) {
      ++dropped;
      return;
    }
    list.push_back({std::move(name), kernel, device.ordinal(), start, end});
  }
};

ChromeTrace::ChromeTrace(size_t max_events) : events_(std::make_shared<Events>()) {
  events_->most = max_events;
}

ChromeTrace::~ChromeTrace() { stop(); }

void ChromeTrace::start() {
  stop();
  Observer observer;
  observer.scope_end = [events = events_](const Scope& s) {
    events->add(s.name, false, s.device, s.start, s.end);
  };
  observer.kernel_end = [events = events_](const KernelCall& c) {
    events->add(c.name, true, c.stream.device, c.start, monotonic_ns());
  };
  const uint64_t number = add_observer(std::move(observer));
  std::lock_guard lock(events_->mutex);
  events_->observer = number;
  events_->list.clear();
  events_->dropped = 0;
  events_->began = monotonic_ns();
  events_->on = true;
}

void ChromeTrace::stop() {
  uint64_t number = 0;
  {
    std::lock_guard lock(events_->mutex);
    events_->on = false;
    std::swap(number, events_->observer);
  }
  if (number) remove_observer(number);
}

size_t ChromeTrace::size() const {
  std::lock_guard lock(events_->mutex);
  return events_->list.size();
}

std::string ChromeTrace::json() const {
  std::vector<Event> events;
  uint64_t began;
  size_t dropped;
  {
    std::lock_guard lock(events_->mutex);
    events = events_->list;
    began = events_->began;
    dropped = events_->dropped;
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  const std::vector<int> lanes = lanes_of(events);
  std::map<int, std::string> names;
  for (size_t i = 0; i < events.size(); ++i) {
    std::string name = Device::from_ordinal(events[i].device).str();
    if (name == "cpu") name = "cpu:0";
    if (lanes[i] > 0) name += " (" + std::to_string(lanes[i] + 1) + ")";
    names[events[i].device * kLanesPerDevice + lanes[i]] = name;
  }
  std::string out =
      "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_events\":" + std::to_string(dropped) +
      "},\"traceEvents\":[\n";
  out +=
      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"ramet\"}}";
  for (const auto& [tid, name] : names) {
    const std::string head = ",\"pid\":1,\"tid\":" + std::to_string(tid) + ",\"args\":{";
    out += ",\n{\"ph\":\"M\",\"name\":\"thread_name\"" + head + "\"name\":";
    append_quoted(out, name);
    out += "}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\"" + head +
           "\"sort_index\":" + std::to_string(tid) + "}}";
  }
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    out += ",\n{\"ph\":\"X\",\"name\":";
    append_quoted(out, e.name);
    out += e.kernel ? ",\"cat\":\"kernel\"" : ",\"cat\":\"scope\"";
    out +=
        ",\"pid\":1,\"tid\":" + std::to_string(e.device * kLanesPerDevice + lanes[i]) + ",\"ts\":";
    append_microseconds(out, e.start - began);
    out += ",\"dur\":";
    append_microseconds(out, e.end - e.start);
    out += '}';
  }
  return out + "\n]}\n";
}

void ChromeTrace::write(const std::string& path) const { write_file_atomically(path, json()); }

}  // namespace ramet
