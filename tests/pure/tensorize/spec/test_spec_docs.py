"""What docs/intrinsics.md and the examples say is true."""

import re

import pytest
from support.paths import ROOT

from autosched.errors import SpecError
from autosched.tensorize.check.verify import check
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.keys.models import FileKeys, IntrinsicKeys, NumericsKeys, OperandKeys
from autosched.tensorize.spec.load import load_text

PAGE = (ROOT / "docs" / "intrinsics.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_worked_example_loads_and_grows():
    first = next(b for b in BLOCKS if b.startswith("# my_npu.yaml"))
    assert [i.name for i in load_text(first)] == ["npu/mma.s8.s32"]
    operands = next(b for b in BLOCKS if b.startswith("    operands:"))
    (made,) = load_text(first + operands, "my_npu.yaml")
    image, _ = made.operands["b"].order.points()
    words = [tuple(int(c) for c in point) for point in image.T[:8]]
    assert words == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 1)]
    message = next(b for b in BLOCKS if b.startswith("my_npu.yaml:11:"))
    with pytest.raises(SpecError) as caught:
        load_text(first + operands.replace("% 8", "% 4"), "my_npu.yaml")
    assert str(caught.value).splitlines()[0] == message.strip()


def test_the_examples_load_beside_the_builtin_catalogue():
    grown = Catalogue.builtin().with_paths([ROOT / "examples" / "intrinsics"])
    added = [n for n in grown if n not in Catalogue.builtin()]
    assert added == ["npu/mma.s8.s32", "npu/mma.u8.s32", "x86/pmaddwd.ymm"]
    for name in added:
        assert check(grown[name], frozenset()).ok


@pytest.mark.parametrize("model", [FileKeys, IntrinsicKeys, NumericsKeys, OperandKeys])
def test_every_key_is_documented(model):
    for name, field in model.model_fields.items():
        assert f"`{field.alias or name}`" in PAGE
