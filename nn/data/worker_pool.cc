#include "nn/data/worker_pool.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "nn/data/worker_exception.h"
#include "runtime/base/threads_internal.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/mersenne.h"
#include "runtime/observe/thread_local_state.h"

namespace ramet {
namespace data {

WorkerException::WorkerException(std::exception_ptr original)
    : original_exception(std::move(original)),
      message("Caught exception in DataLoader worker thread.") {
  try {
    std::rethrow_exception(original_exception);
  } catch (const std::exception& e) {
    message += " Original message: ";
    message += e.what();
  } catch (...) { message += " It is not derived from std::exception."; }
}
WorkerException::~WorkerException() = default;

namespace detail {

namespace {
// Steele, Lea and Flood's finaliser (SplitMix64, 2014): neighbouring inputs give unrelated outputs.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
}  // namespace

uint64_t draw_epoch_seed() {
  Generator generator = default_generator(current_device());
  const PhiloxKey key = generator.reserve(1);
  return mixed(mixed(key.seed) + key.offset) + static_cast<uint64_t>(key.base);
}

void with_batch_random(const BatchRandom& random, const std::function<void()>& work) {
  // Operations that a batch may draw before it meets the next one's: 2^24.
  const ShardNumbers numbers{random.seed, random.batch << 24, 0, -1, 0};
  const ReplicaRandomGuard guard(ReplicaRandomRef(new ReplicaRandom(numbers)));
  work();
}

void with_program_random(const BatchRandom& random, const std::function<void()>& work) {
  if (draws_from_mersenne(current_device(), {})) return work();
  with_batch_random(random, work);
}

// A longer wait would overflow to the past: a clock's nanoseconds are an int64.
constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);

struct WorkerPool::State {
  using Results = std::map<uint64_t, Result>;
  struct Job {
    std::shared_ptr<void> request;
    BatchRandom random;
    std::shared_ptr<ThreadLocalState> context;
    Results::node_type result;  // with the job's number; allocated before, because a worker cannot
                                // report that there is no memory for it
    uint64_t round;
  };
  const bool ordered;
  mutable std::mutex mutex;
  std::condition_variable jobs_changed, results_changed;
  std::deque<Job> jobs;
  Results results;           // by the job's number.
  uint64_t next_number = 0;  // of the next job.
  uint64_t next_result = 0;  // ordered: the number that is due
  uint64_t round = 0;        // raised by drain(): results of earlier rounds are dropped
  size_t at_work = 0;        // threads inside a Work
  size_t in_flight = 0;
  bool quit = false;
  std::vector<std::thread> threads;
  std::vector<Work> here;  // without threads: push() runs them, in turn
  const pid_t process = ::getpid();

  explicit State(bool keep_order) : ordered(keep_order) {}
  // A child of fork() has none of the threads. A wait for them, or for a lock that they held, would
  // never end.
  bool is_of_parent() const { return ::getpid() != process; }
  void check_process() const {
    RAMET_CHECK(!is_of_parent(), "fork",
                "the DataLoader's workers stayed in the process that was forked: expected a loader "
                "that is made after fork()");
  }

  void run(const Work& work) {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      jobs_changed.wait(lock, [&] { return quit || !jobs.empty(); });
      if (quit) return;
      run_next(work, lock);
    }
  }
  void run_next(const Work& work, std::unique_lock<std::mutex>& lock) {
    Job job = std::move(jobs.front());
    jobs.pop_front();
    ++at_work;
    lock.unlock();
    Result result;
    try {
      ThreadLocalStateGuard context(*job.context);
      with_batch_random(job.random, [&] { result.batch = work(job.request.get()); });
    } catch (...) { result.exception = std::current_exception(); }
    const uint64_t its_round = job.round;
    Results::node_type place = std::move(job.result);
    // the request's tensors are freed on this thread, before the consumer gets the result
    job = Job();
    lock.lock();
    if (its_round != round) {
      lock.unlock();
      result = Result();
      lock.lock();
    } else {
      place.mapped() = std::move(result);
      results.insert(std::move(place));
    }
    --at_work;
    results_changed.notify_one();
  }
  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      quit = true;
    }
    jobs_changed.notify_all();
    for (std::thread& t : threads) t.join();
  }
  bool ready() const {
    return !results.empty() && (!ordered || results.begin()->first == next_result);
  }
};

WorkerPool::WorkerPool(std::vector<Work> work, bool ordered)
    : state_(std::make_unique<State>(ordered)) {
  if (!ramet::detail::has_threads()) {
    state_->here = std::move(work);
    return;
  }
  try {
    for (Work& w : work)
      state_->threads.emplace_back([s = state_.get(), w = std::move(w)] { s->run(w); });
  } catch (...) {  // no thread left in the system: those that were started must end first
    state_->stop();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  if (state_->is_of_parent()) (void)state_.release();  // a child of fork() has no threads to end
  else state_->stop();
}

void WorkerPool::push(std::shared_ptr<void> request, BatchRandom random) {
  state_->check_process();
  State::Results one;
  one.emplace(0, Result());
  State::Job job{std::move(request), random, std::make_shared<ThreadLocalState>(),
                 one.extract(one.begin()), 0};
  {
    std::unique_lock<std::mutex> lock(state_->mutex);
    const uint64_t number = state_->next_number;
    job.result.key() = number;
    job.round = state_->round;
    state_->jobs.push_back(std::move(job));
    ++state_->next_number;
    ++state_->in_flight;
    if (!state_->here.empty())
      return state_->run_next(state_->here[number % state_->here.size()], lock);
  }
  state_->jobs_changed.notify_one();
}

size_t WorkerPool::in_flight() const {
  state_->check_process();
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->in_flight;
}

WorkerPool::Result WorkerPool::pop(std::optional<std::chrono::milliseconds> timeout) {
  state_->check_process();
  std::unique_lock<std::mutex> lock(state_->mutex);
  const auto ready = [&] { return state_->ready(); };
  if (!timeout) {
    state_->results_changed.wait(lock, ready);
  } else if (!state_->results_changed.wait_for(lock, std::min(*timeout, kForever), ready)) {
    fail("DataLoader", "Timeout in DataLoader queue while waiting for next batch (timeout was ",
         timeout->count(), " ms)");
  }
  const auto first = state_->results.begin();
  Result result = std::move(first->second);
  state_->results.erase(first);
  ++state_->next_result;
  --state_->in_flight;
  return result;
}

void WorkerPool::drain() {
  state_->check_process();
  std::deque<State::Job> jobs;
  State::Results results;
  std::unique_lock<std::mutex> lock(state_->mutex);
  jobs.swap(state_->jobs);
  results.swap(state_->results);
  ++state_->round;
  state_->in_flight = 0;
  state_->next_result = state_->next_number;
  state_->results_changed.wait(lock, [this] { return state_->at_work == 0; });
}

}  // namespace detail
}  // namespace data
}  // namespace ramet
