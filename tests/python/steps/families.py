"""Models of transformers, as tests/python/architecture_list.py makes them, in the loops that people write."""

import re
import sys
import tempfile
from pathlib import Path

import torch
from loop import UPDATES, Loop, optimizer_of, schedule_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import architecture_list

TRAINERS = ("adamw_torch", "adamw_torch_fused", "adafactor", "sgd", "rmsprop", "adagrad")


def family(name):
    """The family of a class, as `Llama` of LlamaForCausalLM."""
    return re.sub(r"(For[A-Z].*|LMHeadModel|WithLMHeadModel|MTModel|Model|Backbone)$", "", name)


def drawn(draw, count):
    """So many architectures of different families."""
    listed = [one for one in architecture_list.architectures() if one.make.func is architecture_list.from_transformers]
    draw.shuffle(listed)
    return list({family(one.name): one for one in listed}.values())[:count]


def by_name(name):
    return next(one for one in architecture_list.architectures() if one.name == name)


def with_labels(name, inputs, draw):
    """What the model's own loss takes, where it has one."""
    made = {key: make() for key, make in inputs.items()}
    if "CTC" in name:
        return made | {"labels": torch.randint(3, 90, (2, 5))}
    if "CausalLM" in name or "LMHead" in name or "MaskedLM" in name:
        return made | {"labels": made["input_ids"].clone()}
    if "ConditionalGeneration" in name and "decoder_input_ids" in made:
        return made | {"labels": made["decoder_input_ids"].clone()}
    if "ImageClassification" in name:
        return made | {"labels": torch.randint(0, 2, (len(next(iter(made.values()))),))}
    return made


def leaves(value):
    """The tensors of a model's output."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from leaves(one)


def loss_of(output):
    loss = getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss.mean()
    ends = [one for one in leaves(output) if one.is_floating_point() and one.requires_grad and one.numel()]
    return sum(one.float().square().mean() for one in ends)


def make(draw, architecture):
    model, _ = architecture.make()
    model.train()
    inputs = architecture.make.args[1]
    said = {"model": architecture.name}
    if getattr(model, "supports_gradient_checkpointing", False) and draw.random() < 0.5:
        reentrant = draw.random() < 0.4
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
        said["checkpointing"] = "reentrant" if reentrant else "not reentrant"
    said["accumulation"] = draw.choice((1, 1, 2, 3))
    how = trainer if draw.random() < 0.45 else plain
    said["loop"] = how.__name__
    return how(draw, model, architecture.name, inputs, said)


def plain(draw, model, name, inputs, said):
    optimizer, said["optimizer"] = optimizer_of(draw, model.parameters())
    in_bfloat16, scaled, clipped = draw.random() < 0.4, draw.random() < 0.3, draw.choice((None, "norm", "value"))
    said |= {"autocast": in_bfloat16, "scaler": scaled, "clipping": clipped}
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0, enabled=scaled)
    schedule = schedule_of(draw, optimizer)

    def run(around):
        losses = []
        for number in range(UPDATES):
            with around(number):
                optimizer.zero_grad()
                for _ in range(said["accumulation"]):
                    with torch.autocast("cpu", torch.bfloat16, enabled=in_bfloat16):
                        loss = loss_of(model(**with_labels(name, inputs, draw))) / said["accumulation"]
                    scaler.scale(loss).backward()
                    losses.append(loss.item())
                scaler.unscale_(optimizer)
                if clipped == "norm":
                    losses.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
                elif clipped == "value":
                    torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
                scaler.step(optimizer)
                scaler.update()
                schedule.step()
        return losses

    return Loop(model, [optimizer], run, said)


def trainer(draw, model, name, inputs, said):
    import transformers

    said |= {"optimizer": draw.choice(TRAINERS), "autocast": draw.random() < 0.4, "clipping": draw.choice((0.0, 1.0))}
    said["schedule"] = draw.choice(("linear", "cosine", "constant_with_warmup"))
    size = draw.choice((1, 2))

    class Own(transformers.Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            output = model(**inputs)
            return (loss_of(output), output) if return_outputs else loss_of(output)

    def run(around):
        many = [with_labels(name, inputs, draw) for _ in range(UPDATES * size * said["accumulation"])]
        data = [{key: value[0] for key, value in one.items()} for one in many]
        arguments = transformers.TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            max_steps=UPDATES,
            per_device_train_batch_size=size,
            gradient_accumulation_steps=said["accumulation"],
            bf16=said["autocast"],
            max_grad_norm=said["clipping"],
            optim=said["optimizer"],
            lr_scheduler_type=said["schedule"],
            learning_rate=1e-3,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            gradient_checkpointing="checkpointing" in said,
            gradient_checkpointing_kwargs={"use_reentrant": said.get("checkpointing") == "reentrant"},
        )
        kind = Own if "labels" not in data[0] or draw.random() < 0.3 else transformers.Trainer
        owner = kind(model=model, args=arguments, train_dataset=data)
        owner.train()
        return [entry.get("loss", entry.get("train_loss")) for entry in owner.state.log_history]

    return Loop(model, [], run, said)
