"""Where buffers lie in a block's shared memory, and what is proved of it."""
