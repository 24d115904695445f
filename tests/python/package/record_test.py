"""retrograd.record: the loop's results stay, and a reader that knows the format alone runs every op again bit for bit (replayer.py)."""
import functools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import types
import weakref
from pathlib import Path

from support import PROGRAM, InFolder, Net, batch, retrograd, run as program, told, torch, unittest
from replayer import Replay, digest, read_data, read_records

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "steps"))
from links import Links
from torch.utils.checkpoint import checkpoint

F = torch.nn.functional
HERE = Path(__file__).resolve().parent


class Block(torch.nn.Module):
    def __init__(self, reentrant=None):
        super().__init__()
        self.inner, self.drop, self.reentrant = torch.nn.Linear(6, 6), torch.nn.Dropout(0.3), reentrant

    def body(self, x):
        return self.drop(torch.tanh(self.inner(x))) + x

    def forward(self, x):
        return self.body(x) if self.reentrant is None else checkpoint(self.body, x, use_reentrant=self.reentrant)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x * 1.5


def plain():
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), lambda model: F.cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,))).backward()


def loop_of(make_model, loss, make_optimizer=lambda p: torch.optim.SGD(p, lr=0.1)):
    def kind():
        model = make_model()
        return model, make_optimizer(list(model.parameters())), lambda model: loss(model).backward()
    return kind


def words(model):
    return F.cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,)))


def accumulated(model):
    for _ in range(3):
        (words(model) / 3).backward()


def in_bfloat16(model):
    with torch.autocast("cpu", torch.bfloat16):
        return words(model)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = torch.nn.LSTM(6, 5, 2, batch_first=True, dropout=0.2), torch.nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.lstm(x.unsqueeze(1).expand(-1, 4, -1))[0][:, -1])


class DataDependent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        while (x := self.first(x)).norm() > 1 and len(x) > 1:
            x = x[(x[:, 0] > x[:, 0].min())]
        return self.last(x.mean(0, keepdim=True).expand(4, 6))


class Sparse(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(9, 6, sparse=True), torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.table(torch.tensor([1, 2, 2, 5])) * x)


class InPlace(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        h = self.first(x)
        h = h * 2
        h[:, :3].mul_(3)
        h.t()[1] += 1
        return self.last(h)


class Ragged(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        ragged = torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, 4]))
        return self.last(torch.tanh(self.first(ragged)).values())


class Opaque(torch.nn.Module):
    """Tensors of which storages and sizes do not say everything: nested ones of the layout torch.strided, quantized ones, those of oneDNN."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        ragged = torch.nested.nested_tensor([x[:1], x[1:]], layout=torch.strided)
        h = torch.nested.to_padded_tensor(F.gelu(self.first(ragged)), 0.0).flatten(0, 1)[2:]
        coarse = torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.quint8).dequantize()
        return self.last(h + coarse + x.to_mkldnn().relu().to_dense())


class Rewritten(torch.nn.Module):
    """Writes for which autograd makes a copy first, or a node afterwards."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        h = self.first(x) * 2
        h = h.div_(h.sum(1, keepdim=True))
        out = torch.zeros(4, 6)
        out[:, 2:] = h[:, :4]
        out[:, :2].mul_(h[:, 4:]).add_(1)
        row = out[1]
        out.mul_(2)
        part = self.first(x).view(4, 3, 2)[:, 1:]
        part *= 0.5
        shift = self.last.bias * 2  # the node of the written view is made before this, and this reads something else
        return self.last(out + row) + shift + part.sum()


class Recalled(torch.nn.Module):
    """Checkpoints the forward of a module alone, which the module's own hooks do not see again."""

    def __init__(self):
        super().__init__()
        self.inner, self.head = torch.nn.ModuleList([Block(), Block()]), torch.nn.Linear(6, 3)
        for block in self.inner:
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)

    def forward(self, x):
        for block in self.inner:
            x = block(x)
        return self.head(x)


