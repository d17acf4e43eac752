"""How long will a schedule take? The analytic clock, named features, and models that learn what the clock misses.

Nothing here measures or chooses. Read `analytic.clock`, `features`, `protocol`, then `learned.learned`.
"""

from autosched.costmodel.features import (
    FEATURE_VERSION,
    FeatureMismatchError,
    Features,
    FeatureSchema,
    feature_table,
)
from autosched.costmodel.learned.learned import AnalyticModel, ResidualModel
from autosched.costmodel.protocol import CostModel, Prediction, Samples
from autosched.costmodel.registry import cost_model, cost_models

__all__ = [
    "FEATURE_VERSION",
    "AnalyticModel",
    "CostModel",
    "FeatureMismatchError",
    "FeatureSchema",
    "Features",
    "Prediction",
    "ResidualModel",
    "Samples",
    "cost_model",
    "cost_models",
    "feature_table",
]
