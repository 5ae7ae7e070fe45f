// One of LibTorch's headers: the door and process groups. Written by tools/compat/names.py.
#pragma once
#include <ramet/compat/c10d_groups.h>
