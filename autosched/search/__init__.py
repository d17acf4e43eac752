"""Which schedule next? Strategies over the scored union of spaces, the study that keeps trials, the tuning loop.

Nothing here prints or times; it emits `events`. Read `tuning.tune` (the whole run), `space.space`,
`protocol`, then `tuning.study` and `tuning.loop`.
"""

from autosched.search.events import Event, Listener
from autosched.search.protocol import Strategy
from autosched.search.registry import strategies, strategy
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.stopwatch import Stopwatch
from autosched.search.tuning.final import Verdict
from autosched.search.tuning.loop import Result, run
from autosched.search.tuning.study import Best, Study, open_study

__all__ = [
    "Best",
    "Event",
    "Listener",
    "Result",
    "Rows",
    "SearchSpace",
    "Stopwatch",
    "Strategy",
    "Study",
    "Verdict",
    "open_study",
    "run",
    "strategies",
    "strategy",
]