class Complex(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        spectrum = torch.fft.fft(self.first(x))
        return self.last((spectrum.conj() * spectrum).real + spectrum.imag)


class Branching(torch.nn.Module):
    """torch.cond compiles its branches, which close over weights."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.last(torch.tanh(self.first(x))), lambda x: self.last(torch.sin(self.first(x))), (x,))


class Heard(torch.nn.Module):
    """The CTC loss leaves a part of its workspace unwritten."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        heard = self.first(x).log_softmax(1).unsqueeze(1).expand(-1, 3, -1)
        lost = F.ctc_loss(heard, torch.tensor([[1, 2, 3]] * 3), torch.tensor([4, 4, 4]), torch.tensor([2, 1, 2]))
        return self.last(x) + lost


class Functional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        slopes = torch.func.vmap(torch.func.grad(lambda row: torch.tanh(self.first(row)).sum()))(x)
        return self.last(slopes) + torch.func.vmap(torch.func.jacrev(self.last))(x).sum(2)


def with_hooks():
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))
    model[0].weight.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    model[1].register_full_backward_hook(lambda module, given, got: (given[0] * 0.5,))

    def double(parameter):
        parameter.grad.mul_(2)

    model[2].bias.register_post_accumulate_grad_hook(double)
    return model


def adversarial():
    maker, judge = torch.nn.Linear(4, 6), torch.nn.Linear(6, 1)
    model = torch.nn.ModuleList([maker, judge])
    optimizers = [torch.optim.Adam(judge.parameters()), torch.optim.Adam(maker.parameters())]

    def step(model):
        made = maker(torch.randn(4, 4))
        (F.softplus(judge(made.detach())) + F.softplus(-judge(torch.randn(4, 6)))).mean().backward()
        optimizers[0].step()
        optimizers[0].zero_grad()
        F.softplus(-judge(made)).mean().backward()

    return model, optimizers, step


def penalized(model):
    x = torch.randn(4, 6, requires_grad=True)
    out = model(x).sum()
    (slope,) = torch.autograd.grad(out, x, create_graph=True)
    return out + (slope.norm(2, dim=1) - 1).square().mean()


def packed(model):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.double() if t.is_floating_point() else t, lambda t: t.float() if t.is_floating_point() else t):
        return words(model)


def with_tangents(model):
    """Forward-mode derivatives, whose zeros have no memory."""
    with torch.autograd.forward_ad.dual_level():
        out = model(torch.autograd.forward_ad.make_dual(torch.randn(4, 6), torch.randn(4, 6)))
        return out.square().mean() + torch.autograd.forward_ad.unpack_dual(out).tangent.square().mean()


def halved(model):
    """Hooks that cast without a node of their own, between a node and its op."""
    def pack(t):
        return t.detach().half() if t.dtype == torch.float32 else t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.float() * 1 if t.dtype == torch.float16 else t):
        return words(lambda x: torch.sigmoid(model(x) * model(x)).exp())


def offloaded(model):
    with torch.autograd.graph.save_on_cpu():
        return words(model)


def scaled():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def step(model):
        scaler.scale(in_bfloat16(model)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return True

    return model, optimizer, step


def accumulation():
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.1), accumulated


def second_order():
    model = Net(dropout=0)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x, y = batch()

    def step(model):
        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
        return True

    return model, optimizer, step


def blocks(reentrant):
    return lambda: torch.nn.Sequential(torch.nn.Linear(6, 6), Block(reentrant), Block(reentrant), torch.nn.Linear(6, 3))


KINDS = {
    "plain": plain,
    "accumulation": accumulation,
    "autocast_scaler": scaled,
    "checkpoint": loop_of(blocks(False), words),
    "checkpoint_reentrant": loop_of(blocks(True), words),
    "custom_function": loop_of(lambda: torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)), lambda model: words(lambda x: model[1](Square.apply(model[0](x))))),
    "hooks": loop_of(with_hooks, words),
    "foreach": loop_of(Net, words, lambda p: torch.optim.AdamW(p, foreach=True)),
    "fused": loop_of(Net, words, lambda p: torch.optim.AdamW(p, fused=True)),
    "amsgrad": loop_of(Net, words, lambda p: torch.optim.Adam(p, amsgrad=True, foreach=False)),
    "gan": adversarial,
    "gradient_penalty": loop_of(lambda: torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)), penalized),
    "lstm": loop_of(Recurrent, words),
    "sparse_embedding": loop_of(Sparse, words),
    "saved_tensor_hooks": loop_of(Net, packed),
    "saved_tensor_casts": loop_of(Net, halved),
    "ctc": loop_of(Heard, words),
    "branches": loop_of(Branching, words),
    "forward_mode": loop_of(lambda: torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)), with_tangents),
    "opaque_tensors": loop_of(Opaque, words),
    "rewritten": loop_of(Rewritten, words),
    "checkpointed_forward": loop_of(Recalled, words),
    "offload": loop_of(Net, offloaded),
    "data_dependent": loop_of(DataDependent, words),
    "in_place": loop_of(InPlace, words),
    "complex": loop_of(Complex, words),
    "nested": loop_of(Ragged, words),
    "torch_func": loop_of(Functional, words),
    "lbfgs": second_order,
}


