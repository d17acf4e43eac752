"""Is the kernel right? Run without its hardware, whole or cut down. Read `verify`."""
