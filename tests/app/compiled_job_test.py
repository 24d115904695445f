#!/usr/bin/env python3
"""`retrograd memory --trace LOG` (the program is the first argument) of a compiled job: a structured log with its graphs and the code that Inductor wrote, and a simulated history."""
import hashlib
import json
import pickle
import sys
import unittest

import support
from allocator import BACKWARD, TRAIN, Allocator, frame, snapshot
from support import Case

CODE = "c2mnbdvqrtlog3lniapotcncigoakii6xvyxd23ec3yhzmpkamij.py"

FORWARD_GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[512, 64][64, 1]cuda:0", primals_2: "f32[64, 1024][1024, 1]cuda:0"):
        # File: /job/net.py:12 in forward, code: h = gelu(x @ w)
        mm: "f32[512, 1024][1024, 1]cuda:0" = torch.ops.aten.mm.default(primals_1, primals_2)
        view: "f32[1024, 512][512, 1]cuda:0" = torch.ops.aten.view.default(mm, [1024, 512])
        gelu: "f32[1024, 512][512, 1]cuda:0" = torch.ops.aten.gelu.default(view);  view = None
        # File: /job/net.py:13 in forward, code: return h.sum()
        sum_1: "f32[][]cuda:0" = torch.ops.aten.sum.default(gelu);  gelu = None
        return (sum_1, primals_1, primals_2, mm)
"""

BACKWARD_GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[512, 64][64, 1]cuda:0", primals_2: "f32[64, 1024][1024, 1]cuda:0", mm: "f32[512, 1024][1024, 1]cuda:0", tangents_1: "f32[][]cuda:0"):
        expand: "f32[1024, 512][0, 0]cuda:0" = torch.ops.aten.expand.default(tangents_1, [1024, 512]);  tangents_1 = None
        view_1: "f32[1024, 512][512, 1]cuda:0" = torch.ops.aten.view.default(mm, [1024, 512]);  mm = None
        gelu_backward: "f32[1024, 512][512, 1]cuda:0" = torch.ops.aten.gelu_backward.default(expand, view_1);  expand = view_1 = None
        view_2: "f32[512, 1024][1024, 1]cuda:0" = torch.ops.aten.view.default(gelu_backward, [512, 1024]);  gelu_backward = None
        t: "f32[64, 512][1, 64]cuda:0" = torch.ops.aten.t.default(primals_1);  primals_1 = None
        mm_1: "f32[64, 1024][1024, 1]cuda:0" = torch.ops.aten.mm.default(t, view_2);  t = view_2 = None
        return (None, mm_1)
"""

FORWARD_CODE = """
def call(args):
    primals_1, primals_2 = args
    buf0 = empty_strided_cuda((512, 1024), (1024, 1), torch.float32)
    # Topologically Sorted Source Nodes: [matmul], Original ATen: [aten.mm]
    extern_kernels.mm(primals_1, primals_2, out=buf0)
    buf1 = empty_strided_cuda((), (), torch.float32)
    # Topologically Sorted Source Nodes: [gelu, sum], Original ATen: [aten.view, aten.gelu, aten.sum]
    triton_per_fused_gelu_sum_0.run(buf0, buf1, 524288, stream=stream0)
    return (buf1, primals_1, primals_2, buf0, )
"""

BACKWARD_CODE = """
def call(args):
    primals_1, primals_2, mm, tangents_1 = args
    buf0 = empty_strided_cuda((1024, 512), (512, 1), torch.float32)
    # Topologically Sorted Source Nodes: [gelu], Original ATen: [aten.expand, aten.view, aten.gelu_backward]
    triton_poi_fused_gelu_backward_0.run(mm, tangents_1, buf0, 524288, stream=stream0)
    buf1 = empty_strided_cuda((64, 1024), (1024, 1), torch.float32)
    # Topologically Sorted Source Nodes: [matmul], Original ATen: [aten.t, aten.mm]
    extern_kernels.mm(reinterpret_tensor(primals_1, (64, 512), (1, 64), 0), reinterpret_tensor(buf0, (512, 1024), (1024, 1), 0), out=buf1)
    return (None, buf1, )
"""


