// Records what each CUDA thread of one block does: every access to memory, barrier and warp
// primitive. Each record has its place in the program, and the value that was read or written.
// step_kernel.py shows the file. Programs that link this also link the checker
// (tools/emulated_gpu/checker/checker.h), which reports the accesses.
//
// Variables of the environment:
// - RAMET_STEP_TRACE=FILE turns the recording on.
// - RAMET_STEP_KERNEL=part of the kernel's name (default: any kernel).
// - RAMET_STEP_LAUNCH=which of these launches (0).
// - RAMET_STEP_BLOCK=which of its blocks (0).
//
// The file is lines of JSON, an object each: "kernel", "module", "argument", "place", "event",
// "launch". It is written when the block has ended.
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tools/emulated_gpu/checker/checker.h"
#include "tools/emulated_gpu/executor/report.h"

namespace ramet::see {
namespace {

using namespace ramet::emulated;

constexpr size_t kMostEvents = 1000000;
constexpr int kMostFrames = 24;

enum class Kind : uint8_t { Read, Write, Atomic, Barrier, Passed, Warp, End, Fault };
constexpr const char* kNames[] = {"read",   "write", "atomic", "barrier",
                                  "passed", "warp",  "end",    "fault"};

struct Event {
  Kind kind;
  uint16_t thread;
  uint32_t bytes;  // of an access; the mask of a warp primitive
  int place;       // into `places`
  uintptr_t address;
  std::array<unsigned char, 16> value;  // its first bytes
};

struct Trace {
  std::string file, wanted;
  uint64_t launch = 0, block = 0;  // which one

  uint64_t seen = 0;  // launches of a kernel that fits
  uint64_t last_launch = ~uint64_t{0};
  std::vector<std::string> launches;
  bool on = false, done = false, cut = false;
  Grid grid;
  std::vector<Event> events;
  std::vector<std::string> faults;
  std::map<std::vector<void*>, int> known;
  std::vector<std::vector<void*>> places;

  // The calls that lead here, innermost first, without the emulation's own calls.
  int place(const void* code) {
    void* frames[kMostFrames];
    const int n = backtrace(frames, kMostFrames);
    std::vector<void*> calls;
    int first = 0;
    if (code) {
      while (first < n && frames[first] != code) ++first;
      if (first == n) {
        calls.push_back(const_cast<void*>(code));
        first = n;
      }
    }
    for (int i = first; i < n; ++i) calls.push_back(frames[i]);
    const auto [it, fresh] = known.try_emplace(std::move(calls), static_cast<int>(places.size()));
    if (fresh) places.push_back(it->first);
    return it->second;
  }
  // A write is reported before it is made: its value is in memory when the next event happens.
  void settle() {
    if (events.empty()) return;
    Event& e = events.back();
    if (e.kind == Kind::Write || e.kind == Kind::Atomic)
      std::memcpy(e.value.data(), reinterpret_cast<const void*>(e.address),
                  std::min<size_t>(e.bytes, e.value.size()));
  }
  bool add(Kind kind, uint32_t bytes, uintptr_t address, const void* code) {
    if (!on) return false;
    settle();
    if (events.size() >= kMostEvents) {
      cut = true;
      return false;
    }
    events.push_back(
        {kind, static_cast<uint16_t>(current_position().rank), bytes, place(code), address, {}});
    return true;
  }
  void write();
};

Trace& trace() {
  static auto* t = new Trace;
  return *t;
}

// ---- the file ----------------------------------------------------------------------------------

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char code[8];
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      std::snprintf(code, sizeof code, "\\u%04x", c), out += code;
    else out += c;
  }
  return out + '"';
}
std::string extents(uint3 v) {
  return "[" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + "]";
}
std::string hex(const unsigned char* bytes, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", bytes[i]);
    out += two;
  }
  return out;
}

// "shared", offset: dynamic; "static", offset in the module's thread-local segment; "device",
// address.
std::string where(uintptr_t address) {
  const Region* region = region_of(address);
  if (!region) return "\"other\"," + std::to_string(address);
  switch (region->kind) {
    case RegionKind::DynamicShared:
      return "\"shared\"," + std::to_string(address - check_state().dynamic_shared);
    case RegionKind::StaticShared: return "\"static\"," + std::to_string(address - region->low);
    case RegionKind::Device: break;
  }
  return "\"device\"," + std::to_string(address);
}

