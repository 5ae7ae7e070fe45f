#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <thread>

#include "runtime/base/machine_internal.h"
#include "runtime/base/threads_internal.h"

namespace ramet {
namespace detail {
namespace {

// Empty where there is no such file.
std::string text_of(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[4096];
  for (ssize_t n; (n = read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(n));
  close(file);
  return text;
}

// Calls f(piece) for each piece of `text` between `separator`s.
template <class F> void each(std::string_view text, char separator, const F& f) {
  while (!text.empty()) {
    const size_t end = text.find(separator);
    f(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

bool has_piece(std::string_view text, char separator, std::string_view wanted) {
  bool found = false;
  each(text, separator, [&](std::string_view piece) { found |= piece == wanted; });
  return found;
}

// The number at the start of `text`, or -1: "max", nothing, a negative number.
int64_t number_of(const std::string& text) {
  char* end = nullptr;
  const long long n = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() || n < 0 ? -1 : n;
}

// The mount point of a hierarchy of groups, and the group that is there.
struct Mount {
  std::string at, group;
};

// The mount of version 2 without a controller, or of version 1 with that controller. A line is
//   "31 23 0:28 /group /sys/fs/cgroup rw,relatime shared:9 - cgroup cgroup rw,cpu".
Mount mount_of(const std::string& mounts, std::string_view controller) {
  Mount found;
  each(mounts, '\n', [&](std::string_view line) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos || !found.at.empty()) return;
    std::string_view before[5], after[3];
    size_t n = 0;
    each(line.substr(0, dash), ' ', [&](std::string_view s) { n < 5 ? before[n++] = s : s; });
    size_t m = 0;
    each(line.substr(dash + 3), ' ', [&](std::string_view s) { m < 3 ? after[m++] = s : s; });
    if (n < 5 || m < 3) return;
    if (controller.empty() ? after[0] != "cgroup2"
                           : after[0] != "cgroup" || !has_piece(after[2], ',', controller))
      return;
    found = {std::string(before[4]), before[3] == "/" ? "" : std::string(before[3])};
  });
  return found;
}

// The process's group in that hierarchy, from lines "4:cpu,cpuacct:/group", and "0::/group".
std::string group_in(const std::string& groups, std::string_view controller) {
  std::string found;
  each(groups, '\n', [&](std::string_view line) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_piece(controllers, ',', controller))
      found = line.substr(second + 1);
  });
  return found;
}

// Calls f(folder) for the process's group and those above it. A container may see its own group at
// the mount point, under any name that it has outside. Missing folders have no files.
template <class F>
void each_group(const std::string& root, const std::string& groups, const std::string& mounts,
                std::string_view controller, const F& f) {
  const Mount mount = mount_of(mounts, controller);
  if (mount.at.empty()) return;
  std::string group = group_in(groups, controller);
  if (!mount.group.empty() && group.compare(0, mount.group.size(), mount.group) == 0)
    group.erase(0, mount.group.size());
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    f(root + mount.at + group);
    if (group.empty()) return;
    group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

void limit_processors(GroupLimits& limits, int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return;
  const double processors = static_cast<double>(quota) / static_cast<double>(period);
  if (limits.processors == 0 || processors < limits.processors) limits.processors = processors;
}

void limit_memory(GroupLimits& limits, int64_t bytes, const std::string& folder, const char* word) {
  // Version 1 writes "no limit" as a number that no machine has.
  if (bytes < 0 || bytes >= std::numeric_limits<int64_t>::max() / 2) return;
  if (limits.memory != 0 && bytes >= limits.memory) return;
  limits.memory = std::max<int64_t>(bytes, 1);
  limits.usage_file = folder + "/memory.stat";
  limits.usage_word = word;
}

}  // namespace

GroupLimits group_limits(const std::string& root) {
  GroupLimits limits;
  const std::string groups = text_of(root + "/proc/self/cgroup"),
                    mounts = text_of(root + "/proc/self/mountinfo");
  each_group(root, groups, mounts, "", [&](const std::string& folder) {
    const std::string cpu = text_of(folder + "/cpu.max");  // "150000 100000"
    const size_t space = cpu.find(' ');
    if (space != std::string::npos)
      limit_processors(limits, number_of(cpu), number_of(cpu.substr(space + 1)));
    for (const char* file : {"/memory.max", "/memory.high"})
      limit_memory(limits, number_of(text_of(folder + file)), folder, "anon ");
  });
  each_group(root, groups, mounts, "cpu", [&](const std::string& folder) {
    limit_processors(limits, number_of(text_of(folder + "/cpu.cfs_quota_us")),
                     number_of(text_of(folder + "/cpu.cfs_period_us")));
  });
  each_group(root, groups, mounts, "memory", [&](const std::string& folder) {
    limit_memory(limits, number_of(text_of(folder + "/memory.limit_in_bytes")), folder,
                 "total_rss ");
  });
  return limits;
}

int64_t group_memory_in_use(const GroupLimits& limits) {
  if (limits.usage_file.empty()) return 0;
  int64_t bytes = 0;
  each(text_of(limits.usage_file), '\n', [&](std::string_view line) {
    if (line.substr(0, limits.usage_word.size()) == limits.usage_word)
      bytes = std::max<int64_t>(number_of(std::string(line.substr(limits.usage_word.size()))), 0);
  });
  return bytes;
}

int usable_threads(const GroupLimits& limits, int processors) {
  if (limits.processors > 0 && limits.processors < processors)
    processors = static_cast<int>(std::ceil(limits.processors));
  return std::max(processors, 1);
}

const GroupLimits& my_group_limits() {
  static const GroupLimits& limits = *new GroupLimits(group_limits());  // for static objects
  return limits;
}

int usable_threads() {
  if (!has_threads()) return 1;
  cpu_set_t set;
  const int processors = sched_getaffinity(0, sizeof set, &set) == 0
                             ? CPU_COUNT(&set)
                             : static_cast<int>(std::thread::hardware_concurrency());
  return usable_threads(my_group_limits(), processors);
}

int64_t usable_memory() {
  static const int64_t machine =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  const int64_t limit = my_group_limits().memory;
  return limit ? std::min(limit, machine) : machine;
}

}  // namespace detail
}  // namespace ramet
