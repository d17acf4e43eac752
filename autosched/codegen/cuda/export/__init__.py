"""Exported CUDA: the files, the names that they must not use, the PyTorch operator. Read `files`."""
