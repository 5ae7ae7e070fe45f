// The checker's reports.
#include <set>
#include <utility>

#include "tools/emulated_gpu/checker/checker.h"
#include "tools/emulated_gpu/executor/device_calls.h"
#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/runtime/control.h"

namespace ramet::emulated {
namespace {

/// More reports than this come from one mistake.
constexpr size_t kMaxReports = 20;

std::set<std::pair<const void*, const void*>>& reported() {
  static auto* pairs = new std::set<std::pair<const void*, const void*>>;
  return *pairs;
}

bool first_time(const void* code, const void* earlier) {
  return reported().size() < kMaxReports && reported().emplace(code, earlier).second;
}

/// The line of a call: its return address may already belong to the next.
std::string line_of(const void* code) { return source_line_of(static_cast<const char*>(code) - 1); }

std::string thread_of(unsigned rank) { return "thread " + text_of(index_of(rank)); }

const char* name_of(bool write) { return write ? "write" : "read"; }

}  // namespace

std::string CheckedOperation::name() const { return kernel ? function_name_of(kernel) : what; }

void forget_reports() { reported().clear(); }

void report_uninitialised(const Region& region, const Access& access) {
  if (!first_time(access.code, nullptr)) return;
  device_warn(Fault::Uninitialised, "UNINITIALISED read of " + describe(region, access.address) +
                                        " by " + thread_of(access.position.rank) + " at " +
                                        line_of(access.code));
}

void report_race(const Region& region, const Access& access, const LastAccess& earlier,
                 bool earlier_write) {
  if (!first_time(access.code, earlier.where())) return;
  const CheckState& state = check_state();
  const bool here = earlier.instance == state.instance;
  std::string who = thread_of(unsigned(earlier.rank));
  if (!here) who += " of block number " + std::to_string(earlier.instance - state.launch_first);
  else if (earlier.several) who = "several threads, the last " + who;
  device_warn(Fault::Race,
              "RACE on " + describe(region, access.address) + ": " +
                  (access.atomic ? "atomic " : "") + name_of(access.write) + " by " +
                  thread_of(access.position.rank) + " at " + line_of(access.code) + ", earlier " +
                  (earlier.atomic ? "atomic " : "") + name_of(earlier_write) + " by " + who +
                  " at " + line_of(earlier.where()) +
                  (here ? ", and no barrier between them" : ", and nothing orders the two blocks"));
}

void report_unordered(const Region& region, const Access& access, const LastAccess& earlier,
                      bool earlier_write, const CheckedOperation& operation) {
  const CheckedOperation& now = check_state().operations.back();
  if (!first_time(access.code, earlier.where())) return;
  const auto place_of = [](const void* code, const CheckedOperation& operation) {
    return (code ? "in " : "by ") + operation.name() + (code ? " at " + line_of(code) : "");
  };
  const std::string text = "UNORDERED STREAMS on " + describe(region, access.address) + ": " +
                           name_of(access.write) + " " + place_of(access.code, now) +
                           " in stream number " + std::to_string(now.stream) + ", earlier " +
                           name_of(earlier_write) + " " + place_of(earlier.where(), operation) +
                           " in stream number " + std::to_string(operation.stream) +
                           ", and no event, wait or barrier orders the two";
  if (on_device()) device_warn(Fault::Race, text);
  else fail_all_devices(cudaErrorLaunchFailure, "[emulated CUDA] " + text);
}

void report_unowned(const Region& region, uintptr_t address, bool write) {
  fail_all_devices(cudaErrorIllegalAddress,
                   std::string("[emulated CUDA] OUT OF BOUNDS: ") + name_of(write) + " by " +
                       check_state().operations.back().name() + " of " + describe(region, address) +
                       ", which no allocation holds");
}

void report_misaligned(const void* memory, const char* type, size_t alignment, const void* code) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const Region* region = on_device() ? region_of(address) : nullptr;
  const std::string text = std::string("MISALIGNED: access of ") + type + " at " +
                           (region ? describe(*region, address) : "other memory") +
                           ", which is no multiple of " + std::to_string(alignment);
  if (on_device()) device_fail(Fault::Misaligned, text.c_str(), line_of(code).c_str(), 0);
  fail_all_devices(cudaErrorMisalignedAddress, "[emulated CUDA] " + text + " at " + line_of(code));
}

void report_too_much_shared(const Access& access) {
  const Grid& grid = check_state().grid;
  device_fail(
      Fault::Resources,
      ("TOO MUCH SHARED MEMORY: more than " + std::to_string(check_state().static_shared - 4) +
       " bytes of __shared__ variables and " + std::to_string(grid.shared_bytes) +
       " of the launch, and a block gets " + std::to_string(grid.most_shared) +
       (grid.most_shared == kMaxShared ? "" : " without cudaFuncSetAttribute()"))
          .c_str(),
      line_of(access.code).c_str(), 0);
}

void report_illegal(const Access& access, const std::string& what) {
  device_fail(Fault::IllegalAddress, what.c_str(), line_of(access.code).c_str(), 0);
}

}  // namespace ramet::emulated