def log(codes):
    """What TORCH_TRACE writes of one compile."""
    compile_id = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
    records = [({"dynamo_start": {"stack": []}}, None), ({"aot_forward_graph": {}}, FORWARD_GRAPH), ({"aot_backward_graph": {}}, BACKWARD_GRAPH)]
    records += [({"inductor_output_code": {"filename": f"/cache/ab/{name}"}}, code) for name, code in codes]
    lines = []
    for record, payload in records:
        hashed = {"has_payload": hashlib.md5(payload.rstrip("\n").encode()).hexdigest()} if payload else {}
        lines.append("V1127 10:00:00.000000 77 torch/_logging/structured.py:27] " + json.dumps({**record, **compile_id, **hashed}))
        lines += ["\t" + line for line in payload.rstrip("\n").split("\n")] if payload else []
    return "\n".join(lines) + "\n"


def line_of(code, text):
    return next(number for number, line in enumerate(code.split("\n"), 1) if text in line)


class CompiledJob(Case):
    def joined(self, places, codes):
        """A step whose memory is made at these places: mm, the loss, the gradient of gelu, the gradient of the weight."""
        device, steps = Allocator(), []
        for _ in range(2):
            saved, loss, inner, gradient = (device.alloc(size, frames) for size, frames in zip((2 << 20, 4, 2 << 20, 262144), places))
            device.free(saved, BACKWARD)
            device.free(inner, BACKWARD)
            device.free(loss, [TRAIN])
            device.free(gradient, [frame("/lib/python3/site-packages/torch/optim/optimizer.py", 950, "zero_grad"), TRAIN])
            steps.append(loss)
        (self.path / "memory.pickle").write_bytes(pickle.dumps(snapshot(device)))
        (self.path / "trace.log").write_text(log(codes))
        report = json.loads(self.good("memory", self.path / "memory.pickle", "--trace", self.path / "trace.log", "--rows", "100", "--format", "json").stdout)
        self.assertEqual(sum(report["joined"][level + "_bytes"] for level in ("exact", "aligned", "unknown")), report["peak_bytes"])
        return report, {block["requested_bytes"] + (block["made_by"] == "aten.gelu_backward"): block for block in report["blocks"]}

    def test_lines_of_inductors_code_belong_to_results_of_the_graph(self):
        caller = [frame("/lib/python3/site-packages/torch/_inductor/output_code.py", 600, "__call__")]
        forward = [*caller, frame("/job/train.py", 40, "main")]
        backward = [*caller, *BACKWARD]
        other = "d" + CODE[1:]
        places = [[frame(f"/cache/ab/{name}", line_of(code, text), "call"), *outer] for name, code, text, outer in (
            (CODE, FORWARD_CODE, "buf0 =", forward), (CODE, FORWARD_CODE, "buf1 =", forward), (other, BACKWARD_CODE, "buf0 =", backward), (other, BACKWARD_CODE, "buf1 =", backward))]
        report, blocks = self.joined(places, [(CODE, FORWARD_CODE), (other, BACKWARD_CODE)])
        saved = blocks[2 << 20]
        self.assertEqual((saved["level"], saved["made_by"], saved["held_for"], saved["line"]), ("exact", "aten.mm", "saved for aten.gelu_backward", "net.py:12"))
        self.assertEqual((blocks[262144]["level"], blocks[262144]["held_for"]), ("exact", "gradient"))
        inner = blocks[(2 << 20) + 1]  # stays in the code: op, size and order agree
        self.assertEqual((inner["level"], inner["held_for"]), ("aligned", "temporary of the backward"))
        self.assertEqual(report["joined"]["unknown_bytes"], 0)
        # Without the code nothing is known of these lines.
        report, _ = self.joined(places, [])
        self.assertEqual(report["joined"]["exact_bytes"], 0)

    def test_a_saved_tensor_is_read_through_a_view(self):
        made = [{**frame("<eval_with_key>.1", 5, "forward"), "fx_node_name": name} for name in ("mm", "sum_1", "gelu_backward", "mm_1")]
        places = [[made[0], TRAIN], [made[1], TRAIN], [made[2], *BACKWARD], [made[3], *BACKWARD]]
        report, blocks = self.joined(places, [])
        self.assertEqual(blocks[2 << 20]["held_for"], "saved for aten.gelu_backward")
        self.assertEqual(blocks[2 << 20]["last_reader"], "aten.gelu_backward")
        self.assertEqual(report["joined"]["exact_bytes"], report["peak_bytes"])


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
