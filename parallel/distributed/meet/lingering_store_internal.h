// The store of a rendezvous that failed stays a while, for ranks that come late.
#pragma once
#include <memory>

#include "parallel/distributed/meet/tcp_store.h"

namespace ramet::distributed::detail {

/// Keeps the server on a thread of its own until it has nobody left to tell or the deadline; where
/// the process ends before, two seconds more at most.
void linger(std::shared_ptr<TcpStoreServer> server, Deadline deadline);
/// Ends what lingers at this port, which is free when it returns.
void stop_lingering(uint16_t port);

}  // namespace ramet::distributed::detail
