// LibTorch's header for extensions of Python's torch.
#error "torch/library.h: Ramet has no Python module to extend: include torch/torch.h, and bind functions with pybind11 or ctypes"
