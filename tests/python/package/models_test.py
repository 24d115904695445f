"""Models of transformers, timm and torchvision: 20 by capture, 10 with graph breaks by torch.compile(backend="retrograd"). All open and pass `check` against eager.

RETROGRAD_FEW=1: five of them; RETROGRAD_MODELS="gpt2 bert": these."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"

from support import InFolder, PROGRAM, retrograd, told, torch, unittest
from retrograd import _backend

SMALL = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=60, max_position_embeddings=32)


def language(name, **more):
    """A model of transformers by the name of its architecture, with random weights."""
    import transformers

    def make():
        kind = getattr(transformers, name)
        config = kind.config_class(**{**SMALL, **more})
        ids = torch.randint(3, 50, (2, 9))
        return kind(config), (), {"input_ids": ids, **({"labels": ids} if "Causal" in name or "MaskedLM" in name else {})}

    return make


def gpt2():
    import transformers

    ids = torch.randint(0, 50, (2, 9))
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2)), (), {"input_ids": ids, "labels": ids}


def t5():
    import transformers

    ids = torch.randint(0, 50, (2, 9))
    config = transformers.T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config), (), {"input_ids": ids, "labels": ids}


def image(library, name, size=32, **more):
    def make():
        if library == "timm":
            import timm

            model = timm.create_model(name, num_classes=5, **more)
        else:
            import torchvision

            model = getattr(torchvision.models, name)(num_classes=5, **more)
        return model.eval(), (torch.randn(2, 3, size, size),), {}

    return make


CAPTURED = {
    "gpt2": gpt2, "t5": t5,
    "llama": language("LlamaForCausalLM"), "mistral": language("MistralForCausalLM", num_key_value_heads=2), "qwen2": language("Qwen2ForCausalLM", num_key_value_heads=2), "gemma": language("GemmaForCausalLM", head_dim=8, num_key_value_heads=1),
    "phi": language("PhiForCausalLM"), "bert": language("BertForMaskedLM"), "roberta": language("RobertaForMaskedLM"), "electra": language("ElectraForMaskedLM", embedding_size=16),
    "resnet18": image("torchvision", "resnet18"), "mobilenet_v3_small": image("torchvision", "mobilenet_v3_small"), "squeezenet1_1": image("torchvision", "squeezenet1_1"),
    "shufflenet_v2_x0_5": image("torchvision", "shufflenet_v2_x0_5"), "mnasnet0_5": image("torchvision", "mnasnet0_5"),
    "resnet10t": image("timm", "resnet10t"), "convnext_atto": image("timm", "convnext_atto"), "mixer_s32_224": image("timm", "mixer_s32_224", 224),
    "vit_tiny_patch16_224": image("timm", "vit_tiny_patch16_224", 32, img_size=32), "ghostnet_050": image("timm", "ghostnet_050"),
}


class Broken(torch.nn.Module):
    """A model with a graph break behind each of some of its submodules, as a print or a logged number makes one."""

    def __init__(self, model, kind):
        super().__init__()
        self.model = model
        for one in model.modules():
            if kind in type(one).__name__:
                one.register_forward_hook(self.look)

    def look(self, module, args, output):
        torch._dynamo.graph_break()

    def forward(self, *args, **kwargs):
        return self.model(*args, **kwargs)


BROKEN = {
    "gpt2": (gpt2, "GPT2MLP"), "llama": (language("LlamaForCausalLM"), "LlamaMLP"), "mistral": (language("MistralForCausalLM", num_key_value_heads=2), "MistralMLP"),
    "qwen2": (language("Qwen2ForCausalLM", num_key_value_heads=2), "Qwen2Attention"), "bert": (language("BertForMaskedLM"), "BertIntermediate"), "phi": (language("PhiForCausalLM"), "PhiMLP"),
    "resnet18": (image("torchvision", "resnet18"), "MaxPool2d"), "squeezenet1_1": (image("torchvision", "squeezenet1_1"), "MaxPool2d"),
    "resnet10t": (image("timm", "resnet10t"), "MaxPool2d"), "vit": (image("timm", "vit_tiny_patch16_224", 32, img_size=32), "PatchEmbed"),
}

few = os.environ.get("RETROGRAD_FEW")
named = os.environ.get("RETROGRAD_MODELS", "").split()


def chosen(all_of_them, some):
    return {name: make for name, make in all_of_them.items() if (name in named if named else not few or name in some)}


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Models(InFolder):
    def test_capture(self):
        for name, make in chosen(CAPTURED, ("gpt2", "resnet18", "vit_tiny_patch16_224")).items():
            with self.subTest(name):
                model, args, kwargs = make()
                folder = retrograd.capture(model, *args, path=name, **kwargs)
                self.check(folder.path)
                print(f"capture {name}: passes", flush=True)

    def test_backend(self):
        for name, (make, kind) in chosen(BROKEN, ("gpt2", "resnet18")).items():
            with self.subTest(name):
                torch._dynamo.reset()
                _backend._recordings.clear()
                model, args, kwargs = make()
                if hasattr(model, "config"):
                    model.config.use_cache = False
                with told() as text:
                    output = torch.compile(Broken(model, kind), backend="retrograd", options={"path": name})(*args, **kwargs)
                    loss = output.loss if hasattr(output, "loss") else output.square().mean()
                    loss.backward()
                folder = retrograd.Folder(self.folder / name)
                manifest = folder.manifest
                self.assertGreaterEqual(len(manifest["graphs"]), 2)
                self.assertEqual(manifest["cannot_replay"], [])
                self.check_all(folder)
                print(f"backend {name}: {len(manifest['graphs'])} graphs pass", flush=True)


if __name__ == "__main__":
    unittest.main()
