"""Makes `tests/conformance` importable for tests in any folder: `from conformance.store import StoreConformance`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
