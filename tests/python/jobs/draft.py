"""Draws the text of a job: a small training function, line by line, each tried on real tensors before it is kept."""

import random
import re
from collections import Counter

import torch

import features
import functions
import ops

LARGEST = 40.0  # of an element that a line may give


class Draft:
    """A job under construction. `text()` is its source; the tensors that it starts from are `module`, `batch`.

    Values have names that are never used twice. `scope` lists the names that the next line may read, `env` has their
    tensors. Lines run here as they are drawn, on copies, under the modes of the region that they are in.
    """

    def __init__(self, seed, attempt=0):
        self.random = random.Random(f"{seed}.{attempt}")
        torch.manual_seed(self.random.randrange(2**31))
        self.seed = seed
        self.features, self.ops = Counter(), Counter()
        self.dtype = torch.float64 if self.chance(0.4) else torch.float32
        self.size = self.random.choice([5, 7])  # the batch, which is a symbol where the sizes are dynamic
        self.form = self.random.choice(["module", "module", "function", "model"])
        self.prefix = {"module": "self.", "function": "", "model": "model.net."}[self.form]
        self.backend = self.random.choice(["aot_eager", "aot_eager_decomp_partition", "inductor"])
        self.budget = self.random.choice([1.0] * 6 + [0.75, 0.5, 0.25, 0.0])
        self.dynamic = self.random.choice([None, None, None, None, "dynamic", "marked", "again"])
        self.differentiable = True  # without finite differences where it is not: its backward then differs from the derivative
        self.has_draws = False
        self.lines, self.indent, self.count = [], 2 if self.form == "module" else 1, 0
        self.env, self.scope, self.used = functions.namespace(), [], set()
        self.parameters, self.buffers, self.aliases, self.frozen = {}, {}, {}, set()
        self.batch, self.with_gradient = {}, set()
        self.mode = "plain"  # or "no_grad", "autocast"
        self.outputs = []
        for i in range(self.random.randint(1, 2)):
            gradient = i == 0 and self.chance(0.6)
            self.input(self.tensor(self.size, self.random.choice([2, 3, 4, 6])), gradient)

    # Draws of the generator.

    def chance(self, p):
        return self.random.random() < p

    def scalar(self):
        return self.random.choice([-1.75, -1.25, -0.75, -0.5, 0.25, 0.375, 0.5, 0.75, 1.25, 1.5, 2.0])

    def tensor(self, *sizes):
        return torch.randn(sizes, dtype=self.dtype)

    # Where values come from.

    def fresh(self, stem="v"):
        self.count += 1
        return f"{stem}{self.count}"

    def input(self, tensor, gradient=False):
        name = f"x{len(self.batch)}"
        self.batch[name] = tensor
        if gradient:
            self.with_gradient.add(name)
        self.env[name] = tensor.clone().requires_grad_(gradient)
        if tensor.dtype == self.dtype:
            self.scope.append(name)
        return name

    def parameter(self, *sizes):
        """The expression of a parameter of these sizes; an old one at times, which is then used twice."""
        same = [name for name, tensor in self.parameters.items() if list(tensor.shape) == list(sizes)]
        if same and self.chance(0.35):
            self.features["parameter used twice"] += 1
            return self.prefix + self.random.choice(same)
        name = f"p{len(self.parameters)}"
        tensor = self.tensor(*sizes) * (0.7 if len(sizes) > 1 else 0.4)
        self.parameters[name] = tensor
        if self.chance(0.12):
            self.frozen.add(name)
            self.features["frozen parameter"] += 1
        self.bind(name, torch.nn.Parameter(tensor.clone(), requires_grad=name not in self.frozen))
        if self.form != "function" and self.chance(0.1):
            self.aliases[f"t{len(self.aliases)}"] = name
            self.bind(f"t{len(self.aliases) - 1}", self.get(name))
            self.features["tied parameter"] += 1
            return self.prefix + f"t{len(self.aliases) - 1}"
        return self.prefix + name

    def buffer(self, tensor):
        name = f"b{len(self.buffers)}"
        self.buffers[name] = tensor
        self.bind(name, tensor.clone())
        return self.prefix + name

    def bind(self, name, tensor):
        if self.form == "function":
            self.env[name] = tensor
            return
        base = self.env.setdefault("self" if self.form == "module" else "model", functions.Bag())
        if self.form == "model":
            base.net = base.__dict__.get("net") or functions.Bag()
            base = base.net
        setattr(base, name, tensor)

    def get(self, name):
        return eval(self.prefix + name, self.env)

    # Lines.

    def run(self, line):
        with functions.mode_of(self.mode):
            exec(line, self.env)

    def emit(self, line):
        self.lines.append("    " * self.indent + line)

    def say(self, line):
        """A line that gives no value: kept where it runs. True where it is."""
        try:
            self.run(line)
        except (RuntimeError, IndexError, TypeError, ValueError, AttributeError):
            return False
        self.emit(line)
        return True

    def add(self, expression, stem="v", inside=True):
        """A line `name = expression`; the name, or None where it does not run or what comes out is unfit."""
        name = self.fresh(stem)
        try:
            self.run(f"{name} = {expression}")
        except (RuntimeError, IndexError, TypeError, ValueError, AttributeError):
            self.env.pop(name, None)
            return None
        value = self.env[name]
        if not self.fits(value):
            self.env.pop(name)
            return None
        self.emit(f"{name} = {expression}")
        if inside and value.is_floating_point():
            self.scope.append(name)
        return name

    @staticmethod
    def fits(value):
        if not isinstance(value, torch.Tensor) or value.numel() == 0 or value.numel() > 300 or value.dim() > 4:
            return False
        value = value.detach()
        if not value.is_floating_point():
            return True
        return bool(torch.isfinite(value).all()) and bool(value.abs().max() < LARGEST)

    def shape(self, name):
        return list(self.env[name].shape)

    def pick(self, fits=lambda tensor: True):
        """A value in scope, later ones first; None where none fits."""
        found = [name for name in self.scope if fits(self.env[name])]
        if not found:
            return None
        unused = [name for name in found if name not in self.used]
        name = (
            self.random.choice(unused)
            if unused and self.chance(0.6)
            else found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))]
        )
        self.used.add(name)
        return name

    def rows(self):
        """A value of sizes [batch, d]."""
        name = self.pick(lambda t: t.dim() == 2 and t.shape[0] == self.size)
        return name or self.pick(lambda t: t.dim() == 2) or self.add(f"{self.scope[0]} * 1.5")

    def like(self, name):
        return self.pick(lambda t: t.shape == self.env[name].shape)

    def plain(self, count):
        """So many ops without anything special."""
        made = None
        for _ in range(count * 3):
            name = ops.one(self)
            if name is not None:
                made = name
                count -= 1
            if count == 0:
                break
        return made

    def unread(self, names, after=0):
        """Those of the names that no line behind their own reads."""
        text = "\n".join(self.lines[after:])
        return [name for name in names if len(re.findall(rf"\b{name}\b", text)) <= (0 if name in self.batch else 1)]

    # The whole.

    def draw(self):
        wanted = [feature for feature in features.ALL if self.chance(feature.probability)]
        self.random.shuffle(wanted)
        wanted = wanted[:4]
        self.plain(self.random.randint(1, 3))
        for feature in wanted:
            feature.draw(self)
            self.plain(self.random.randint(0, 2))
        self.finish()
        if self.budget < 1:
            self.features["memory budget below 1"] += 1
        if self.dynamic:
            self.features["dynamic sizes"] += 1
        return self

    def finish(self):
        """What is returned: a loss, or several outputs of which some are not differentiable."""
        ends = [name for name in self.unread(self.scope) if name not in self.batch]
        if not any(self.env[name].requires_grad for name in ends):
            ends += [name for name in self.scope if self.env[name].requires_grad and name not in self.batch][-1:]
        if not any(self.env[name].requires_grad for name in ends):
            ends += [
                self.add(f"F.linear({self.rows()}, {self.parameter(2, self.shape(self.rows())[-1])})") or self.scope[-1]
            ]
        if self.chance(0.7):
            terms = [self.loss_of(name) for name in ends]
            loss = self.fresh("loss")
            self.emit(f"{loss} = {' + '.join(terms)}")
            self.outputs = [loss]
        else:
            self.outputs = ends
            self.features["several outputs"] += len(ends) > 1
        if self.chance(0.15):
            features.extra_output(self)
        self.emit(f"return {', '.join(self.outputs)}")

    def loss_of(self, name):
        kind = self.random.randrange(6)
        shape = self.shape(name)
        if kind == 0:
            return f"{name}.square().mean()"
        if kind == 1:
            return f"F.mse_loss({name}, torch.zeros_like({name}))"
        if kind == 2 and len(shape) == 2:
            target = self.input(torch.randint(0, shape[1], (self.size,)))
            if shape[0] == self.size:
                self.ops["cross_entropy"] += 1
                return f"F.cross_entropy({name}, {target})"
        if kind == 3:
            return f"F.smooth_l1_loss({name}, torch.ones_like({name}))"
        if kind == 4:
            return f"torch.logsumexp({name}.flatten(), 0)"
        return f"{name}.sum() * {self.scalar()}"

    def text(self):
        dtype = str(self.dtype)
        lines = [functions.HEADER, ""]
        names = list(self.batch)
        if self.form == "function":
            names += [*self.parameters, *self.buffers]
            lines.append(f"def step({', '.join(names)}):")
            return "\n".join(lines + self.lines) + "\n"
        lines += ["class Net(torch.nn.Module):", "    def __init__(self):", "        super().__init__()"]
        for name, tensor in self.parameters.items():
            grad = "" if name not in self.frozen else ", requires_grad=False"
            lines.append(
                f"        self.{name} = torch.nn.Parameter(torch.zeros({list(tensor.shape)}, dtype={dtype}){grad})"
            )
        for alias, name in self.aliases.items():
            lines.append(f"        self.{alias} = self.{name}")
        for name, tensor in self.buffers.items():
            lines.append(
                f"        self.register_buffer('{name}', torch.zeros({list(tensor.shape)}, dtype={tensor.dtype}))"
            )
        if not self.parameters and not self.buffers:
            lines.append("        pass")
        if self.form == "module":
            lines += ["", f"    def forward({', '.join(['self', *names])}):"]
        else:
            lines += [
                "",
                "",
                "class Model(torch.nn.Module):",
                "    def __init__(self):",
                "        super().__init__()",
                "        self.net = Net()",
                "",
                "",
                f"def step({', '.join(['model', *names])}):",
            ]
        return "\n".join(lines + self.lines) + "\n"
