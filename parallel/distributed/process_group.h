// Moved. This name stays for one release.
#pragma once
#include "parallel/distributed/group/process_group.h"
