// Keeps the store of a failed rendezvous for a while, for ranks that come late.
#pragma once
#include <memory>

#include "parallel/distributed/meet/tcp_store.h"

namespace ramet::distributed::detail {

/// Keeps the server on a thread of its own until all ranks have received the error, or until the
/// deadline. If the process ends before, it keeps it for at most two seconds more.
void linger(std::shared_ptr<TcpStoreServer> server, Deadline deadline);
/// Ends the server that is kept at this port. The port is free when this returns.
void stop_lingering(uint16_t port);

}  // namespace ramet::distributed::detail
