"""Built GPU kernels as functions of arrays. Read `callable`, then `function`."""