def run(kind, steps, folder=None):
    """The states of model and optimizers after some steps, recorded or not."""
    torch.manual_seed(3)
    model, optimizer, step = KINDS[kind]()
    optimizers = optimizer if isinstance(optimizer, list) else [optimizer]

    def loop():
        for _ in range(steps):
            for one in optimizers:
                one.zero_grad()
            if not step(model):
                optimizers[-1].step()

    if folder is None:
        loop()
    else:
        with told(), retrograd.record(folder, model=model, optimizer=optimizers):
            loop()
    return [model.state_dict(), *(one.state_dict() for one in optimizers), torch.get_rng_state()]


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b)) if isinstance(a, (list, tuple)) else a == b


class Kinds(InFolder):
    """Each kind of step, from the first one on."""


def test_of(kind):
    def test(self):
        without, within = run(kind, 2), run(kind, 2, "here")
        self.assertTrue(equal(without, within), "the recorder changed the loop")
        replay = Replay("here").run()
        self.assertEqual(replay.differ, [])
        self.assertGreater(replay.checked, 20)
        manifest = json.loads(Path("here/retrograd.json").read_text())
        self.assertTrue(manifest["complete"])
        self.assertEqual((manifest["ops"], manifest["notes"]), (replay.ops, []))
        self.assertLess(manifest["links"]["ambiguous"], 1 + 0.005 * manifest["links"]["linked"], manifest["links"])
        self.assertEqual(manifest["links"]["unlinked"], 0, manifest["links"])
        links = Links(read_records("here"))
        self.assertEqual((links.wrong, dict(links.names)), ([], {}), "operands or names contradict a link")
        validate(self, "here")

    return test


for name in KINDS:
    setattr(Kinds, f"test_C1_{name}", test_of(name))


def validate(test, folder):
    """Each line and the manifest are as their schemas say."""
    try:
        import jsonschema
    except ImportError:
        return
    docs = HERE.parents[2] / "docs"
    jsonschema.validate(json.loads((Path(folder) / "retrograd.json").read_text()), json.loads((docs / "recording-manifest.schema.json").read_text()))
    schema = json.loads((docs / "recording.schema.json").read_text())
    kinds = {one["properties"]["k"]["const"]: jsonschema.Draft202012Validator({**one, "$defs": schema["$defs"]}) for one in schema["oneOf"]}
    for record in read_records(folder):
        kinds[record["k"]].validate(record)
        test.assertLessEqual(record.keys(), kinds[record["k"]].schema["properties"].keys())


