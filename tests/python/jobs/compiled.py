"""Compiles a job to a log, runs its graphs op by op, and records what they draw."""

import contextlib
import copy
import functools
import hashlib
import json

import torch
import torch._dynamo
import torch._functorch.config
import torch._inductor.compile_fx
import torch._logging._internal
import torch._logging.structured
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.output_code import MockFXGraphCacheOutput

import functions

torch._dynamo.config.trace_autograd_ops = True
torch._dynamo.config.cache_size_limit = 64

# Ops that draw, by what the recording keeps of them.
DRAWS = {
    "native_dropout": "mask",
    "bernoulli": "bernoulli",
    "rand": "uniform",
    "rand_like": "uniform",
    "uniform": "uniform",
    "randn": "normal",
    "randn_like": "normal",
    "normal_functional": "normal",
    "randperm": "index",
    "randint": "index",
    "randint_like": "index",
    "rrelu_with_noise_functional": "noise",
    "rrelu_with_noise": "noise",
}


def kind_of_draw(target):
    if target is torch.ops.prims.inductor_random.default or target is torch.ops.prims.inductor_randint.default:
        return "inductor"
    if isinstance(target, torch._ops.OpOverload) and target.namespace == "aten":
        return DRAWS.get(target._schema.name.split("::")[1])
    return None


class Draw:
    """What an op drew: a mask of what is kept, numbers of [0, 1), normal numbers, zeros and ones, positions, or
    slopes."""

    def __init__(self, kind, value):
        self.kind, self.value = kind, value.detach().clone()


class GraphRun(torch.fx.Interpreter):
    """Runs a graph as `inner_compile` and the eager backends would; `draws` gets what it draws, `unlike` counts
    draws that no state ties."""

    def __init__(self, module, draws):
        super().__init__(module)
        self.draws, self.loose = draws, 0

    def call_function(self, target, args, kwargs):
        if target in (torch.ops.prims.inductor_seeds.default, torch.ops.prims.inductor_seed.default):
            self.loose += 1
        if target is torch.ops.prims.inductor_random.default:
            size, seed, mode = args
            generator = torch.Generator().manual_seed(int(seed) % 2**62)
            value = getattr(torch, mode)(size, generator=generator, dtype=torch.float32)
            self.draws.append(Draw("uniform" if mode == "rand" else "normal", value))
            return value
        if target is torch.ops.prims.inductor_randint.default:
            low, high, size, seed = args
            value = torch.randint(low, high, size, generator=torch.Generator().manual_seed(int(seed) % 2**62))
            self.draws.append(Draw("index", value))
            return value
        result = super().call_function(target, args, kwargs)
        run = result
        if getattr(target, "__name__", "") == "run_and_save_rng_state":
            target, run = args[0], result[1]
        kind = kind_of_draw(target)
        if kind is not None:
            self.loose += 1
            self.draws.append(
                Draw(
                    kind,
                    (
                        run[1]
                        if kind in ("mask", "noise") and isinstance(run, tuple)
                        else args[1] if kind == "noise" else run
                    ),
                )
            )
        return result


class Runner:
    """A compiled graph; `module` may be exchanged."""

    def __init__(self, module, job, backward):
        self.module, self.job, self.backward, self.original = module, job, backward, module
        self._boxed_call = True

    def __call__(self, args):
        run = GraphRun(self.module, self.job.redraws if self.backward else self.job.draws)
        given = list(args)
        args.clear()
        result = run.run(*given)
        if self.backward:
            self.job.loose += run.loose
        return result


class Compiled:
    """A job that is compiled to a log: `forwards` and `backwards` are its graphs in the order of compiling."""

    def __init__(self, draft, folder):
        self.draft, self.folder = draft, folder
        self.draws, self.redraws, self.loose = [], [], 0
        self.forwards, self.backwards = [], []

    def make(self, module, args, backward=False):
        runner = Runner(module, self, backward)
        (self.backwards if backward else self.forwards).append(runner)
        return runner

    def inner_compile(self, module, args, is_backward=False, **_):
        return MockFXGraphCacheOutput(gm=self.make(module, args, is_backward))

    def backend(self, module, inputs):
        forward, backward = self.make, functools.partial(self.make, backward=True)
        if self.draft.backend == "inductor":
            return torch._inductor.compile_fx.compile_fx(module, inputs, inner_compile=self.inner_compile)
        if self.draft.backend == "aot_eager":
            return aot_autograd(
                fw_compiler=forward,
                bw_compiler=backward,
                partition_fn=min_cut_rematerialization_partition,
                keep_inference_input_mutations=True,
            )(module, inputs)
        return aot_autograd(
            fw_compiler=forward,
            bw_compiler=backward,
            decompositions=torch._inductor.compile_fx.select_decomp_table(),
            partition_fn=functools.partial(min_cut_rematerialization_partition, compiler="inductor"),
        )(module, inputs)

    def compile(self, function):
        dynamic = True if self.draft.dynamic == "dynamic" else None
        return torch.compile(function, backend=self.backend, dynamic=dynamic)


