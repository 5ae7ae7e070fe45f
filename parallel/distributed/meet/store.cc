#include "parallel/distributed/meet/store.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/checked_size.h"

namespace ramet::distributed {

Milliseconds time_left(Deadline deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::clamp(left, Milliseconds(0), kForever);
}

Store::~Store() = default;

std::string Store::get(const std::string& key, Milliseconds timeout) {
  std::optional<std::string> value = find(key, deadline_in(timeout));
  RAMET_CHECK(value, "store", "Timeout waiting for key: ", key, ": nobody set it within ",
              timeout.count(), " ms (store ", where(), ")");
  return std::move(*value);
}

void Store::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  const Deadline deadline = deadline_in(timeout);
  std::string missing;
  for (const std::string& key : keys)
    if (!find(key, deadline)) missing += (missing.empty() ? "" : ", ") + key;
  RAMET_CHECK(missing.empty(), "store", "Timeout waiting for key: ", missing,
              ": nobody set it within ", timeout.count(), " ms (store ", where(), ")");
}

bool Store::check(const std::vector<std::string>& keys) {
  return std::ranges::all_of(keys,
                             [this](const std::string& k) { return find(k, {}).has_value(); });
}

namespace detail {

int64_t counted(const std::string& key, const std::optional<std::string>& now, int64_t n) {
  int64_t was = 0;
  if (now) {
    const char* end = now->data() + now->size();
    const auto [at, error] = std::from_chars(now->data(), end, was);
    RAMET_CHECK(error == std::errc() && at == end, "store", "add to key ", key,
                ": its value is no number");
  }
  return checked_add("store", ("add to key " + key).c_str(), was, n);
}

}  // namespace detail

// ---- MemoryStore --------------------------------------------------------------------------------

void MemoryStore::check_failure() const {
  if (failure_) throw Error(*failure_);
}

void MemoryStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  check_failure();
  map_[key] = value;
  changed_.notify_all();
}

std::optional<std::string> MemoryStore::find(const std::string& key, Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return failure_ || closed_ || map_.count(key); });
  check_failure();
  const auto found = map_.find(key);
  if (found == map_.end()) return std::nullopt;
  return found->second;
}

int64_t MemoryStore::add(const std::string& key, int64_t n) {
  const std::lock_guard lock(mutex_);
  check_failure();
  const auto found = map_.find(key);
  const int64_t sum =
      detail::counted(key, found == map_.end() ? std::nullopt : std::optional(found->second), n);
  map_[key] = std::to_string(sum);
  changed_.notify_all();
  return sum;
}

std::optional<std::string> MemoryStore::compare_set(const std::string& key,
                                                    const std::optional<std::string>& expected,
                                                    const std::string& value) {
  const std::lock_guard lock(mutex_);
  check_failure();
  const auto found = map_.find(key);
  std::optional<std::string> was;
  if (found != map_.end()) was = found->second;
  if (was == expected) {
    map_[key] = value;
    changed_.notify_all();
  }
  return was;
}

bool MemoryStore::erase(const std::string& key) {
  const std::lock_guard lock(mutex_);
  check_failure();
  return map_.erase(key) != 0;
}

size_t MemoryStore::size() {
  const std::lock_guard lock(mutex_);
  check_failure();
  return map_.size();
}

void MemoryStore::fail_all(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = why;
  changed_.notify_all();
}

std::optional<std::string> MemoryStore::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void MemoryStore::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace ramet::distributed