class Contents(InFolder):
    def recorded(self, model, step, optimizer=None, **options):
        with told() as text:
            retrograd.record("here", step, model=model, optimizer=optimizer, **options)
        self.text = text.getvalue()
        self.records = read_records("here")
        return [record for record in self.records if record["k"] == "op"]

    def named(self, ops, name):
        return [op for op in ops if op["op"] == name]

    def test_C2_lines_modules_phases(self):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            loss = F.cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,)))  # the loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        self.recorded(model, step, optimizer)
        phase, phases, frames, stacks, modules = None, {}, {}, {}, {}
        for record in self.records:
            if record["k"] == "mode":
                phase = record["phase"]
            elif record["k"] in ("frame", "stack", "module"):
                {"frame": frames, "stack": stacks, "module": modules}[record["k"]][record["id"]] = record
            elif record["k"] == "op":
                phases.setdefault(phase, []).append(record)
        self.assertEqual(set(phases), {"other", "forward", "loss", "backward", "accumulation", "clip", "optimizer"})
        relu = next(op for op in phases["forward"] if op["op"] == "aten.relu.default")
        innermost = frames[stacks[relu["stack"]]["frames"][-1]]
        self.assertIn("torch.relu(self.norm(self.first(x)))", innermost["code"])
        addmm = next(op for op in phases["forward"] if op["op"] == "aten.addmm.default")
        self.assertEqual((modules[addmm["module"]]["path"], modules[addmm["module"]]["class"]), ("first", "Linear"))
        self.assertIn("# the loss", frames[stacks[phases["loss"][0]["stack"]]["frames"][-1]]["code"])

    def test_C2_what_takes_the_place_of_an_old_gradient_has_not_its_name(self):
        model = torch.nn.Linear(6, 6)
        optimizer = torch.optim.SGD(model.parameters())
        with told():
            model(torch.randn(4, 6)).sum().backward()
            with retrograd.record("here", model=model, optimizer=optimizer):
                optimizer.zero_grad()
                others = [torch.randn(6, 6) + 1 for _ in range(60)]
                model(torch.randn(4, 6)).sum().backward()
                optimizer.step()
        self.assertEqual(len(others), 60)
        records = read_records("here")
        storage_of = {record["id"]: record["storage"] for record in records if record["k"] == "tensor"}
        before = {storage_of[op["out"]["t"]] for op in records if op["k"] == "op" and isinstance(op["out"], dict) and "node" not in op}
        self.assertEqual([record for record in records if record["k"] == "name" and record["role"] == "gradient" and record["storage"] in before], [])

    def test_C2_ops_that_leave_memory_unwritten_are_those_of_the_program(self):
        from retrograd._recorded_op import _LEAVES_UNWRITTEN

        table = (HERE.parents[2] / "core/trace/op_traits.cpp").read_text()
        self.assertEqual(set(re.findall(r'\{"(aten\.\w+)", bits\([^)]*\bleavesUnwritten\b', table)), _LEAVES_UNWRITTEN)

    def test_C2_storages_come_and_go(self):
        def step():
            x = torch.ones(1000)
            for _ in range(5):
                x = x + 1

        self.recorded(None, step)
        freed = {record["id"] for record in self.records if record["k"] == "free"}
        self.assertGreaterEqual(len(freed), 5)

    def test_C3_links(self):
        """Backward ops, a custom Function, recomputed ops, hooks and accumulation."""
        model = torch.nn.Sequential(torch.nn.Linear(6, 6), Block(False), torch.nn.Linear(6, 3))
        model[2].weight.register_hook(lambda gradient: gradient * 2)
        ops = self.recorded(model, lambda: model[2](Square.apply(model[1](model[0](torch.randn(4, 6))))).sum().backward())
        by_number = {op["n"]: op for op in ops}
        for op in ops:
            if op.get("node", "").startswith("AddmmBackward"):
                self.assertEqual(by_number[op["of"]]["op"], "aten.addmm.default")
        repeated = [op for op in ops if "repeats" in op]
        self.assertGreaterEqual(len(repeated), 4)
        for op in repeated:
            self.assertEqual(by_number[op["repeats"]]["op"], op["op"])
            if "uninitialized" not in op:
                self.assertEqual(by_number[op["repeats"]].get("hash"), op.get("hash"))
        self.assertTrue(any(op.get("hook") == "<lambda>" for op in ops))
        self.assertEqual({op["function"] for op in ops if "function" in op}, {"Square"})
        self.assertEqual({op["accumulates"] for op in ops if "accumulates" in op}, {name for name, _ in model.named_parameters()})
        backward = [op for op in ops if "node" in op and "hook" not in op and "accumulates" not in op and "repeats" not in op]
        self.assertTrue(all("of" in op for op in backward), [op for op in backward if "of" not in op])

    def test_C3_recomputed_ops_of_a_forward_alone_have_the_module_of_what_they_repeat(self):
        model = Recalled()
        ops = self.recorded(model, lambda: words(model).backward())
        by_number = {op["n"]: op for op in ops}
        repeated = [op for op in ops if "repeats" in op]
        self.assertEqual({op["op"] for op in repeated} & {"aten.add.Tensor", "aten.tanh.default"}, {"aten.tanh.default"})  # the add is the last: nothing reads it again
        for op in repeated:
            self.assertEqual(op["module"], by_number[op["repeats"]]["module"])

    def test_C3_recomputed_ops_of_a_helper_repeat_those_of_the_same_call(self):
        """The helper makes its scale of new data each time, so that operands do not tell its calls apart."""

        def scale(size):
            return torch.sqrt(torch.tensor(size * 3.0))

        def region(x):
            a = (x @ x / scale(x.shape[0])).sin()
            b = (a @ x / scale(x.shape[0])).sin()
            return (a @ b / scale(x.shape[0])).sin()

        x = torch.randn(4, 4, requires_grad=True)
        for reentrant in (False, True):
            with told():
                retrograd.record(f"here{reentrant}", lambda: checkpoint(region, x * 2, use_reentrant=reentrant).sum().backward())
            ops = [record for record in read_records(f"here{reentrant}") if record["k"] == "op"]
            for name in ("aten.sqrt.default", "aten.div.Tensor"):
                made = [op["n"] for op in ops if op["op"] == name and "repeats" not in op and op.get("node") is None]
                self.assertEqual([op["repeats"] for op in ops if op["op"] == name and "repeats" in op], made, name)

    def test_C3_forwards_of_other_threads_are_not_confused_with_this_one(self):
        """No mode sees them. Their nodes have numbers that nodes of this thread have too, and get no link; what they made is data."""
        model, found = torch.nn.Linear(6, 6), []

        def step():
            thread = threading.Thread(target=lambda: found.append(torch.tanh(model(torch.ones(4, 6)))))
            thread.start()
            thread.join()
            x = torch.randn(4, 6, requires_grad=True)
            ((x * 2).exp() + found[0]).sum().backward()

        self.recorded(model, step)
        links = Links(read_records("here"))
        self.assertEqual((links.wrong, dict(links.names)), ([], {}))
        manifest = json.loads(Path("here/retrograd.json").read_text())
        self.assertGreater(manifest["links"]["unlinked"] + manifest["links"]["ambiguous"], 3)
        self.assertEqual(Replay("here").run().differ, [])

    def test_C3_a_custom_function_is_named_in_its_forward_and_its_backward(self):
        weight = torch.nn.Parameter(torch.ones(3))
        ops = self.recorded(None, lambda: Square.apply(weight).sum().backward())
        named = [op for op in ops if op.get("function") == "Square"]
        self.assertEqual([op["op"] for op in named], ["aten.mul.Tensor"] * 3)
        self.assertEqual([op.get("of") for op in named], [None, named[0]["n"], named[0]["n"]])

    def test_C4_inputs_are_from_before_the_first_write(self):
        weight = torch.nn.Parameter(torch.ones(3))

        def step():
            weight.data.mul_(5)
            (weight * 2).sum().backward()

        self.recorded(None, step)
        first = next(record for record in self.records if record["k"] == "storage" and "data" in record)
        self.assertEqual(torch.frombuffer(read_data("here")[first["data"]], dtype=torch.float32).tolist(), [1.0, 1.0, 1.0])

    def test_C4_names(self):
        model = Net()
        optimizer = torch.optim.AdamW(model.parameters())
        words(model).backward()
        optimizer.step()

        def step():
            optimizer.zero_grad()
            words(model).backward()
            optimizer.step()

        self.recorded(model, step, optimizer)
        names = {(record["role"], record["name"], record.get("state")) for record in self.records if record["k"] == "name"}
        self.assertLessEqual({("parameter", "first.weight", None), ("buffer", "norm.running_mean", None), ("gradient", "last.bias", None), ("optimizer", "first.weight", "exp_avg")}, names)

    def test_C4_hash_depends_on_position_and_is_the_same_for_both_writers(self):
        from retrograd._hash import hashed

        for size in (0, 1, 3, 8, 4095, 8192, 8193, 40000):
            for tensor in (torch.randn(size), torch.randint(0, 2, (size,)).bool(), torch.randn(size + 1)[1:], torch.randn(size).to(torch.bfloat16), torch.randn(size, dtype=torch.complex64).conj()):
                self.assertEqual(int(hashed(tensor)) & (1 << 64) - 1, digest(tensor))
        a = torch.randn(100)
        b = a.clone()
        b[[3, 77]] = b[[77, 3]]
        self.assertNotEqual(digest(a), digest(b))
        self.assertEqual(digest(a.view(10, 10).t()), digest(a.view(10, 10).t().contiguous()))

    def test_C5_memory_that_changes_without_an_op(self):
        """numpy writes into a tensor between two parts of a step: found, and replayed."""
        scale = torch.ones(6)

        def step():
            x = torch.randn(4, 6, requires_grad=True)
            loss = (x * scale).square().sum()
            scale.numpy()[2] = 7.0
            loss.backward()

        self.recorded(None, step)
        self.assertEqual(len([record for record in self.records if record["k"] == "external"]), 1)
        self.assertEqual(Replay("here").run().differ, [])

    def test_C1_only_the_updates_that_are_asked_for(self):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told(), retrograd.record("here", model=model, optimizer=optimizer, steps=range(2, 4)):
            for _ in range(6):
                optimizer.zero_grad()
                words(model).backward()
                optimizer.step()
                self.assertEqual(len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()), int(optimizer.state_dict()["param_groups"][0]["lr"] > 0 and _ in (1, 2)))
        manifest = json.loads(Path("here/retrograd.json").read_text())
        self.assertEqual(manifest["updates"], [2, 3])
        self.assertEqual(Replay("here").run().differ, [])

    def test_C8_only_recorded_updates_pay(self):
        from torch.nn.modules import module as modules

        def around():
            stack = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
            return len(stack), len(modules._global_forward_pre_hooks), len(modules._global_forward_hooks)

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = [around()]
        with told(), retrograd.record("here", model=model, optimizer=optimizer, steps=1):
            for _ in range(3):
                seen.append(around())
                optimizer.zero_grad()
                words(model).backward()
                optimizer.step()
        seen.append(around())
        self.assertEqual(seen, [(0, 0, 0), (0, 0, 0), (1, 1, 1), (0, 0, 0), (0, 0, 0)])

    def test_C8_no_storage_is_kept_alive(self):
        gone = []

        def step():
            x = torch.randn(1000, requires_grad=True)
            y = (x * 2).exp()
            weakref.finalize(y.untyped_storage(), gone.append, "y")
            y.sum().backward()
            del y
            gone.append("after")

        self.recorded(None, step)
        self.assertEqual(gone, ["y", "after"])

    def test_C1_an_exception_is_the_loops(self):
        with self.assertRaisesRegex(RuntimeError, "must match the size"), told():
            retrograd.record("here", lambda: torch.ones(3).add(1) + torch.ones(4))
        records = read_records("here")
        self.assertEqual([record["k"] for record in records[-2:]], ["error", "end"])
        self.assertEqual(records[-2]["op"], "aten.add.Tensor")
        self.assertIn("must match the size", json.loads(Path("here/retrograd.json").read_text())["error"])

    def test_C1_compiled_functions_run_eagerly(self):
        calls = []

        def backend(graph, inputs):
            calls.append(1)
            return graph.forward

        model = Net(dropout=0)
        compiled = torch.compile(model, backend=backend)
        ops = self.recorded(model, lambda: words(compiled).backward())
        self.assertEqual(calls, [])
        self.assertTrue(self.named(ops, "aten.addmm.default"))
        words(compiled).backward()
        self.assertTrue(calls)

    def test_C1_the_place_where_operators_compile_is_there(self):
        """Without it, branches of torch.cond get no gradients while they are recorded."""
        import torch._higher_order_ops.utils as utils

        own = utils.setup_compilation_env
        with told(), retrograd.record("here"):
            self.assertIsNot(utils.setup_compilation_env, own)
        self.assertIs(utils.setup_compilation_env, own)

    def test_C1_an_error_of_the_recorder_does_not_end_the_loop(self):
        from unittest import mock

        with told() as text, mock.patch("retrograd._recorded_op.hashed", side_effect=ValueError("unforeseen")), retrograd.record("here"):
            self.assertEqual((torch.ones(3) + 1).sum().item(), 6)
        self.assertIn("the recording ends at op", text.getvalue())

    def test_C15_private_and_readable_up_to_damage(self):
        model = Net()
        self.recorded(model, lambda: words(model).backward())
        self.assertEqual(stat.S_IMODE(os.stat("here").st_mode), 0o700)
        self.assertIn("the batch", self.text)
        whole = Path("here/ops.jsonl").read_bytes()
        Path("here/ops.jsonl").write_bytes(whole[: len(whole) * 2 // 3])
        replay = Replay("here").run()
        self.assertEqual(replay.differ, [])
        self.assertGreater(replay.ops, 10)

    def test_C15_without_source(self):
        self.recorded(None, lambda: torch.ones(3) + 1, source=False)
        self.assertFalse(any("code" in record for record in self.records))

    def test_C15_a_killed_process_leaves_what_it_had_recorded(self):
        script = ("import torch, retrograd, os, signal\n"
                  "with retrograd.record('killed'):\n"
                  "    x = torch.randn(8, 8)\n"
                  "    for i in range(700): x = torch.tanh(x @ x)\n"
                  "    os.kill(os.getpid(), signal.SIGKILL)\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertFalse(json.loads(Path("killed/retrograd.json").read_text())["complete"])
        replay = Replay("killed").run()
        self.assertGreaterEqual(replay.ops, 500)
        self.assertEqual(replay.differ, [])


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise LookupError("of the user")


FULL = """
import resource, signal, torch, retrograd
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))  # a disk that is full
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with retrograd.record("full", model=model, optimizer=optimizer):
    for _ in range(40):
        for _ in range(20):
            model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
print("the loop has ended", model.weight.isfinite().all().item())
"""

INTERRUPTED = """
import torch, retrograd
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
optimizer = torch.optim.AdamW(model.parameters())
def step():
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
step()  # PyTorch imports much then, and what it imports may drop an interrupt
try:
    with retrograd.record("interrupted", model=model, optimizer=optimizer):
        print("begun", flush=True)
        while True:
            step()
except KeyboardInterrupt as error:
    print(type(error).__name__, flush=True)
"""


class Ends(InFolder):
    """However a loop ends, its exception is its own, and what was recorded opens."""

    def opens(self, folder, least):
        replay = Replay(folder).run()
        self.assertEqual(replay.differ, [])
        self.assertGreaterEqual(replay.ops, least)
        if PROGRAM:
            code, text = program("trace", folder)
            self.assertEqual(code, 0, text)
            code, text = program("check", folder)
            self.assertIn(code, (0, 1, 2), text)
            self.assertIn(" 0 differ", text)
        return json.loads((Path(folder) / "retrograd.json").read_text())

    def test_C1_an_exception_in_backward(self):
        model = Net()
        with self.assertRaisesRegex(LookupError, "of the user"), told():
            retrograd.record("here", lambda: Fails.apply(model(torch.randn(4, 6))).sum().backward(), model=model)
        manifest = self.opens("here", 5)
        self.assertEqual((manifest["complete"], manifest["error"], manifest["notes"]), (True, "LookupError: of the user", []))
        self.assertEqual(torch.utils._python_dispatch._get_current_dispatch_mode_stack(), [])

    def test_C15_interrupted_from_the_keyboard(self):
        """At any moment, also within the recorder."""
        for wait in (0.05, 0.23):
            process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "begun\n")
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            self.addCleanup(process.kill)
            out, err = process.communicate(timeout=120)
            self.assertEqual((process.returncode, out), (0, "KeyboardInterrupt\n"), err)
            manifest = self.opens("interrupted", 0)
            self.assertEqual((manifest["complete"], manifest["error"]), (True, "KeyboardInterrupt"))
            shutil.rmtree("interrupted")

    def test_C15_no_code_of_python_runs_where_a_tensor_goes(self):
        """An interrupt from the keyboard that comes in a callback of a weak reference would be printed and lost."""
        seen = []
        with told(), retrograd.record("here") as recording:
            kept = torch.ones(3) + 1
            seen += [held.__callback__ for held, _ in recording._mode._storages.values() if held() is not None]
            del kept
        self.assertTrue(seen)
        self.assertEqual({type(callback) for callback in seen}, {types.BuiltinMethodType})

    def test_C15_a_full_disk(self):
        """The first file that does not fit is the stream, or already the manifest and the data."""
        for limit, least in ((400_000, 200), (20_000, 0), (700, 0)):
            done = subprocess.run([sys.executable, "-c", FULL.replace("ROOM", str(limit))], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "the loop has ended True\n"), done.stderr)
            self.assertIn("File too large", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            if limit > 700:
                self.assertFalse(self.opens("full", least)["complete"])
            shutil.rmtree("full")

    def test_C1_modules_without_sizes_yet(self):
        model = torch.nn.Sequential(torch.nn.LazyLinear(5), torch.nn.ReLU(), torch.nn.LazyLinear(3))
        with told():
            retrograd.record("here", lambda: model(torch.randn(4, 6)).sum().backward(), model=model)
        self.assertEqual(self.opens("here", 8)["notes"], [])


RANKS = """
import os, sys, torch, torch.distributed as dist, retrograd
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))
kind = sys.argv[2]
if kind == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
elif kind == "tensor":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    parallelize_module(model, init_device_mesh("cpu", (2,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
else:
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (2,))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
torch.manual_seed(100 + rank)
optimizer = torch.optim.AdamW(model.parameters())
with retrograd.record("ranks", model=model, optimizer=optimizer):
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
dist.barrier()
"""


class Together:
    """Replays two ranks of DistributedDataParallel: an allreduce has what both recordings give."""

    def __init__(self, folders):
        self.replays = [Replay(folder) for folder in folders]

    def run(self):
        """One rank runs to its next collective, then the other; what arrives is computed from both."""
        iterators = [self.steps(replay) for replay in self.replays]
        while True:
            met = [next(iterator, None) for iterator in iterators]
            if met[0] is None:
                assert met[1] is None
                return self
            (a, b), name = met, met[0]["op"]
            assert name == met[1]["op"], met
            tensors = [self.leaves(replay, record) for replay, record in zip(self.replays, met)]
            if "allreduce" in name:
                for x, y in zip(*tensors):
                    total = x + y
                    x.copy_(total)
                    y.copy_(total)
            elif "broadcast" in name:
                for x, y in zip(*tensors):
                    y.copy_(x)
            elif "allgather" in name:
                for replay, record in zip(self.replays, met):
                    outs, own = replay.value(record["in"][0])[0], [self.replays[i].value(met[i]["in"][1])[0] for i in range(2)]
                    for out, value in zip(outs, own):
                        out.copy_(value)
            else:
                raise AssertionError(name)

    def leaves(self, replay, record):
        return [one for one in replay.value(record["in"][0]) if isinstance(one, torch.Tensor)]

    def steps(self, replay):
        drawn = torch.get_rng_state()  # each rank has a generator of its own
        for record in replay.records:
            if record["k"] == "op" and record["op"].startswith("c10d."):
                replay.ops += 1
                yield record
            else:
                torch.set_rng_state(drawn)
                replay.step(record)
                drawn = torch.get_rng_state()


class Ranks(InFolder):
    def record(self, kind):
        environment = dict(os.environ, MASTER_ADDR="127.0.0.1", WORLD_SIZE="2", OMP_NUM_THREADS="1")
        ranks = [subprocess.Popen([sys.executable, "-c", RANKS, str(self.folder / "store"), kind], env=dict(environment, RANK=str(rank)), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for rank in range(2)]
        texts = [rank.communicate(timeout=300)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], "\n".join(texts))
        return [self.folder / "ranks" / f"rank{rank}" for rank in range(2)]

    def test_C7_ddp(self):
        folders = self.record("ddp")
        together = Together(folders).run()
        for replay in together.replays:
            self.assertEqual(replay.differ, [])
            self.assertGreater(replay.checked, 100)
            collectives = [record for record in replay.records if record["k"] == "op" and record["op"].startswith("c10d.")]
            self.assertTrue(collectives)
            self.assertEqual({tuple(record["group"]) for record in collectives}, {(0, 1)})
            self.assertTrue([record for record in replay.records if record["k"] == "arrived"])

    def test_C7_fsdp2_is_recorded_on_both_ranks(self):
        self.is_recorded_on_both("fsdp2")

    def test_C7_tensor_parallel_is_recorded_on_both_ranks(self):
        self.is_recorded_on_both("tensor")

    def is_recorded_on_both(self, kind):
        """The program runs each rank again alone, with what the collectives gave. It derives no gradient below the subclass yet, which is no pass (K1)."""
        for folder in self.record(kind):
            manifest = json.loads((folder / "retrograd.json").read_text())
            self.assertEqual((manifest["complete"], manifest["ranks"], manifest["notes"]), (True, 2, []))
            self.assertTrue([record for record in read_records(folder) if record["k"] == "op" and "c10d" in record["op"]])
            if PROGRAM:
                code, text = program("check", folder)
                self.assertIn(code, (0, 2), text)
                self.assertIn(", 0 differ", text)
                self.assertNotIn("fault:", text)


if __name__ == "__main__":
    unittest.main()
