// Moved. This name stays for one release.
#pragma once
#include "runtime/devices/generator.h"