void Trace::write() {
  FILE* out = std::fopen(file.c_str(), "w");
  if (!out) {
    std::fprintf(stderr, "[step_kernel] cannot write %s\n", file.c_str());
    return;
  }
  for (size_t i = 0; i < launches.size(); ++i)
    std::fprintf(out, "{\"launch\":%s}\n", launches[i].c_str());
  if (done) {
    std::fprintf(out,
                 "{\"kernel\":%s,\"grid\":%s,\"block\":%s,\"index\":%s,\"shared_bytes\":%zu,"
                 "\"device\":%d,\"cut\":%s}\n",
                 quoted(function_name_of(grid.function)).c_str(), extents(grid.grid).c_str(),
                 extents(grid.block).c_str(), extents(blockIdx).c_str(), grid.shared_bytes,
                 grid.device, cut ? "true" : "false");
    // Words of the arguments that are addresses of device memory. The compiler does not give the
    // kernel's names for them.
    for (size_t at = 0; at + 8 <= grid.argument_bytes; at += 8) {
      uintptr_t word;
      std::memcpy(&word, static_cast<const char*>(grid.arguments) + at, 8);
      const Region* region = region_of(word);
      if (region && region->kind == RegionKind::Device)
        std::fprintf(out, "{\"argument\":%zu,\"address\":%zu}\n", at, static_cast<size_t>(word));
    }
    for (size_t i = 0; i < places.size(); ++i) {
      std::string calls;
      for (void* code : places[i]) {
        Dl_info module{};
        void* map = nullptr;
        if (!dladdr1(code, &module, &map, RTLD_DL_LINKMAP) || !module.dli_fname) continue;
        const std::string path = static_cast<link_map*>(map)->l_name;
        // The address of the call, not of the instruction after it.
        const size_t offset =
            reinterpret_cast<size_t>(code) - static_cast<link_map*>(map)->l_addr - 1;
        calls += (calls.empty() ? "[" : ",[") + quoted(path.empty() ? module.dli_fname : path) +
                 "," + std::to_string(offset) + "]";
      }
      std::fprintf(out, "{\"place\":%zu,\"calls\":[%s]}\n", i, calls.c_str());
    }
    size_t fault = 0;
    for (const Event& e : events) {
      std::fprintf(out, "{\"event\":\"%s\",\"thread\":%u,\"place\":%d",
                   kNames[static_cast<size_t>(e.kind)], e.thread, e.place);
      if (e.kind <= Kind::Atomic)
        std::fprintf(out, ",\"at\":[%s],\"bytes\":%u,\"value\":\"%s\"", where(e.address).c_str(),
                     e.bytes, hex(e.value.data(), std::min<size_t>(e.bytes, 16)).c_str());
      if (e.kind == Kind::Warp) std::fprintf(out, ",\"mask\":%u", e.bytes);
      if (e.kind == Kind::Fault) std::fprintf(out, ",\"text\":%s", quoted(faults[fault++]).c_str());
      std::fprintf(out, "}\n");
    }
  }
  std::fclose(out);
}

// ---- calls of the executor and the checker -----------------------------------------------------

void block_begun(const Grid& grid, uint64_t block) {
  Trace& t = trace();
  if (t.done) return;
  if (grid.launch != t.last_launch) {
    t.last_launch = grid.launch;
    const std::string name = function_name_of(grid.function);
    t.launches.push_back(quoted(name) + ",\"grid\":" + extents(grid.grid) +
                         ",\"block\":" + extents(grid.block));
    if (name.find(t.wanted) == std::string::npos) return;
    ++t.seen;
  } else if (function_name_of(grid.function).find(t.wanted) == std::string::npos) {
    return;
  }
  if (t.seen != t.launch + 1 || block != t.block) return;
  t.grid = grid;
  t.on = true;
}
void block_ended() {
  Trace& t = trace();
  if (!t.on) return;
  t.settle();
  t.on = false;
  t.done = true;
  t.write();
}
void accesses(const void* memory, size_t bytes, bool write, bool atomic, const void* code) {
  Trace& t = trace();
  if (!t.add(write ? (atomic ? Kind::Atomic : Kind::Write) : Kind::Read,
             static_cast<uint32_t>(bytes), reinterpret_cast<uintptr_t>(memory), code))
    return;
  // An address outside all regions is a fault, which follows.
  if (!write && region_of(reinterpret_cast<uintptr_t>(memory)))
    std::memcpy(t.events.back().value.data(), memory,
                std::min<size_t>(bytes, t.events.back().value.size()));
}
void arrives(uint32_t mask, const char*, int) {
  trace().add(mask ? Kind::Warp : Kind::Barrier, mask, 0, nullptr);
}
void barrier_passed() { trace().add(Kind::Passed, 0, 0, nullptr); }
void thread_ended() { trace().add(Kind::End, 0, 0, nullptr); }
void fault(const std::string& text) {
  if (trace().add(Kind::Fault, 0, 0, nullptr)) trace().faults.push_back(text);
}

constexpr StepHooks kHooks = {block_begun,    block_ended,  accesses, arrives,
                              barrier_passed, thread_ended, fault};

uint64_t number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

// A constructor, because the traced program does not call this tool.
[[gnu::constructor]] void begin() {
  const char* file = std::getenv("RAMET_STEP_TRACE");
  if (!file) return;
  void* warm[1];
  backtrace(warm, 1);  // its first call loads a library: not on a fiber's stack
  Trace& t = trace();
  t.file = file;
  if (const char* name = std::getenv("RAMET_STEP_KERNEL")) t.wanted = name;
  t.launch = number_of("RAMET_STEP_LAUNCH");
  t.block = number_of("RAMET_STEP_BLOCK");
  step_hooks = &kHooks;
  // No launch fitted: the list of launches shows which there were.
  std::atexit([] {
    if (!trace().done) trace().write();
  });
}

}  // namespace
}  // namespace ramet::see
