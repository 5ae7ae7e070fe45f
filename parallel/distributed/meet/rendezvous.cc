#include "parallel/distributed/meet/rendezvous.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "parallel/distributed/meet/file_store.h"
#include "parallel/distributed/meet/host_address_internal.h"
#include "parallel/distributed/meet/inproc_rendezvous_internal.h"
#include "parallel/distributed/meet/lingering_store_internal.h"
#include "parallel/distributed/meet/meeting_internal.h"
#include "parallel/distributed/meet/tcp_store.h"

namespace ramet::distributed {
namespace {

constexpr const char* kOp = "rendezvous";
constexpr const char* kAddresses = "env://, tcp://HOST:PORT, file://PATH or inproc://N";

struct Handlers {
  std::mutex mutex;
  std::map<std::string, RendezvousHandler> by_scheme;
};
Handlers& handlers() {
  static Handlers all;
  return all;
}
bool is_built_in(const std::string& scheme) {
  return scheme == "env" || scheme == "tcp" || scheme == "file" || scheme == "inproc";
}

// The first of several environment variables that is set: its name and value.
struct Variable {
  std::string name, value;
};

class Environment {
 public:
  explicit Environment(const RendezvousOptions& o) : look_up_(o.environment) {}

  std::optional<std::string> get(const std::string& name) const {
    if (look_up_) return look_up_(name);
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  std::optional<Variable> first(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (auto value = get(name)) return Variable{name, *value};
    return std::nullopt;
  }
  template <class Number = int>
  std::optional<Number> number(std::initializer_list<const char*> names) const {
    const auto found = first(names);
    if (!found) return std::nullopt;
    Number n = 0;
    const char *from = found->value.data(), *to = from + found->value.size();
    const auto [at, error] = std::from_chars(from, to, n);
    RAMET_CHECK(error == std::errc() && at == to && n >= 0, kOp, "environment variable ",
                found->name, ": got \"", found->value, "\", expected a whole number from 0 to ",
                std::numeric_limits<Number>::max());
    return n;
  }

 private:
  std::function<std::optional<std::string>(const std::string&)> look_up_;
};

int parse_number(const char* what, const std::string& text, int most) {
  int n = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, n);
  RAMET_CHECK(error == std::errc() && at == end && n >= 0 && n <= most, kOp, what, ": got \"", text,
              "\", expected a whole number from 0 to ", most);
  return n;
}

struct Url {
  std::string scheme, place;
  std::optional<int> rank, world_size;
};

std::string scheme_of(const std::string& address) {
  const size_t colon = address.find("://");
  RAMET_CHECK(colon != std::string::npos, kOp, "address: got \"", address, "\", expected ",
              kAddresses);
  return address.substr(0, colon);
}

Url parse_url(const std::string& text) {
  Url url;
  url.scheme = scheme_of(text);
  url.place = text.substr(url.scheme.size() + 3);
  const size_t question = url.place.find('?');
  std::string query;
  if (question != std::string::npos) {
    query = url.place.substr(question + 1);
    url.place.resize(question);
  }
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size()), equals = query.find('=');
    const std::string item = query.substr(0, end);
    query.erase(0, end + 1);
    const std::string name = item.substr(0, std::min(equals, item.size()));
    const std::string value = equals < item.size() ? item.substr(equals + 1) : "";
    if (name == "rank") url.rank = parse_number("rank", value, 1 << 20);
    else if (name == "world_size") url.world_size = parse_number("world_size", value, 1 << 20);
    else
      fail(kOp, "address: got the parameter \"", name, "\" in \"", text,
           "\", expected rank and world_size");
  }
  return url;
}

// "node[03-05,9],gpu1" -> "node03": the first host of a Slurm list.
std::string first_slurm_host(const std::string& list) {
  const size_t open = list.find('['), comma = list.find(',');
  if (open == std::string::npos || comma < open) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", open);
  return list.substr(0, open) + list.substr(open + 1, end - open - 1);
}

