"""The JSON schema of an intrinsic file, for editors: generated from the models, kept as `intrinsics/schema.json`.

`python -m autosched.tensorize.spec.schema > intrinsics/schema.json` writes it again after a change of the models.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from autosched.tensorize.spec.keys.models import FileKeys


def intrinsic_schema() -> dict[str, Any]:
    """The schema as plain data. A family's numbers may be written as a text with fields, `"{n}"`."""
    schema = FileKeys.model_json_schema(by_alias=True)
    _allow_fields(schema)
    schema["$defs"] = dict(sorted(schema["$defs"].items()))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "autosched intrinsic file"}


def schema_text() -> str:
    """The schema as the file holds it."""
    return json.dumps(intrinsic_schema(), indent=1, ensure_ascii=False) + "\n"


def _allow_fields(node: Any) -> None:
    """Let a `{field}` stand wherever a number, a word of a list or a restricted text does."""
    if isinstance(node, list):
        for part in node:
            _allow_fields(part)
        return
    if not isinstance(node, dict):
        return
    for part in list(node.values()):
        _allow_fields(part)
    if "pattern" in node or "enum" in node or node.get("type") in ("number", "integer", "boolean"):
        inner = {k: node.pop(k) for k in list(node) if k not in ("title", "description", "default")}
        node["anyOf"] = [inner, {"type": "string", "pattern": r"\{[A-Za-z_]\w*\}"}]


if __name__ == "__main__":
    sys.stdout.write(schema_text())
