// The owners of addresses: device memory, shared memory, pinned memory, module data.
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <new>

#include "tools/emulated_gpu/checker/checker.h"

namespace ramet::emulated {
namespace {

struct Range {
  uintptr_t low, high;
};

/// They come and go with the engine, when no kernel runs: no lock.
std::list<Region>& devices() {
  static auto* regions = new std::list<Region>;
  return *regions;
}

/// The device with the last access: the next access mostly goes there, too.
std::atomic<Region*>& last_device() {
  static constinit std::atomic<Region*> region{nullptr};
  return region;
}

/// Memory that the host pins, also while kernels run.
struct PinnedRanges {
  std::mutex mutex;
  std::map<uintptr_t, size_t> bytes;
};
PinnedRanges& pinned() {
  static auto* ranges = new PinnedRanges;
  return *ranges;
}

/// Shared memory of the blocks that this host thread runs, and the program's segments.
struct OfThread {
  std::list<Region> shared;
  std::vector<Range> modules;
};
thread_local OfThread own;

int on_module(struct dl_phdr_info* module, size_t, void*) {
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto& segment = module->dlpi_phdr[i];
    const uintptr_t start = module->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) own.modules.push_back({start, start + segment.p_memsz});
    if (segment.p_type != PT_TLS || !module->dlpi_tls_data) continue;
    const auto data = reinterpret_cast<uintptr_t>(module->dlpi_tls_data);
    const uintptr_t low = data & ~uintptr_t(3);
    const bool known = std::any_of(own.shared.begin(), own.shared.end(),
                                   [&](const Region& region) { return region.low == low; });
    if (known) continue;
    const size_t cells = segment.p_memsz / 4 + 2;
    const bool main_program = !module->dlpi_name || !*module->dlpi_name;
    own.shared.push_back({RegionKind::StaticShared, low, data + segment.p_memsz, 0,
                          main_program ? "/proc/" + std::to_string(getpid()) + "/exe"
                                       : std::string(module->dlpi_name),
                          Shadow<Cell>(cells), Shadow<uint8_t>(), Shadow<uint8_t>(cells),
                          Shadow<uint32_t>(cells)});
  }
  return 0;
}

/// "tile + 64": the variable at an offset of a module's thread-local segment, by readelf.
std::string variable_at(const std::string& module, uintptr_t offset) {
  const std::string command = "readelf -sWC '" + module + "' 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "variable";
  std::string found = "variable";
  char line[1024];
  while (std::fgets(line, sizeof line, pipe)) {
    unsigned long start = 0, bytes = 0;
    char type[16];
    int name = 0;
    const int fields =
        std::sscanf(line, " %*d: %lx %lu %15s %*s %*s %*s %n", &start, &bytes, type, &name);
    if (fields != 3 || !name || std::strcmp(type, "TLS") != 0) continue;
    if (offset < start || offset >= start + bytes) continue;
    found.assign(line + name, std::strcspn(line + name, "\n"));
    const size_t scope = found.rfind("::");
    if (scope != std::string::npos) found.erase(0, scope + 2);
    found += " + " + std::to_string(offset - start);
  }
  pclose(pipe);
  return found;
}

}  // namespace

void* map_shadow(size_t bytes) {
  if (!bytes) return nullptr;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return data;
}

void unmap_shadow(void* data, size_t bytes) {
  if (data) munmap(data, bytes);
}

Region* region_of(uintptr_t address) {
  Region* const last = last_device().load(std::memory_order_relaxed);
  if (last && last->holds(address)) return last;
  for (Region& region : own.shared)
    if (region.holds(address)) return &region;
  for (Region& region : devices())
    if (region.holds(address)) {
      last_device().store(&region, std::memory_order_relaxed);
      return &region;
    }
  return nullptr;
}

bool readable_from_kernels(uintptr_t address) {
  for (const Range& module : own.modules)
    if (address >= module.low && address < module.high) return true;
  PinnedRanges& ranges = pinned();
  std::lock_guard<std::mutex> lock(ranges.mutex);
  auto next = ranges.bytes.upper_bound(address);
  if (next == ranges.bytes.begin()) return false;
  --next;
  return address < next->first + next->second;
}

std::string describe(const Region& region, uintptr_t address) {
  char text[64];
  switch (region.kind) {
    case RegionKind::DynamicShared:
      return "dynamic shared memory + " + std::to_string(address - check_state().dynamic_shared);
    case RegionKind::StaticShared:
      return "__shared__ " + variable_at(region.module, address - region.low);
    case RegionKind::Device: break;
  }
  std::snprintf(text, sizeof text, "device memory %p of cuda:%d", reinterpret_cast<void*>(address),
                region.device);
  return text;
}

void find_thread_regions() {
  own.modules.clear();
  dl_iterate_phdr(on_module, nullptr);
}

void find_dynamic_shared(unsigned char* memory) {
  for (const Region& region : own.shared)
    if (region.kind == RegionKind::DynamicShared) return;
  // With the red zones around it.
  const uintptr_t low = reinterpret_cast<uintptr_t>(memory) - 4096;
  const uintptr_t high = low + kMaxShared + 2 * 4096;
  const size_t cells = (high - low) / 4;
  own.shared.push_front({RegionKind::DynamicShared, low, high, 0, "", Shadow<Cell>(cells),
                         Shadow<uint8_t>(), Shadow<uint8_t>(cells), Shadow<uint32_t>(cells)});
}

void add_device_region(void* base, size_t bytes, int device) {
  const auto low = reinterpret_cast<uintptr_t>(base);
  const size_t cells = bytes / 4 + 1;
  devices().push_back({RegionKind::Device, low, low + bytes, device, "", Shadow<Cell>(cells),
                       Shadow<uint8_t>(cells), Shadow<uint8_t>(cells), Shadow<uint32_t>()});
}

void remove_device_region(void* base) {
  last_device() = nullptr;
  devices().remove_if(
      [&](const Region& region) { return region.low == reinterpret_cast<uintptr_t>(base); });
}

void mark_allocation(void* memory, size_t bytes, bool owned) {
  Region* region = region_of(reinterpret_cast<uintptr_t>(memory));
  if (!region) return;
  // Allocations start at a multiple of 512.
  const size_t first = region->cell_of(reinterpret_cast<uintptr_t>(memory));
  for (size_t i = 0; i * 4 < bytes; ++i) {
    const size_t left = bytes - i * 4;
    region->owned[first + i] = owned ? uint8_t(left >= 4 ? 15 : (1 << left) - 1) : 0;
    region->written[first + i] = 0;
  }
}

void mark_pinned(void* memory, size_t bytes, bool on) {
  PinnedRanges& ranges = pinned();
  std::lock_guard<std::mutex> lock(ranges.mutex);
  if (on) ranges.bytes[reinterpret_cast<uintptr_t>(memory)] = bytes;
  else ranges.bytes.erase(reinterpret_cast<uintptr_t>(memory));
}

}  // namespace ramet::emulated