// Host and port for env:// if no MASTER_* gives them. This needs a launcher that put all ranks on
// one host, or a Slurm job: its number gives every step a port of its own.
std::pair<std::string, int> default_master(const Environment& env, int world) {
  std::string host;
  if (const auto given = env.get("MASTER_ADDR")) host = *given;
  else if (const auto local = env.number({"OMPI_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE"});
           local && *local == world)
    host = "127.0.0.1";
  else if (const auto nodes = env.first({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}))
    host = first_slurm_host(nodes->value);
  RAMET_CHECK(!host.empty(), kOp, "environment variable MASTER_ADDR expected, but not set");
  if (const auto port = env.number({"MASTER_PORT"})) {
    RAMET_CHECK(*port <= 65535, kOp, "environment variable MASTER_PORT: got ", *port,
                ", expected a port from 1 to 65535");
    return {host, *port};
  }
  if (const auto job = env.number<uint32_t>({"SLURM_JOB_ID"})) {
    const uint64_t step = env.number<uint32_t>({"SLURM_STEP_ID"}).value_or(0);
    return {host, 20000 + static_cast<int>((uint64_t{*job} * 7 + step) % 10000)};
  }
  if (const auto job = env.first({"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}))
    return {host, 20000 + static_cast<int>(std::hash<std::string>()(job->value) % 10000)};
  fail(kOp, "environment variable MASTER_PORT expected, but not set");
}

// Identifies one start of all ranks: the id from tools/launch, or the job of the launcher that
// numbered the ranks. If the caller gave the numbers, ranks may come from several steps of one job,
// so the job does not count.
std::string run_of(const Environment& env, bool numbered_by_job) {
  if (const auto given = env.get("RAMET_RUN_ID")) return *given;
  if (!numbered_by_job) return "";
  if (env.get("OMPI_COMM_WORLD_RANK")) {
    const auto job = env.first({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
    return job ? "mpirun " + job->value : "";
  }
  const auto job = env.get("SLURM_JOB_ID");
  return job ? "srun " + *job + "." + env.get("SLURM_STEP_ID").value_or("0") : "";
}

// inproc://N gives the number of ranks; inproc://NAME does not.
void read_inproc(Url& url, const std::string& address) {
  RAMET_CHECK(!url.place.empty(), kOp, "name missing: got \"", address,
              "\", expected inproc://N?rank=R or inproc://NAME?rank=R&world_size=N");
  if (url.place.find_first_not_of("0123456789") != std::string::npos) return;
  const int ranks = parse_number("world size", url.place, 1 << 20);
  RAMET_CHECK(!url.world_size || *url.world_size == ranks, kOp, "world size: got both ", ranks,
              " and ", *url.world_size, " in \"", address, "\"");
  url.world_size = ranks;
}

Rendezvous by_handler(const std::string& scheme, const std::string& address,
                      const RendezvousOptions& options) {
  RendezvousHandler handler;
  {
    Handlers& all = handlers();
    const std::lock_guard lock(all.mutex);
    const auto at = all.by_scheme.find(scheme);
    RAMET_CHECK(at != all.by_scheme.end(), kOp, "No rendezvous handler for ", scheme,
                "://: expected ", kAddresses, ", or a scheme with a registered handler");
    handler = at->second;
  }
  Rendezvous r = handler(address, options);
  RAMET_CHECK(r.store, kOp, "the handler for ", scheme, ":// returned no store");
  RAMET_CHECK(r.rank >= 0 && r.rank < r.world_size, kOp, "the handler for ", scheme,
              ":// returned rank ", r.rank, " of a world of ", r.world_size,
              ", expected 0 to world_size - 1");
  return r;
}

// Sets r.store and r.address: this rank's client and, on rank 0 over TCP, the server.
void open_store(Rendezvous& r, const Url& url, const std::string& address, const Environment& env,
                const StoreClient& client, Deadline deadline,
                std::shared_ptr<TcpStoreServer>& server) {
  if (url.scheme == "file") {
    RAMET_CHECK(!url.place.empty(), kOp, "path missing: got \"", address,
                "\", expected file://PATH");
    r.store = std::make_shared<FileStore>(url.place, client, time_left(deadline));
  } else {
    std::string host;
    int port = 0;
    if (url.scheme == "env") {
      std::tie(host, port) = default_master(env, r.world_size);
    } else {
      const size_t colon = url.place.rfind(':');
      RAMET_CHECK(colon != std::string::npos && colon + 1 < url.place.size(), kOp,
                  "port number missing: got \"", address, "\", expected tcp://HOST:PORT");
      host = url.place.substr(0, colon);
      port = parse_number("port", url.place.substr(colon + 1), 65535);
      RAMET_CHECK(!host.empty(), kOp, "host missing: got \"", address,
                  "\", expected tcp://HOST:PORT");
    }
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
      host = host.substr(1, host.size() - 2);
    RAMET_CHECK(port > 0, kOp, "port: got 0, expected a port from 1 to 65535 that all ranks know");
    if (r.rank == 0) {
      detail::stop_lingering(static_cast<uint16_t>(port));
      server = std::make_shared<TcpStoreServer>(host, static_cast<uint16_t>(port), client);
    }
    auto store = std::make_shared<TcpStore>(host, static_cast<uint16_t>(port), client,
                                            time_left(deadline), server);
    r.address = store->local_address();
    r.store = store;
  }
}

// Waits until all ranks have come, and finds out how they reach each other.
Rendezvous meet_others(Rendezvous r, const Environment& env, Deadline deadline) {
  PrefixStore joined(r.store, "rendezvous");
  std::vector<detail::HostAddress> hosts;
  const detail::HostAddress mine{detail::this_network(), r.address};
  for (const std::string& text : detail::meet(joined, r.rank, r.world_size, deadline, mine.text()))
    hosts.push_back(detail::HostAddress::parse(text));
  const auto given = env.get("RAMET_SOCKET_ADDR");
  r.address = given ? *given : detail::address_among(hosts, r.rank);
  return r;
}

}  // namespace

void register_rendezvous_handler(const std::string& scheme, RendezvousHandler handler) {
  constexpr const char* op = "register_rendezvous_handler";
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool good =
      !scheme.empty() && is_letter(scheme[0]) && std::ranges::all_of(scheme, [&](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
      });
  RAMET_CHECK(good, op, "scheme: got \"", scheme,
              "\", expected a lower-case letter, then lower-case letters, digits, +, - and .");
  RAMET_CHECK(handler, op, "the handler for ", scheme, ":// is empty");
  Handlers& all = handlers();
  const std::lock_guard lock(all.mutex);
  RAMET_CHECK(!is_built_in(scheme) && all.by_scheme.try_emplace(scheme, std::move(handler)).second,
              op, "there is a handler for ", scheme, ":// already");
}

Rendezvous rendezvous(const std::string& address, const RendezvousOptions& options) {
  if (const std::string scheme = scheme_of(address); !is_built_in(scheme))
    return by_handler(scheme, address, options);
  const Environment env(options);
  Url url = parse_url(address);
  const bool threads = url.scheme == "inproc";
  if (threads) read_inproc(url, address);
  const bool from_environment = url.scheme == "env";
  const auto stated = [&](const std::optional<int>& in_url, const std::optional<int>& in_options) {
    return in_url ? in_url : in_options;
  };

  Rendezvous r;
  auto rank = stated(url.rank, options.rank);
  const bool numbered_by_job = !rank && !env.get("RANK");
  // A process has one environment: it cannot number threads.
  RAMET_CHECK(rank || !threads, kOp, "rank parameter missing: got \"", address,
              "\", expected inproc://N?rank=R");
  if (!rank) rank = env.number({"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"});
  RAMET_CHECK(rank, kOp, from_environment ? "" : "rank parameter missing: ",
              "environment variable RANK expected, but not set");
  auto world = stated(url.world_size, options.world_size);
  RAMET_CHECK(world || !threads, kOp, "world size parameter missing: got \"", address,
              "\", expected inproc://N?rank=R or inproc://NAME?rank=R&world_size=N");
  if (!world) world = env.number({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"});
  RAMET_CHECK(world, kOp, from_environment ? "" : "world size parameter missing: ",
              "environment variable WORLD_SIZE expected, but not set");
  RAMET_CHECK(*world > 0, kOp, "world size: got 0, expected 1 or more");
  RAMET_CHECK(*rank < *world, kOp, "rank: got ", *rank, " of a world of ", *world,
              ", expected 0 to ", *world - 1);
  r.rank = *rank;
  r.world_size = *world;
  const Deadline deadline = deadline_in(options.timeout);
  if (threads) {
    r.threads = true;
    r.local_rank = r.rank;
    r.store = detail::meet_inproc(url.place, r.rank, r.world_size, deadline);
    return r;
  }
  r.local_rank =
      env.number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}).value_or(r.rank);
  StoreClient client{r.rank, r.world_size, run_of(env, numbered_by_job), options.version};

  if (from_environment) {
    if (const auto store = env.get("RAMET_STORE")) {
      url = parse_url(*store);
      RAMET_CHECK(url.scheme == "tcp" || url.scheme == "file", kOp,
                  "environment variable RAMET_STORE: got \"", *store,
                  "\", expected tcp://HOST:PORT or file://PATH");
    }
  }
  std::shared_ptr<TcpStoreServer> server;
  try {
    open_store(r, url, address, env, client, deadline, server);
    return meet_others(std::move(r), env, deadline);
  } catch (const Error&) {
    if (server && server->has_to_tell()) detail::linger(std::move(server), deadline);
    throw;
  }
}

}  // namespace ramet::distributed
