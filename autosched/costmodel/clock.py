"""Where documented plug-ins find the analytic clock; it stands in `autosched.costmodel.analytic.clock`."""

from autosched.costmodel.analytic.clock import clock

__all__ = ["clock"]
