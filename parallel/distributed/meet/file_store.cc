// Note [The file of a FileStore]
// The file has a head and a log. The head names the format, the library's version, the run and the
// number of ranks. It also names the process that made the file: pid, start time, and boot id of
// the host. A record is a frame of (kind, key, value). Reading the log from its start gives the
// map, and every process continues to read where it stopped. All accesses are under flock(), also
// reads, so a record is either whole or absent.
#include "parallel/distributed/meet/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "parallel/distributed/meet/socket_internal.h"
#include "runtime/base/config.h"

namespace ramet::distributed {

using detail::Packer;
using detail::Unpacker;

namespace {

constexpr uint64_t kFormat = 0x31656c6946536d52;  // "RmSFile1"
enum class Kind : uint64_t { set, erase, failure };

std::string first_line(const char* path) {
  auto in = ramet::detail::classic<std::ifstream>(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The start time since the host's boot; with the pid it identifies one process. 0: there is no such
// process.
uint64_t start_time_of(uint64_t pid) {
  const std::string stat = first_line(("/proc/" + std::to_string(pid) + "/stat").c_str());
  const size_t name_end = stat.rfind(')');  // names may hold spaces
  if (name_end == std::string::npos) return 0;
  auto rest = ramet::detail::classic<std::istringstream>(stat.substr(name_end + 1));
  std::string word;
  for (int field = 3; field <= 22 && rest >> word; ++field) {
    if (field == 3 && (word == "Z" || word == "X")) return 0;
  }
  return rest ? std::strtoull(word.c_str(), nullptr, 10) : 0;
}

std::string pid_space() {
  char name[64] = {};
  const ssize_t n = readlink("/proc/self/ns/pid", name, sizeof(name));
  return n > 0 ? std::string(name, static_cast<size_t>(n)) : std::string();
}

struct Process {
  uint64_t pid = 0, started = 0;
  std::string
      host;  // boot id and pid namespace: hosts and containers that share a file differ in it

  static Process self() {
    const auto pid = static_cast<uint64_t>(getpid());
    return {pid, start_time_of(pid), first_line("/proc/sys/kernel/random/boot_id") + pid_space()};
  }
  // Has the process ended, as far as this host can know?
  bool gone(const Process& here) const {
    return host == here.host && start_time_of(pid) != started;
  }
  void pack(Packer& p) const { p.number(pid).number(started).text(host); }
  static Process unpack(Unpacker& u) {
    Process p;
    p.pid = u.number();
    p.started = u.number();
    p.host = u.text();
    return p;
  }
};

// Other processes hold the file only briefly, unless they are stopped in the middle.
constexpr Milliseconds kPatience = std::chrono::seconds(30), kLittlePatience(2000);

class Locked {
 public:
  Locked(int fd, const std::string& path, Deadline deadline) : fd_(fd) {
    for (auto pause = std::chrono::microseconds(50); flock(fd_, LOCK_EX | LOCK_NB) != 0;
         pause = std::min(pause * 2, std::chrono::microseconds(5000))) {
      if (errno == EINTR) continue;
      RAMET_CHECK(errno == EWOULDBLOCK, "store", "cannot lock the rendezvous file '", path,
                  "': ", std::strerror(errno), ", expected a file system with locks");
      RAMET_CHECK(std::chrono::steady_clock::now() < deadline, "store",
                  "Timeout: another process keeps the rendezvous file '", path, "' locked");
      std::this_thread::sleep_for(pause);
    }
  }
  ~Locked() { flock(fd_, LOCK_UN); }
  Locked(const Locked&) = delete;

 private:
  int fd_;
};

}  // namespace

struct FileStore::State {
  std::string path;
  StoreClient client;
  Process self = Process::self();
  std::mutex mutex;
  int fd = -1;
  uint64_t read_to = 0;
  std::map<std::string, std::string> map;
  std::optional<std::string> failure;

  ~State() {
    if (fd >= 0) close(fd);
  }

  [[noreturn]] void damaged() const {
    fail("store", "the rendezvous file '", path, "' is damaged or no file of this library");
  }

  bool is_at_its_path() const {
    struct stat opened {
    }, named{};
    return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
  }

  // Appends one frame.
  void append(const std::string& payload) {
    const auto size = static_cast<uint64_t>(payload.size());
    std::string whole(reinterpret_cast<const char*>(&size), sizeof(size));
    whole += payload;
    const ssize_t n = pwrite(fd, whole.data(), whole.size(), static_cast<off_t>(read_to));
    if (n != static_cast<ssize_t>(whole.size())) {
      const int error = errno;
      if (ftruncate(fd, static_cast<off_t>(read_to)) != 0) {}  // removes the incomplete frame
      fail("store", "cannot write the rendezvous file '", path, "': ", std::strerror(error));
    }
    read_to += whole.size();
  }

  // Reads what other processes have appended. The caller holds the lock, as for append().
  void follow() {
    struct stat info {};
    if (fstat(fd, &info) != 0) damaged();
    const auto end = static_cast<uint64_t>(info.st_size);
    if (end == read_to) return;
    if (end < read_to) damaged();
    std::string bytes(end - read_to, 0);
    if (pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(read_to)) !=
        static_cast<ssize_t>(bytes.size()))
      damaged();
    Unpacker u(bytes);
    while (u.at() < bytes.size()) {
      const std::string frame = u.text();
      if (!u.good()) damaged();
      read_record(frame);
    }
    read_to = end;
  }

  void read_record(const std::string& frame) {
    Unpacker u(frame);
    const auto kind = static_cast<Kind>(u.number());
    const std::string key = u.text(), value = u.text();
    if (!u.good()) damaged();
    if (kind == Kind::set) map[key] = value;
    else if (kind == Kind::erase) map.erase(key);
    else if (!failure) failure = value;
  }

  void record(Kind kind, const std::string& key, const std::string& value) {
    const std::string frame =
        Packer().number(static_cast<uint64_t>(kind)).text(key).text(value).bytes();
    append(frame);
    read_record(frame);
  }

  // Locks the file, reads everything, and runs `change`.
  template <class F> auto with_all(F change, Deadline deadline = deadline_in(kPatience)) {
    const std::lock_guard here(mutex);
    const Locked everywhere(fd, path, deadline);
    follow();
    if (failure) throw Error(*failure);
    return change();
  }

  static std::string place_of(int rank) { return "rank/" + std::to_string(rank); }
  bool all_here() const {
    for (int r = 0; r < client.world_size; ++r)
      if (!map.count(place_of(r)) || map.count(left_by(r))) return false;
    return true;
  }
  // Adds n to the number of ranks that have left, and returns the sum.
  int64_t leave(int64_t n) {
    const auto at = map.find("left");
    const int64_t sum =
        detail::counted("left", at == map.end() ? std::nullopt : std::optional(at->second), n);
    record(Kind::set, "left", std::to_string(sum));
    return sum;
  }
  static std::string left_by(int rank) { return "left/" + std::to_string(rank); }
  std::string library() const { return client.version.empty() ? version() : client.version; }

  void write_head() {
    Packer p;
    p.number(kFormat).text(library()).text(client.run_id);
    p.number(static_cast<uint64_t>(client.world_size));
    self.pack(p);
    append(p.bytes());
  }

  // Returns an empty text, or why this process is refused. `all`: the other ranks must get this
  // error too.
  std::string read_head(bool& all) {
    uint64_t size = 0;
    if (pread(fd, &size, sizeof(size), 0) != sizeof(size) || size > 4096) damaged();
    std::string head(size, 0);
    if (pread(fd, head.data(), size, sizeof(size)) != static_cast<ssize_t>(size)) damaged();
    Unpacker u(head);
    if (u.number() != kFormat) damaged();
    const std::string theirs = u.text(), run = u.text();
    const auto world = static_cast<int>(u.number());
    const Process maker = Process::unpack(u);
    if (!u.good()) damaged();
    read_to = sizeof(size) + size;
    const std::string stale = "[store] stale rendezvous file '" + path + "': ";
    if (!run.empty() && !client.run_id.empty() && run != client.run_id)
      return stale + "it belongs to the run '" + run + "', this is the run '" + client.run_id +
             "'; remove it, or give every run a file of its own";
    if (maker.gone(self)) {
      follow();
      return stale + "process " + std::to_string(maker.pid) + ", which made it, has ended" +
             (failure ? " (its run failed: " + *failure + ")" : "") +
             "; remove it, or give every run a file of its own";
    }
    all = true;
    if (theirs != library())
      return "[store] different versions of the library: rank " + std::to_string(client.rank) +
             " has " + library() + ", the one that made '" + path + "' has " + theirs;
    if (world != client.world_size)
      return "[store] world size: rank " + std::to_string(client.rank) + " was given " +
             std::to_string(client.world_size) + ", the one that made '" + path + "' was given " +
             std::to_string(world);
    return {};
  }

  // Returns false if the rank has left the run of this file, and the run has not ended yet.
  bool join(Deadline deadline) {
    bool all = false;
    const Locked everywhere(fd, path, deadline);
    struct stat info {};
    if (fstat(fd, &info) != 0) damaged();
    if (info.st_size == 0) write_head();
    std::string why = read_head(all);
    if (why.empty()) {
      follow();
      if (failure) throw Error(*failure);
      const std::string key = place_of(client.rank);
      if (map.count(left_by(client.rank))) {
        if (map.count("complete")) return false;
        // This rank tries again while the others are still coming.
        leave(-1);
        record(Kind::erase, left_by(client.rank), "");
        record(Kind::erase, key, "");
      }
      if (const auto at = map.find(key); at != map.end()) {
        Unpacker u(at->second);
        const Process other = Process::unpack(u);
        if (other.gone(self)) {
          all = false;
          why = "[store] stale rendezvous file '" + path + "': process " +
                std::to_string(other.pid) + ", which was rank " + std::to_string(client.rank) +
                ", has ended; remove it, or give every run a file of its own";
        } else {
          why = "[store] rank " + std::to_string(client.rank) +
                " is there twice: two processes were started with it, or the rendezvous file '" +
                path + "' is stale";
        }
      } else {
        Packer p;
        self.pack(p);
        record(Kind::set, key, p.bytes());
        if (all_here()) record(Kind::set, "complete", "");
      }
    } else if (all) {
      follow();
    }
    if (why.empty()) return true;
    if (all) record(Kind::failure, "", why);
    throw Error(why);
  }
};

FileStore::FileStore(std::string path, const StoreClient& client, Milliseconds timeout)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = std::move(path);
  s.client = client;
  RAMET_CHECK(client.rank >= 0 && client.rank < client.world_size, "store", "rank: got ",
              client.rank, ", expected 0 to ", client.world_size - 1);
  const Deadline deadline = deadline_in(timeout);
  for (;;) {
    s.fd = open(s.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    RAMET_CHECK(s.fd >= 0, "store", "cannot open the rendezvous file '", s.path,
                "': ", std::strerror(errno));
    // The last rank of an earlier run may have removed the file between open and here.
    if (s.is_at_its_path()) {
      if (s.join(deadline)) return;
      RAMET_CHECK(time_left(deadline).count() > 0, "store", "Timeout: the rendezvous file '",
                  s.path, "' is of a run that rank ", client.rank,
                  " has left already, and others have not");
      std::this_thread::sleep_for(Milliseconds(10));
    }
    close(std::exchange(s.fd, -1));
    s.read_to = 0;
    s.map.clear();
    s.failure.reset();
  }
}

FileStore::~FileStore() {
  try {
    State& s = *state_;
    const std::lock_guard here(s.mutex);
    const Locked everywhere(s.fd, s.path, deadline_in(kLittlePatience));
    s.follow();
    const int64_t left = s.leave(1);
    s.record(Kind::set, s.left_by(s.client.rank), "");
    // If another process has removed this run's file, another run may have begun at the path.
    if (left >= s.client.world_size && s.is_at_its_path()) unlink(s.path.c_str());
  } catch (const Error&) {  // the file is gone or damaged: nothing to tidy up
  }
}

std::string FileStore::where() const { return "file://" + state_->path; }

void FileStore::set(const std::string& key, const std::string& value) {
  state_->with_all([&] { state_->record(Kind::set, "k/" + key, value); });
}

std::optional<std::string> FileStore::find(const std::string& key, Deadline deadline) {
  const std::string name = "k/" + key;
  for (auto pause = Milliseconds(1);; pause = std::min(pause * 2, Milliseconds(50))) {
    const auto look = [&]() -> std::optional<std::string> {
      const auto at = state_->map.find(name);
      if (at == state_->map.end()) return std::nullopt;
      return at->second;
    };
    const auto value = state_->with_all(look, std::max(deadline, deadline_in(kLittlePatience)));
    const Milliseconds left = time_left(deadline);
    if (value || left.count() == 0) return value;
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

int64_t FileStore::add(const std::string& key, int64_t n) {
  return state_->with_all([&] {
    const auto at = state_->map.find("k/" + key);
    const int64_t sum =
        detail::counted(key, at == state_->map.end() ? std::nullopt : std::optional(at->second), n);
    state_->record(Kind::set, "k/" + key, std::to_string(sum));
    return sum;
  });
}

std::optional<std::string> FileStore::compare_set(const std::string& key,
                                                  const std::optional<std::string>& expected,
                                                  const std::string& value) {
  return state_->with_all([&] {
    const auto at = state_->map.find("k/" + key);
    std::optional<std::string> was;
    if (at != state_->map.end()) was = at->second;
    if (was == expected) state_->record(Kind::set, "k/" + key, value);
    return was;
  });
}

bool FileStore::erase(const std::string& key) {
  return state_->with_all([&] {
    if (!state_->map.count("k/" + key)) return false;
    state_->record(Kind::erase, "k/" + key, "");
    return true;
  });
}

size_t FileStore::size() {
  return state_->with_all([&] {
    size_t n = 0;
    for (const auto& item : state_->map) n += item.first.rfind("k/", 0) == 0;
    return n;
  });
}

void FileStore::fail_all(const std::string& why) {
  const std::lock_guard here(state_->mutex);
  const Locked everywhere(state_->fd, state_->path, deadline_in(kPatience));
  state_->follow();
  state_->record(Kind::failure, "", why);
}

}  // namespace ramet::distributed