@contextlib.contextmanager
def log_in(folder):
    """The log of what is compiled inside goes into the folder, as if the process had begun here."""
    handler = torch._logging._internal.LOG_TRACE_HANDLER
    handler._close_stream()
    handler.root_dir = str(folder)
    torch._logging.structured.INTERN_TABLE.clear()
    torch._dynamo.reset()
    try:
        yield
    finally:
        handler._close_stream()
        torch._dynamo.reset()


class Job:
    """The functions of a draft's text, its state, and one training step of them."""

    def __init__(self, draft, path):
        self.draft = draft
        self.names = {"__name__": f"job_{draft.seed}", "__file__": str(path)}
        exec(compile(draft.text(), str(path), "exec"), self.names)
        self.cotangents = {}

    def of(self, names):
        """This job with other functions of the same text."""
        other = copy.copy(self)
        other.names = names
        return other

    def state(self, dtype=None, move=None):
        """A copy of what the job starts from: the module or None, and the leaves and the batch by name."""

        def cast(tensor):
            tensor = tensor.clone()
            if not tensor.is_floating_point():
                return tensor
            tensor = tensor.to(dtype or tensor.dtype)
            return tensor if move is None else move(tensor)

        draft = self.draft
        batch = {name: cast(tensor).requires_grad_(name in draft.with_gradient) for name, tensor in draft.batch.items()}
        if draft.form == "function":
            weights = {
                name: cast(tensor).requires_grad_(name not in draft.frozen) for name, tensor in draft.parameters.items()
            }
            buffers = {name: cast(tensor) for name, tensor in draft.buffers.items()}
            return None, {**batch, **weights, **buffers}
        module = self.names["Net" if draft.form == "module" else "Model"]()
        net = module if draft.form == "module" else module.net
        for name, tensor in draft.parameters.items():
            getattr(net, name).data = cast(tensor)
        for name, tensor in draft.buffers.items():
            setattr(net, name, cast(tensor))
        return module, batch

    def call(self, module, arguments, compile=None):
        """What is called, and with what: through `compile` where that is given."""
        compile = compile or (lambda f: f)
        if self.draft.form == "module":
            return compile(module), list(arguments.values())
        first = [] if module is None else [module]
        return compile(self.names["step"]), first + list(arguments.values())

    def leaves(self, module, arguments):
        found = {} if module is None else dict(module.named_parameters())
        found |= arguments
        return {name: tensor for name, tensor in found.items() if tensor.requires_grad}

    def loss(self, outputs):
        """What the step differentiates: the output itself where it is one number, else a sum with fixed weights."""
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        total = 0
        for i, output in enumerate(outputs):
            if not isinstance(output, torch.Tensor) or not output.requires_grad:
                continue
            if output.dim() == 0:
                total = total + output
                continue
            weight = self.cotangents.setdefault(
                (i, output.shape), torch.randint(-8, 9, output.shape, generator=torch.Generator().manual_seed(i)) / 8
            )
            total = total + (output * weight.to(output.dtype)).sum()
        return total

    def step(self, called, arguments, leaves):
        """(loss, outputs, gradients by leaf); a gradient of None is zeros."""
        outputs = called(*arguments)
        loss = self.loss(outputs)
        for leaf in leaves.values():
            leaf.grad = None
        loss.backward()
        gradients = {name: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for name, leaf in leaves.items()}
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return loss.detach(), [o.detach().clone() for o in outputs], gradients


def weights_of(module):
    return (
        {}
        if module is None
        else {name: tensor.detach().clone() for name, tensor in module.state_dict(keep_vars=False).items()}
    )


def text_of(module):
    """A graph as aot_autograd writes it to the log."""
    return module.print_readable(print_output=False, include_stride=True, include_device=True, expanded_def=True)


def exchanged(log, old, new):
    """The log with another payload in the place of this one. Throws LookupError where it is not there once."""
    before = "".join(f"\t{line}\n" for line in old.split("\n"))
    after = "".join(f"\t{line}\n" for line in new.split("\n"))
    if log.count(before) != 1 or log.count(digest(old)) != 1:
        raise LookupError("the backward graph is not once in the log")
    return log.replace(before, after).replace(digest(old), digest(new))


def compiles_of(log):
    """The compiles with a backward graph: their names ("0/0") by the digest of that graph's text."""
    names = {}
    for line in log.splitlines():
        if '"aot_backward_graph": {}' in line:
            record = json.loads(line[line.index("{") :])
            attempt = f"_{record['attempt']}" if record.get("attempt") else ""
            names[record["has_payload"]] = f"{record['frame_id']}/{record['frame_compile_id']}{attempt}"
    return names


def digest(text):
    return hashlib.md5(text.encode()).hexdigest()
