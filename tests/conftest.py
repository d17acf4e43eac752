"""Makes `tests/conformance` importable for tests in any folder: `from conformance.store import StoreConformance`; and
`benchmarks`, which no installation holds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1]))
