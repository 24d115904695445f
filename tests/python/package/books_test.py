"""K4, K6, K7, K8, K13: what check says of loops with a fault that people make, from the books of one recording. Each loop is run as it is written, and recorded."""
import copy
import json
import unittest

from support import PROGRAM, InFolder, retrograd, run, told, torch

nn, F = torch.nn, torch.nn.functional


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.d = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.1)
        self.b, self.c = nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        self.hidden = self.d(self.n(self.a(x)).tanh())
        return self.c(self.b(self.hidden).tanh())


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Books(InFolder):
    def setUp(self):
        super().setUp()
        self.model = Small()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        self.x, self.y = torch.randn(4, 6, 8), torch.randint(0, 3, (4, 6))

    def loss(self, i):
        return F.cross_entropy(self.model(self.x[i]), self.y[i])

    def right(self, i):
        self.optimizer.zero_grad()
        self.loss(i).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def said(self, loop, raises=False, **options):
        """The exit code, and the claims by kind, of two rounds of a loop."""
        def both():
            for i in range(2):
                loop(i)

        with told():
            options = {"model": self.model, "optimizer": self.optimizer} | options
            try:
                retrograd.record("here", both, **options)
            except RuntimeError:
                self.assertTrue(raises)
            else:
                self.assertFalse(raises)
        code, text = run("check", "here", "--format", "json")
        found = json.loads(text[text.index("{"):text.rindex("}") + 1])
        self.assertNotIn("group0", text)
        return code, {claim["kind"]: claim for claim in reversed(found["claims"])}

    def at(self, claim, code):
        """A claim's line of this file has this code."""
        number = int(claim["line"].split(":")[1].split(" ")[0])
        with open(__file__) as lines:
            self.assertIn(code, lines.read().splitlines()[number - 1], claim)

    def test_K6_an_optimizer_of_a_copy_is_named_though_some_of_it_is_frozen(self):
        self.model.a.requires_grad_(False)
        copied = [p for p in copy.deepcopy(self.model).parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW([{"params": [p for p in copied if p.ndim > 1]}, {"params": [p for p in copied if p.ndim < 2]}])
        code, found = self.said(lambda i: (self.loss(i).backward(), self.optimizer.step()))
        self.assertEqual(code, 1, found)
        self.assertIn("has 6 parameters, and none of them is the model's", found["optimizer-foreign"]["sentence"])

    def test_a_right_loop_has_no_claim(self):
        self.assertEqual(self.said(self.right), (0, {}))
        self.assertEqual(run("check", "here", "--strict")[0], 0)

    def test_K13_a_recording_without_a_model_takes_its_names_from_the_one_that_runs(self):
        self.assertEqual(self.said(self.right, model=None)[0], 0)

    def test_K6_gradients_of_the_last_step_are_added_to(self):
        def loop(i):
            self.loss(i).backward()
            self.optimizer.step()

        code, claims = self.said(loop)
        claim = claims["gradient-used-twice"]
        self.assertEqual((code, claim["severity"], len(claim["parameters"])), (1, "fault", 8))
        self.at(claim, "self.loss(i).backward()")

    def test_K6_gradients_that_are_set_to_none_between_microbatches_are_never_read(self):
        def loop(i):
            for k in range(2):
                self.optimizer.zero_grad()
                (self.loss(2 * i + k) / 2).backward()
            self.optimizer.step()

        code, claims = self.said(loop)
        self.assertEqual((code, claims["gradient-never-read"]["severity"]), (1, "fault"))

    def test_K6_gradients_that_another_backward_made_on_the_way_are_a_note(self):
        other = nn.Linear(3, 1)
        both = nn.ModuleDict({"model": self.model, "other": other})
        judge = torch.optim.SGD(other.parameters(), 0.1)

        def loop(i):
            judge.zero_grad()
            other(self.model(self.x[i]).detach()).square().mean().backward()
            judge.step()
            self.optimizer.zero_grad()
            other(self.model(self.x[i])).mean().backward()
            self.optimizer.step()

        code, claims = self.said(loop, model=both, optimizer=[judge, self.optimizer])
        self.assertEqual((code, claims["gradient-never-read"]["severity"]), (0, "note"))
        self.assertEqual(sorted(claims), ["cut-detach", "gradient-never-read"])

    def test_K6_an_auxiliary_loss_is_dropped(self):
        def loop(i):
            self.optimizer.zero_grad()
            loss = self.loss(i)
            extra = self.model.hidden.square().mean()
            loss.backward()
            self.optimizer.step()
            return extra

        code, claims = self.said(loop)
        self.assertEqual((code, claims["dropped-work"]["severity"]), (0, "suspicion"))
        self.at(claims["dropped-work"], "extra =")

    def test_K6_a_number_that_the_loop_reads_is_no_loss(self):
        def loop(i):
            self.optimizer.zero_grad()
            loss = self.loss(i)
            self.model.hidden.square().mean().item()
            loss.backward()
            self.optimizer.step()

        code, claims = self.said(loop)
        self.assertEqual((code, claims["dropped-work"]["severity"]), (0, "note"))

    def test_K6_a_parameter_is_in_no_optimizer(self):
        self.optimizer = torch.optim.AdamW([p for name, p in self.model.named_parameters() if not name.startswith("b")], 1e-2)
        claim = self.said(self.right)[1]["gradient-in-no-optimizer"]
        self.assertIn("b.bias and b.weight", claim["sentence"])

    def test_K6_a_parameter_of_the_optimizer_is_frozen(self):
        self.model.b.requires_grad_(False)
        code, claims = self.said(self.right)
        self.assertEqual((code, claims["optimizer-frozen"]["severity"]), (0, "suspicion"))
        self.assertIn("b.weight and b.bias", claims["optimizer-frozen"]["sentence"])

    def test_K6_K13_a_parameter_was_replaced_after_the_optimizer_was_made(self):
        self.model.b.weight = nn.Parameter(self.model.b.weight.detach().clone())
        code, claims = self.said(self.right)
        self.assertEqual(code, 1)
        self.assertTrue(claims["optimizer-foreign"]["sentence"].startswith("b.weight was replaced after AdamW was made"), claims)

    def test_K6_K13_the_optimizer_has_the_parameters_of_a_copy(self):
        self.optimizer = torch.optim.AdamW(copy.deepcopy(self.model).parameters(), 1e-2)
        code, claims = self.said(self.right)
        self.assertEqual((code, claims["optimizer-foreign"]["parameters"][:2]), (1, ["a.weight", "a.bias"]))

    def test_K6_an_unused_layer_is_a_note(self):
        self.model.unused = nn.Linear(2, 2)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        code, claims = self.said(self.right)
        self.assertEqual((code, claims["unused-parameter"]["severity"]), (0, "note"))

    def scaled(self, unscales):
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

        def loop(i):
            self.optimizer.zero_grad()
            scaler.scale(self.loss(i)).backward()
            if unscales:
                scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            scaler.step(self.optimizer)
            scaler.update()

        return self.said(loop)

    def test_K7_clipping_before_unscaling(self):
        code, claims = self.scaled(False)
        sentence = claims["clip-before-unscale"]["sentence"]
        self.assertEqual(code, 1)
        self.assertRegex(sentence, r"gradients 256 times too large, .* multiplied them by 0\.0\d+$")
        self.at(claims["clip-before-unscale"], "clip_grad_norm_")

    def test_K7_clipping_after_unscaling_is_right(self):
        self.assertEqual(self.scaled(True), (0, {}))

    def test_K7_clipping_before_the_backward_or_after_the_update(self):
        def before(i):
            self.optimizer.zero_grad()
            loss = self.loss(i)
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            loss.backward()
            self.optimizer.step()

        self.assertIn("clip-without-gradient", self.said(before)[1])

    def test_K7_clipping_after_the_update(self):
        def after(i):
            self.optimizer.zero_grad()
            self.loss(i).backward()
            self.optimizer.step()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1e-3)

        self.assertIn("clip-after-update", self.said(after)[1])

    def test_K7_a_weight_is_written_between_forward_and_update(self):
        def loop(i):
            self.optimizer.zero_grad()
            self.loss(i).backward()
            with torch.no_grad():
                self.model.b.weight.mul_(0.99)
            self.optimizer.step()

        claim = self.said(loop)[1]["weight-written"]
        self.assertEqual((claim["severity"], claim["parameters"]), ("suspicion", ["b.weight"]))
        self.assertIn("between their forward and their update", claim["sentence"])
        self.at(claim, "mul_(0.99)")

    def test_K7_an_average_writes_the_model(self):
        average = copy.deepcopy(self.model)

        def loop(i):
            self.right(i)
            with torch.no_grad():
                for mine, other in zip(self.model.parameters(), average.parameters()):
                    mine.lerp_(other, 0.01)

        claim = self.said(loop)[1]["weight-written"]
        self.assertIn("after their update", claim["sentence"])

    def test_K7_an_update_by_hand_is_none_of_these(self):
        def loop(i):
            self.right(i)
            with torch.no_grad():
                for p in self.model.parameters():
                    p.sub_(p.grad, alpha=1e-3)

        self.assertNotIn("weight-written", self.said(loop)[1])

    def test_K7_an_update_along_the_gradient(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-2, maximize=True)
        self.assertEqual(self.said(self.right)[1]["update-along-gradient"]["severity"], "suspicion")

    def test_K7_equal_parameters_that_are_not_tied(self):
        self.model.e, self.model.f = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.model.f.weight.data = self.model.e.weight.data.clone()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)

        def loop(i):
            self.optimizer.zero_grad()
            self.model.f(self.model.e(self.x[i])).square().mean().backward()
            self.optimizer.step()

        self.assertIn("e.weight and f.weight hold equal numbers", self.said(loop)[1]["equal-not-tied"]["sentence"])

    def test_K7_an_optimizer_that_is_made_in_the_loop(self):
        def loop(i):
            self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
            self.right(i)

        self.assertIn("moments-begin", self.said(loop, optimizer=[])[1])

    def test_K8_modules_in_eval(self):
        self.model.d.eval()
        claim = self.said(self.right)[1]["eval-in-backward"]
        self.assertEqual((claim["severity"], claim["sentence"]), ("note", "in eval while a backward goes through it: d"))

    def test_K8_dropout_in_a_validation(self):
        def loop(i):
            self.right(i)
            with torch.no_grad():
                self.loss(i)

        self.assertEqual(self.said(loop)[1]["dropout-without-gradient"]["severity"], "note")

    def test_K8_statistics_that_a_checkpoint_updates_twice(self):
        from torch.utils.checkpoint import checkpoint

        def loop(i):
            self.optimizer.zero_grad()
            hidden = checkpoint(lambda x: self.model.d(self.model.n(self.model.a(x))), self.x[i], use_reentrant=False)
            F.cross_entropy(self.model.c(self.model.b(hidden)), self.y[i]).backward()
            self.optimizer.step()

        self.assertEqual(self.said(loop)[1]["statistics-twice"]["severity"], "note")

    def test_K8_casts_that_autocast_keeps_across_an_update(self):
        def loop(i):
            with torch.autocast("cpu", torch.bfloat16):
                for _ in range(2):
                    self.right(i)

        self.assertEqual(self.said(loop)[1]["stale-cast"]["severity"], "note")

    def test_K4_a_saved_tensor_was_overwritten(self):
        def loop(i):
            h = torch.sigmoid(self.model.a(self.x[i]))
            h += 1
            self.model.b(h).sum().backward()

        code, claims = self.said(loop, raises=True)
        claim = claims["raised-overwritten"]
        self.assertEqual(code, 1)
        self.assertRegex(claim["sentence"], r"sigmoid \(books_test.py:\d+\) saved its result for the backward, and add_ \(books_test.py:\d+\) overwrote it")
        self.at(claim, "h += 1")

    def test_K4_backward_runs_a_second_time(self):
        def loop(i):
            shared = self.model(self.x[i]).tanh()
            shared.sum().backward()
            shared.square().sum().backward()

        code, claims = self.said(loop, raises=True)
        claim = claims["raised-second-backward"]
        self.assertIn("freed what tanh (books_test.py", claim["sentence"])
        self.at(claim, "shared.square().sum().backward()")

    def test_K4_nothing_requires_a_gradient(self):
        def loop(i):
            out = self.model(self.x[i]).detach()
            F.cross_entropy(out, self.y[i]).backward()

        code, claims = self.said(loop, raises=True)
        self.assertEqual(code, 1)
        self.at(claims["raised-no-graph"], ".detach()")

    def test_K4_any_other_error_fails(self):
        def loop(i):
            self.right(i)
            raise RuntimeError("the disk is full")

        code, claims = self.said(loop, raises=True)
        self.assertEqual((code, claims["raised"]["sentence"]), (1, "the step raised RuntimeError: the disk is full"))
        self.at(claims["raised"], "raise RuntimeError")


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Against(InFolder):
    def recorded(self, path, divisor, detaches=True):
        torch.manual_seed(3)
        model = Small()
        optimizer = torch.optim.SGD(model.parameters(), 1e-2)
        x, y = torch.randn(6, 8), torch.randint(0, 3, (6,))

        def step():
            out = model(x)
            extra = out.detach() if detaches else out
            loss = (F.cross_entropy(out, y) + extra.square().mean()) / divisor
            loss.backward()
            optimizer.step()

        with told():
            retrograd.record(path, step, model=model, optimizer=optimizer)

    def test_K12_all_gradients_are_a_multiple(self):
        self.recorded("good", 1)
        self.recorded("here", 4)
        code, text = run("check", "here", "--against", "good")
        self.assertEqual(code, 1, text)
        self.assertIn("all gradients are 0.25 times those of the recording that is right; the loss that backward began from is divided at books_test.py", text)
        self.assertEqual(run("check", "good", "--against", "good")[0], 0)

    def test_K12_a_cut_that_the_right_recording_has_is_missing(self):
        self.recorded("good", 1)
        self.recorded("here", 1, detaches=False)
        code, text = run("check", "here", "--against", "good")
        self.assertEqual(code, 1, text)
        self.assertIn("the recording that is right has a cut that this one lacks: detach", text)


if __name__ == "__main__":
    unittest.main()
