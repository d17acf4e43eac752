"""ONNX Runtime: a graph of one or a few nodes, its constants as initializers, inputs and outputs bound to memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.peers.shapes import Convolution, Product, convolution, product
from benchmarks.peers.task import Array, Contender, Task, UnavailableError, tolerance

FAMILY = "ONNX Runtime"
OPSET, IR_VERSION = 20, 10
U8_ZERO = 128
"""Quantised outputs are u8 here: signed ones, moved up."""


def version() -> dict[str, str]:
    try:
        import onnxruntime
    except ImportError:
        return {"onnxruntime": "not installed"}
    return {"onnxruntime": onnxruntime.__version__}


def contenders(task: Task) -> Iterator[Contender]:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError:
        raise UnavailableError("onnxruntime or onnx is not installed: pip install 'autosched[bench]'") from None
    if (p := product(task)) is not None:
        yield _product(task, p)
    elif (c := convolution(task)) is not None:
        yield _convolution(task, c)
    elif task.program.name in ("softmax", "layer_norm"):
        x = task.arrays["X"]
        graph = Graph(task)
        graph.array("X", x)
        if task.program.name == "softmax":
            graph.node("Softmax", ["X"], axis=1)
        else:
            names = [graph.array(n, task.arrays[n], const=True) for n in ("G", "D")]
            graph.node("LayerNormalization", ["X", *names], axis=1, epsilon=1e-5)
        yield graph.contender(f"ORT {task.program.name}", x.shape, np.float32, 1e-4)


class Graph:
    """Nodes in a row; each takes names and the one before's output where it says `last`."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.nodes: list[Any] = []
        self.given: dict[str, Array] = {}
        self.held: dict[str, Array] = {}
        self.last = ""

    def array(self, name: str, values: Array, *, const: bool = False) -> str:
        """An input, or an initializer where it is constant and constants may be prepared."""
        (self.held if const and self.task.packed else self.given)[name] = np.ascontiguousarray(values)
        return name

    def constant(self, name: str, values: Any) -> str:
        """Part of the operation's description (a scale, a zero point): always an initializer."""
        self.held[name] = np.asarray(values)
        return name

    def node(self, operator: str, inputs: list[str], **attributes: Any) -> None:
        from onnx import helper

        output = f"t{len(self.nodes)}"
        inputs = [self.last if i == "last" else i for i in inputs]
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        self.last = output

    def contender(self, name: str, shape: tuple[int, ...], dtype: Any, allowed: float, **more: Any) -> Contender:
        """Build the session and bind everything."""
        import onnxruntime as ort
        from onnx import helper, numpy_helper

        def info(name: str, shape: tuple[int, ...], dtype: Any) -> Any:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

        graph = helper.make_graph(
            self.nodes, "benchmark", [info(n, v.shape, v.dtype) for n, v in self.given.items()],
            [info(self.last, shape, dtype)], [numpy_helper.from_array(v, n) for n, v in self.held.items()],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.task.threads, 1
        options.log_severity_level = 3
        if workers := [str(c + 1) for c in self.task.cpus[1:]]:  # it counts CPUs from 1
            options.add_session_config_entry("session.intra_op_thread_affinities", ";".join(workers))
        # Idle threads must sleep, or they hold a core while the next one is timed.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        values = {n: ort.OrtValue.ortvalue_from_numpy(v) for n, v in self.given.items()}
        out = ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype))
        for n, value in values.items():
            binding.bind_ortvalue_input(n, value)
        binding.bind_ortvalue_output(self.last, out)
        return Contender(
            name, FAMILY, lambda: session.run_with_iobinding(binding), out.numpy, tolerance=allowed, **more
        )


def _product(task: Task, p: Product) -> Contender:
    graph = Graph(task)
    names = [graph.array("A", p.a), graph.array("B", p.b, const=p.const)]
    types = (task.dtype("A"), task.dtype("B"))
    match types, p.after:
        case ("f32", "f32"), after if p.out == "f32":
            graph.node("MatMul", names)
            if p.bias is not None:
                graph.node("Add", ["last", graph.array("D", p.bias, const=True)])
            if after == "relu":
                graph.node("Relu", ["last"])
            elif after:
                graph.node("Gelu", ["last"], approximate="tanh" if after == "gelu_tanh" else "none")
            return graph.contender("ORT MatMul", p.shape, np.float32, tolerance("f32"))
        case (("u8" | "s8"), ("u8" | "s8")), "":
            graph.node("MatMulInteger", names)
            return graph.contender("ORT MatMulInteger", p.shape, np.int32, 0.0)
        case ("u8", "s8"), "requantise":
            assert p.bias is not None
            one, zero = graph.constant("one", np.float32(1)), graph.constant("zero", np.uint8(0))
            scale, zeros = graph.constant("scale", p.bias), graph.constant("zeros", np.zeros(p.bias.shape, np.int8))
            to = graph.constant("to", np.uint8(U8_ZERO))
            graph.node("QLinearMatMul", [names[0], one, zero, names[1], scale, zeros, one, to])
            return graph.contender(
                "ORT QLinearMatMul", p.shape, np.uint8, 1.0,
                expected=lambda out: (out.astype(np.int32) + U8_ZERO).astype(np.uint8),
            )  # fmt: skip
    raise UnavailableError(f"no product of {types[0]} and {types[1]} with {p.after or 'nothing'} after it")


def _convolution(task: Task, c: Convolution) -> Contender:
    if not c.nchw:
        raise UnavailableError("its convolutions are NCHW")
    graph = Graph(task)
    names = [graph.array("X", c.x), graph.array("W", c.w, const=True)]
    how = {"strides": [c.stride] * 2, "pads": [c.pad] * 4, "dilations": [c.dilation] * 2, "group": c.groups}
    match task.dtype("X"), task.dtype("W"):
        case "f32", "f32":
            if c.bias is not None:
                names.append(graph.array("D", c.bias, const=True))
            graph.node("Conv", names, **how)
            if c.residual is not None:
                graph.node("Add", ["last", graph.array("R", c.residual)])
            if c.relu:
                graph.node("Relu", ["last"])
            return graph.contender("ORT Conv NCHW", c.shape, np.float32, tolerance("f32"), expected=c.logical)
        case "u8", "s8" if c.out == "s32":
            # Its other int8 convolution, ConvInteger, is reference code. This one scales into u8.
            scale = np.float32(1 / (255 * np.sqrt(c.w[0].size)))  # most results of random data stay in range
            one, zero = graph.constant("one", np.float32(1)), graph.constant("zero", np.uint8(0))
            zero_w = graph.constant("zero_w", np.int8(0))
            to = [graph.constant("scale", 1 / scale), graph.constant("to", np.uint8(U8_ZERO))]
            graph.node("QLinearConv", [names[0], one, zero, names[1], one, zero_w, *to], **how)

            def expected(out: Array) -> Array:
                moved: Array = np.clip(np.rint(c.logical(out) * scale) + U8_ZERO, 0, 255).astype(np.uint8)
                return moved

            return graph.contender("ORT QLinearConv NCHW, u8 out", c.shape, np.uint8, 1.0, expected=expected)
    raise UnavailableError(f"no convolution of {task.dtype('X')} and {task.dtype('W')}")
