#!/usr/bin/env python3
"""What all subcommands of the built `retrograd` (first argument) have in common: names, sizes, suggestions, streams, JSON."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
import unittest

import support
from support import DATA, MODELS, TOP, Case, run, subcommands, valid, verdicts

MLP = MODELS / "mlp" / "model.pt2"
NAN = DATA / "planted" / "log_of_zero.txt"
PIPELINE = DATA / "pipeline" / "mlp_3st" / "model.pt2"
GPT = TOP / "resources" / "samples" / "tiny_gpt.pt2"
TWINS = TOP / "resources" / "samples" / "twins.pt2"


class Choices(Case):
    """What messages name as the way on (core/base/user_choice.h) is there."""

    def test_options_that_messages_name_exist(self):
        source = (TOP / "core" / "base" / "user_choice.cpp").read_text()
        names = re.findall(r'case UserChoice::\w+: return "(--[a-z-]+)', source)
        self.assertGreater(len(names), 10)
        helps = "\n".join(self.good(*words, "--help").stdout for words in (["run"], ["save"], ["check"], ["pipeline", "split"], ["pipeline", "run"]))
        self.assertEqual([name for name in names if not re.search(rf"^  {name}\b", helps, re.M)], [])

    def test_commands_that_the_window_names_have_their_options(self):
        source = (TOP / "views" / "parts" / "choice_names.cpp").read_text()
        commands = re.findall(r'QStringLiteral\("retrograd ([a-z ]*)(--[a-z-]+)"\)', source)
        self.assertGreater(len(commands), 3)
        for words, option in commands:
            self.assertRegex(self.good(*words.split(), "--help").stdout, rf"(?m)^  {option}\b")


class Json(Case):
    """Every report of every subcommand fits its schema."""

    def test_each_subcommand(self):
        self.fits("trace", "trace", MLP)
        for command in (["check", MLP], ["pipeline", "check", MLP, "--stages", "2", "--balance", "estimate"]):
            verdicts(self.good(*command, "--format", "json").stdout)
        self.fits("compare", "compare", MLP)
        self.fits("compare", "compare", MLP, "--dtype-b", "bfloat16", "--tolerance", "1e-9", code=1)
        self.fits("compare", "compare", NAN)
        self.fits("diff", "diff", MLP, "--partition-b", "min-cut", code=1)
        self.fits("bench", "bench", MLP, "--repeat", "1")
        self.fits("bench", "bench", MLP, "--repeat", "1", "--budget-curve", "2")
        self.fits("bench", "bench", MLP, "--layout")
        self.fits("ops", "export", MLP)
        self.fits("page", "report", MLP, "-o", self.path / "r.html")
        self.fits("save", "save", MLP, "-o", self.path / "s.retrograd")
        self.fits("pipeline", "pipeline", "split", MLP, "--stages", "2", "--balance", "estimate")
        self.fits("schedule", "pipeline", "schedule", "1F1B", "--ranks", "2", "--microbatches", "4")

    def test_Q5_compare_names_the_pass_that_dropped_a_cast_with_op_and_line(self):
        found = self.fits("compare", "compare", DATA / "jobs" / "lostcast.log", "--passes", code=1)
        verdicts = {one["pass"]: one["report"]["verdict"] for one in found["passes"]}
        self.assertEqual({name for name, verdict in verdicts.items() if verdict == "fail"}, {"post-grad", "post-grad (backward)"})
        self.assertEqual(set(verdicts.values()), {"pass", "fail"})
        claim = next(one for one in found["passes"] if one["pass"] == "post-grad")["report"]["claims"][0]
        self.assertEqual((claim["kind"], claim["line"]), ("cast-removed", "make.py:207"))
        self.good("compare", TOP / "resources" / "samples" / "lost_precision" / "trace", "--passes")

    def test_Q5_one_model_with_other_threads_or_another_partition(self):
        for options in (["--threads-b", "2"], ["--partition-b", "min-cut"], ["--recompute-b", "all"]):
            with self.subTest(options):
                found = self.fits("compare", "compare", GPT, *options)
                self.assertEqual((found["report"]["verdict"], found["largest"]), ("pass", 0))

    def test_what_a_job_left_behind(self):
        agrees, differs = (TOP / "resources" / "samples" / name / "trace" for name in ("graph_break", "lost_precision"))
        self.fits("graphs", "graphs", agrees)
        self.fits("graphs", "graphs", differs, "--nodes")
        plan = self.fits("save-plan", "graphs", differs, "--save-plan", "--nodes", "--budgets", "2")
        self.assertEqual([value["name"] for value in plan["residuals"]["values"]], ["primals_2", "_to_copy_1"])
        self.assertEqual(len(plan["budgets"]), 2)
        self.assertIn("saved for the backward", self.good("graphs", agrees, "--save-plan", "--compile", "2/0").stdout)
        self.assertEqual(self.fits("report", "check", agrees, "--compile", "1/0")["verdict"], "pass")
        report = self.fits("report", "check", differs, code=1)
        self.assertEqual((report["verdict"], [claim["severity"] for claim in report["claims"]].count("fault")), ("fail", 1))
        traces = self.good("trace", differs, "--format", "json").stdout.splitlines()
        self.assertEqual(len(traces), 3)
        for trace in traces:
            valid(trace, "trace")

    def test_the_save_plan_of_the_documents_is_what_the_program_prints(self):
        trace = TOP.parent / "shared" / "cases" / "jobs" / "gpt_checkpoint" / "trace"
        if not trace.exists():
            self.skipTest("no samples of jobs")
        page = (TOP / "docs" / "jobs.md").read_text()
        printed = self.good("graphs", trace, "--save-plan").stdout
        self.assertIn("$ retrograd graphs gpt_checkpoint/trace --save-plan\n" + printed, page)
        self.assertNotIn("finding:", printed)

    def test_a_layer_with_another_policy_is_a_finding(self):
        trace = TOP.parent / "shared" / "cases" / "jobs" / "gpt_checkpoint" / "trace"
        if not trace.exists():
            self.skipTest("no samples of jobs")
        text = next(trace.glob("*.log")).read_text()
        edited = text.replace("ac_graph_id: 7 - MUST_SAVE File: /job/train.py:21", "ac_graph_id: 7 - PREFER_RECOMPUTE File: /job/train.py:21")
        self.assertNotEqual(edited, text)
        (self.path / "edited.log").write_text(edited)
        findings = [line for line in self.good("graphs", self.path / "edited.log", "--save-plan").stdout.splitlines() if line.startswith("finding:")]
        self.assertEqual(len(findings), 1)
        self.assertIn(findings[0], (TOP / "docs" / "jobs.md").read_text())
        report = self.fits("save-plan", "graphs", self.path / "edited.log", "--save-plan")
        self.assertEqual([report["layers"][i]["module"] for d in report["differences"] if not d["reason"] for i in d["odd"]["layers"]], ["blocks.2"])

    def test_version_and_picture(self):
        self.assertRegex(self.fits("version", "version")["retrograd"], r"^\d+\.\d+")
        if "picture" in run("help").stdout:
            picture = self.path / "p.png"
            self.assertEqual(self.fits("picture", "picture", MLP, picture)["bytes"], picture.stat().st_size)

    def test_run_updates(self):
        """C13."""
        report = self.fits("updates", "run", TOP / "tests" / "data" / "recordings" / "step", "--updates")
        self.assertEqual([step["step"] for step in report["steps"]], [0, 1])
        self.ends(2, "run", MLP, "--updates")
        self.fits("updates", "run", TOP / "resources" / "samples" / "recorded", "--updates", code=1)

    def test_record(self):
        listed = self.fits("record-list", "record", "--list", TOP / "tests" / "data" / "recordings")
        self.assertTrue(listed and all(one["complete"] for one in listed))

    def test_C10_a_fault_does_not_hide_that_a_recording_is_cut_off(self):
        step = shutil.copytree(TOP / "resources" / "samples" / "recorded", self.path / "step")
        stream = step / "ops.jsonl"
        stream.write_bytes(stream.read_bytes()[:-500])
        self.assertIn("damaged or cut off: ops.jsonl", self.ends(1, "check", step).stdout)

    def test_every_subcommand_prints_json(self):
        names = [*subcommands(), *(f"pipeline {name}" for name in subcommands("pipeline"))]
        without = [name for name in names if "json" not in run("help", *name.split()).stdout]
        self.assertEqual(without, ["help", "pipeline", "pipeline launch"])

    def test_run(self):
        report = self.fits("run", "run", MLP)
        self.assertEqual([step["step"] for step in report["steps"]], list(range(1, report["all_steps"] + 1)))
        self.assertEqual(sum(step["trace"] == "forward" for step in report["steps"]), report["forward_steps"])
        part = self.fits("run", "run", MLP, "--until", "relu")
        self.assertLess(len(part["steps"]), len(report["steps"]))

    def test_notes(self):
        model = shutil.copy(MLP, self.path / "m.pt2")
        self.fits("notes-list", "notes", model)
        self.good("notes", model, "--at", "relu", "--comment", "words", "--bookmark")
        self.assertEqual(self.fits("notes-list", "notes", model)["notes"][0]["comment"], "words")

    def test_debug(self):
        lines = ["where", "break any if nan", "continue", "origin", "list", "walk-nan", "saved", "memory", "restart", "nonsense", "why-saved planted", "help"]
        answers = self.ends(1, "debug", NAN, "--format", "json", "--keep-going", *[word for line in lines for word in ("-c", line)]).stdout.splitlines()
        self.assertEqual(len(answers), len(lines))
        for answer in answers:
            valid(answer, "debug")

    def test_ranks(self):
        output = self.good("pipeline", "launch", "--ranks", "2", "--", "pipeline", "run", PIPELINE, "--stages", "2", "--balance", "estimate", "--ignore-markers", "--microbatches", "2",
                           "--check", "--format", "json").stdout
        reports = [valid(line[line.index("{"):], "pipeline-run") for line in output.splitlines() if "{" in line]
        self.assertEqual(len(reports), 2)
        for line in output.splitlines():
            if "{" in line:
                valid(json.dumps(json.loads(line[line.index("{"):])["check"]), "report")


class Numbers(Case):
    """`#N` is the id of an op, `step N` a place in the run."""

    def test_trace_prints_the_ids_that_others_take(self):
        text = self.good("trace", MLP, "--show", "backward", "--numbers").stdout
        ids = [int(i) for i in re.findall(r"# #(\d+), ", text)]
        self.assertEqual(len(ids), len(set(ids)))
        document = json.loads(self.good("trace", MLP, "--show", "backward", "--format", "json").stdout)
        self.assertEqual(ids, [op["id"] for op in document["traces"]["backward"]["ops"]])
        for i in (ids[0], ids[-1]):
            self.assertIn(f"#{i} ", self.good("run", MLP, "--until", f"#{i}").stdout.splitlines()[-2])
            self.assertIn(f"=> #{i} ", self.good("debug", MLP, "-c", f"run-to #{i}").stdout)
            self.assertIn(f"breakpoint 1: #{i} ", self.good("debug", MLP, "-c", f"break #{i}").stdout)

    def test_a_trace_with_ids_reads_back_in(self):
        text = self.path / "ids.txt"
        text.write_text(self.good("trace", MLP, "--numbers").stdout)
        self.assertEqual(self.good("trace", text, "--plain", "--show", "backward").stdout, self.good("trace", self.plain(), "--plain", "--show", "backward").stdout)

    def plain(self):
        text = self.path / "plain.txt"
        text.write_text(self.good("trace", MLP).stdout)
        return text

    def test_steps_are_counted_from_one_and_called_so(self):
        table = self.good("run", MLP).stdout.splitlines()
        rows = [line.split() for line in table if re.match(r" *\d+ +\d", line)]
        self.assertEqual([int(row[0]) for row in rows], list(range(1, len(rows) + 1)))
        listed = self.good("debug", MLP, "-c", "run-to step 3", "-c", "list 1").stdout
        self.assertIn("step 3 of ", listed)
        self.assertRegex(listed, r"=> +step 4 +#" + rows[3][4].lstrip("#"))

    def test_a_breakpoint_at_an_op_of_the_computation_says_where_it_stops(self):
        document = json.loads(self.good("trace", MLP, "--show", "computation", "--format", "json").stdout)
        first = document["traces"]["computation"]["ops"][0]["id"]
        self.assertIn(f"(the first op derived from #{first})", self.good("debug", MLP, "-c", f"break #{first}").stdout)


class Culprits(Case):
    """A stop at a NaN names its op, with module and line of Python."""

    def test_a_breakpoint_names_the_op_that_met_it(self):
        text = self.good("debug", TWINS, "-c", "break any if nan", "-c", "continue").stdout
        self.assertRegex(text, r"!! #\d+ t44 = torch.ops.aten.div.Tensor")
        self.assertIn("module distance, twins.py:25: return torch.sqrt(squared)", text)
        self.assertIn("1 NaN", text)
        answers = self.good("debug", TWINS, "--format", "json", "-c", "break any if nan", "-c", "continue").stdout.splitlines()
        culprit = json.loads(answers[1])["culprit"]
        self.assertEqual((culprit["op"], culprit["value"], culprit["source"]), ("torch.ops.aten.div.Tensor", "t44", "twins.py:25"))

    def test_walk_nan_has_module_and_line(self):
        text = self.ends(1, "debug", TWINS, "-c", "walk-nan").stdout
        self.assertIn("module distance, twins.py:25: return torch.sqrt(squared)", text)
        module = self.path / "m.pt2"
        shutil.copy(GPT, module)
        text = self.good("debug", module, "-c", "break any if max > 0", "-c", "continue").stdout
        self.assertRegex(text, r"   module [\w.]+, tiny_gpt.py:\d+: ")


class Names(Case):
    """One name for one thing, and the one that was meant."""

    def test_sizes(self):
        for size in ("100K", "100 KiB", "102400", "0.1M"):
            self.good("run", GPT, "--budget", size, "--until", "embedding")
        for option in ("--budget", "--opening-memory"):
            self.assertIn("'much' is not a size; expected a number of bytes, such as 4096, 100K", self.bad("run", MLP, option, "much").stderr)
        self.good("debug", MLP, "--history", "10M", "-c", "what-if budget 1K")
        self.bad("debug", MLP, "--history", "-1", "-c", "where")

    def test_suggestions(self):
        for arguments, meant in ((["trce", MLP], "'trace'"), (["trace", MLP, "--shw", "all"], "'--show'"), (["trace", MLP, "--show", "bakward"], "'backward'"),
                                 (["pipeline", "splt", MLP], "'split'"), (["help", "chekc"], "'check'"), (["debug", MLP, "-c", "contnue"], "'continue'"),
                                 (["debug", MLP, "-c", "print tan"], "'tanh'"), (["debug", MLP, "-c", "break kind reluu"], "'relu'"),
                                 (["debug", GPT, "-c", "break module blocks.0.norn1"], "'blocks.0.norm1'"), (["run", MLP, "--until", "tnah"], "'tanh'")):
            with self.subTest(arguments=arguments):
                self.assertIn(f"did you mean {meant}", self.bad(*arguments).stderr)

    def test_an_option_that_is_like_no_other_leads_to_the_help(self):
        self.assertIn("there is no option --only-backward; `retrograd help trace` lists them", self.bad("trace", MLP, "--only-backward").stderr)
        self.assertIn("there is no option --zzz; `retrograd help pipeline split` lists them", self.bad("pipeline", "split", MLP, "--zzz").stderr)

    def test_the_end_of_a_module_path_is_enough(self):
        self.assertIn("module blocks.1.norm2", self.good("debug", GPT, "-c", "break module 1.norm2").stdout)
        self.assertIn("several modules end in this path: blocks.0.norm1, blocks.1.norm1", self.bad("debug", GPT, "-c", "break module norm1").stderr)
        self.good("run", GPT, "--recompute", "1.norm2", "--until", "embedding")

    def test_seeds(self):
        for seed in ("-1", "1.5", "x", "18446744073709551616"):
            self.assertIn("is not a seed", self.bad("run", MLP, "--seed", seed).stderr)
        self.good("run", MLP, "--seed", "18446744073709551615")

    def test_one_name_for_the_output_and_the_old_ones_still_work(self):
        for command, name in ((["run", MLP], "r.safetensors"), (["save", MLP], "s.retrograd"), (["export", MLP], "e.txt"), (["report", MLP], "r.html")):
            for option in ("-o", "--output"):
                self.good(*command, option, self.path / (option.strip("-") + name))
            help_text = self.good("help", command[0]).stdout
            self.assertIn("-o,--output", help_text)
            for old in ("--save", "--out ", "--to "):
                self.assertNotIn(old, help_text)
        self.good("run", MLP, "--save", self.path / "old.safetensors")
        self.good("save", MLP, "--out", self.path / "old.retrograd")
        self.good("export", MLP, "--to", "dot", "--out", self.path / "old.dot")
        self.ends(1, "diff", MLP, "--double")

    def test_an_output_under_its_old_name_is_no_input_either(self):
        model = shutil.copy(MLP, self.path / "m.pt2")
        self.assertIn("is both read and written", self.bad("save", model, "--out", model).stderr)


class Streams(Case):
    def test_dash_is_a_standard_stream(self):
        with MLP.open("rb") as model:
            piped = run("trace", "-", "--show", "backward", stdin=model)
        self.assertEqual(piped.stdout, self.good("trace", MLP, "--show", "backward").stdout)
        with MLP.open("rb") as model:
            self.good("check", "-", stdin=model)
        script = subprocess.run([support.PROGRAM, "debug", MLP, "--script", "-"], input="step\nwhere\nquit\n", capture_output=True, text=True)
        self.assertIn("step 1 of ", script.stdout)
        self.assertIn("is empty", self.bad("trace", "-").stderr)
        json.loads(self.good("check", MLP, "--report", "-", "--quiet").stdout)

    def test_check_takes_several_files(self):
        result = self.good("check", MLP, MODELS / "multi_output" / "model.pt2")
        self.assertIn("2 passed", result.stdout)
        (self.path / "broken.pt2").write_bytes(b"PK\x03\x04 nothing")
        result = self.ends(2, "check", MLP, self.path / "broken.pt2")
        self.assertIn("1 passed", result.stdout)
        self.assertIn("1 not possible", result.stdout)

    def test_quiet_verbose_and_color(self):
        self.assertEqual(self.good("check", MLP, "--quiet").stdout, "")
        self.assertEqual(self.good("run", MLP, "-q").stderr, "")
        self.assertRegex(self.good("run", MLP, "--verbose").stderr, r"(?m)^.+: \d+\.\d\d s$")
        self.assertIn("\033[32mpass", self.good("check", MLP, "--color", "always").stdout)
        self.assertNotIn("\033[", self.good("check", MLP).stdout)
        self.assertIn("\033[1;31mretrograd:", self.bad("trace", "gone.pt2", "--color", "always").stderr)
        self.bad("run", MLP, "--quiet", "--verbose")

    def test_a_bar_shows_what_takes_long(self):
        result = self.good("bench", GPT, "--repeat", "200", "--progress", "always")
        self.assertRegex(result.stderr, r"\[#*\.*\] +\d+ %  \d+ s")
        self.assertTrue(result.stderr.endswith("\033[K"), "the bar stays on the screen")
        self.assertEqual(self.good("bench", GPT, "--repeat", "2").stderr, "")

    def test_picture_prints_no_warnings(self):
        if "picture" not in run("help").stdout:
            self.skipTest("a build without the window")
        self.assertEqual(self.good("picture", MLP, self.path / "p.png").stderr, "")

    def test_help_is_fast(self):
        run("help")
        best = min(self.seconds("help") for _ in range(10))
        self.assertLess(best, 0.25)  # 30 ms on a free machine; this only notices that LibTorch is loaded

    @staticmethod
    def seconds(*arguments):
        begin = os.times()
        run(*arguments)
        end = os.times()
        return (end.children_user - begin.children_user) + (end.children_system - begin.children_system)


SIGTERM = object()  # instead of a line


class Prompt(Case):
    """`retrograd debug` at a terminal."""

    def talk(self, *lines, home=None, model=GPT, code=0):
        """Types each of `lines` once a prompt is there, and Ctrl+C a second after a line that ends in "^C"; what was on the screen."""
        master, slave = pty.openpty()
        environment = dict(support.environment(), TERM="xterm", XDG_STATE_HOME=str(home or self.path))
        process = subprocess.Popen([support.PROGRAM, "debug", model], stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        screen = b""

        def read_until(done, seconds=60):
            nonlocal screen
            end = time.monotonic() + seconds
            while time.monotonic() < end and not done():
                if select.select([master], [], [], 0.2)[0]:
                    try:
                        part = os.read(master, 65536)
                    except OSError:
                        return
                    if not part:
                        return
                    screen += part

        answered = 0  # what the screen held when the last line was typed
        for line in lines:
            read_until(lambda: b"(retrograd) " in screen[answered:])
            answered = len(screen)
            if line is SIGTERM:
                time.sleep(0.5)  # the prompt is drawn before it is waited at
                process.terminate()
                continue
            os.write(master, line.removesuffix("^C").encode())
            if line.endswith("^C"):
                time.sleep(1)
                os.write(master, b"\x03")
        read_until(lambda: process.poll() is not None, 30)
        self.assertEqual(process.wait(30), code, screen.decode(errors="replace"))
        os.close(master)
        return screen.decode(errors="replace")

    def test_prompt_completion_help_and_history(self):
        screen = self.talk("ste\t2\n", "break mod\tblocks.0.norm1\n", "why-saved \t\n", "quit\n")
        self.assertIn("`help` lists the commands", screen)
        self.assertIn("step", screen)
        history = self.path / "retrograd" / "history"
        self.assertTrue(history.exists())
        self.assertIn("quit", history.read_text() + "quit")

    def long_model(self):
        count = 4000
        lines = ["def computation(x, w):", '    # x: "f32[1024, 1024]"', '    # w: "f32[1024, 1024]", parameter', "    t0 = aten.mm(x, w)"]
        lines += [f"    t{i} = aten.mm(t{i - 1}, x)" for i in range(1, count)]
        model = self.path / "long.txt"
        model.write_text("\n".join([*lines, f"    loss = aten.sum(t{count - 1})", "    return loss", ""]))
        return model

    def test_control_c_stops_the_command_and_not_the_session(self):
        screen = self.talk("continue\n^C", "where\n", "quit\n", model=self.long_model())
        stopped = re.search(r"step (\d+) of (\d+), forward, stopped before its end", screen)
        self.assertIsNotNone(stopped, screen)
        self.assertLess(0, int(stopped[1]))
        self.assertLess(int(stopped[1]), int(stopped[2]))
        self.assertRegex(screen[stopped.end():], rf"step {stopped[1]} of {stopped[2]}, forward\b")

    def test_control_c_ends_a_script(self):
        script = self.path / "script"
        script.write_text("where\ncontinue\nwhere\n")
        process = subprocess.Popen([support.PROGRAM, "debug", self.long_model(), "--script", script], stdout=subprocess.PIPE, text=True)
        self.assertIn("step 0 of", process.stdout.readline())
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(output.count("step "), 1, output)

    def test_sigterm_ends_the_prompt_and_keeps_the_history(self):
        screen = self.talk("where\n", SIGTERM, code=130)
        self.assertIn("step 0 of ", screen)
        self.assertIn("where", (self.path / "retrograd" / "history").read_text())

    def test_a_mistake_does_not_end_it(self):
        screen = self.talk("nonsense\n", "where\n", "quit\n")
        self.assertIn("there is no command 'nonsense'", screen)
        self.assertIn("step 0 of ", screen)


class Manuals(Case):
    """Help, completions and the manual page have all that there is, nested subcommands too."""

    def test_completions(self):
        for shell, flag in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
            text = self.good("help", "completion", shell).stdout
            for word in ("export", "partition", "min-cut", "library", "stages-per-rank", *subcommands("pipeline")):
                self.assertIn(word, text)
            self.assertNotIn("probe-torchscript", text)  # hidden
            if shutil.which(shell):
                subprocess.run([shell, flag], input=text, text=True, check=True, timeout=60)
        self.bad("help", "completion", "csh")

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_completes_subcommands_options_and_choices(self):
        script = self.good("help", "completion", "bash").stdout
        for words, expected in (("exp", "export"), ("export m.pt2 --format te", "text"), ("trace --sh", "--show --shape"), ("trace --inputs a", ""),  # a file, the shell's own business
                                ("pipeline sp", "split"), ("pipeline split --bal", "--balance"), ("pipeline split --balance est", "estimate"), ("help pipeline sche", "schedule"),
                                ("check --all", "--allow-skips")):
            words = f"retrograd {words}".split()
            typed = " ".join(f"'{word}'" for word in words)
            result = subprocess.run(["bash", "-c", f'{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _retrograd; echo "${{COMPREPLY[*]}}"'], capture_output=True, text=True)
            self.assertEqual(result.stdout.split(), expected.split(), words)

    def test_manual_page(self):
        page = self.good("help", "man").stdout
        self.assertTrue(page.startswith(".TH RETROGRAD 1"))
        for word in ('.SS "export"', "\\-\\-partition", "default|min\\-cut", ".SH EXIT STATUS", "Examples:", *(f'.SS "pipeline {name}"' for name in subcommands("pipeline"))):
            self.assertIn(word, page)
        if shutil.which("groff"):
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, timeout=60)
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    # app/front.cpp: what only reads the command line is answered by a program that has neither LibTorch nor Qt in it.
    def test_the_front_answers_alone(self):
        libraries = subprocess.run(["ldd", support.PROGRAM], capture_output=True, text=True, timeout=60).stdout
        self.assertIn("libc.so", libraries)
        for other in ("torch", "Qt"):
            self.assertNotIn(other, libraries)
        commands = set(re.findall(r"complete[^\n]*-a ([\w-]+) ", self.good("help", "completion", "fish").stdout)) | {"check", "pipeline", "debug"}
        for command in sorted(commands):
            self.good(command, "--help")
            self.bad(command, "--no-such-option")
        self.bad("chekc")
        self.good("trace", MLP, "--opening-memory", "1G", "--device", "cpu", "--seed", "1", "--threads", "1", "--partition", "min-cut")
        self.bad("trace", "--shape", "x", MLP)

    def test_topics(self):
        self.assertIn("torch.export.save", self.good("help", "saving").stdout)
        self.assertIn("--reference", self.good("help", "check").stdout)
        self.assertIn("Usage: retrograd check [OPTIONS]", self.good("help", "check").stdout)
        self.assertIn("Usage: retrograd pipeline check [OPTIONS]", self.good("help", "pipeline", "check").stdout)
        self.assertIn("bench", self.good("help").stdout)
        self.assertIn("LibTorch", self.good("version").stdout)
        self.good("--help")

    def test_without_a_display_the_subcommands_are_named(self):
        self.assertIn("check", self.bad(MLP).stderr)


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
