"""What exported C is made of beside the kernel's statements: files, flags, self-test, shared library, PyTorch
operator. Read `files`.
"""
