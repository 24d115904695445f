#!/usr/bin/env python3
"""`retrograd serve` over a pipe, as JSON-RPC and as a Model Context Protocol server: serve_test.py PROGRAM.

The protocol is spoken with the standard library; where the official client (package `mcp`) is installed, it has to get along, too."""
import asyncio
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

import jsonschema
import support

SAMPLES = support.TOP / "resources" / "samples"
MLP = SAMPLES / "mlp.pt2"
SCHEMA = json.loads((support.TOP / "docs" / "serve.schema.json").read_text())
MOST = 24 * 1024


class Client:
    """One program and its pipe."""

    def __init__(self, *options, **keywords):
        self.process = support.start("serve", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)
        self.number = 0

    def send(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **parameters):
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters}) + "\n")
        answer = self.receive()
        jsonschema.validate(answer, SCHEMA)
        assert answer["id"] == self.number, answer
        return answer

    def good(self, method, **parameters):
        answer = self.ask(method, **parameters)
        assert "result" in answer, answer
        return answer["result"]

    def end(self):
        """Exit code and what was said on standard error, once the input has ended."""
        _, errors = self.process.communicate(timeout=120)
        return self.process.returncode, errors


class Agent(Client):
    """A client of the Model Context Protocol that counts its calls of tools."""

    def __init__(self, *options, **keywords):
        super().__init__("--mcp", *options, **keywords)
        self.calls = 0
        self.greeting = self.good("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")

    def tool(self, name, **arguments):
        self.calls += 1
        result = self.good("tools/call", name=name, arguments=arguments)
        text = result["content"][-1]["text"]
        assert len(text.encode()) <= MOST, len(text)
        if result["isError"]:
            raise ValueError(text)
        assert "no instructions" in result["content"][0]["text"].replace("\n", " "), result
        return json.loads(text)


class Case(support.Case):
    def client(self, *options, kind=Client, **keywords):
        client = kind(*options, **keywords)

        def close():
            client.process.kill()
            client.process.wait()
            for stream in (client.process.stdin, client.process.stdout, client.process.stderr):
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        self.addCleanup(close)
        return client


class Questions(Case):
    def test_each_method_answers_and_fits_its_schema(self):
        client = self.client()
        names = [method["name"] for method in client.good("methods")]
        self.assertEqual(len(names), len(set(names)))
        opened = client.good("open", path=str(MLP))
        self.assertEqual((opened["file"], opened["kind"]), (1, "model"))
        self.assertEqual(client.good("verdict")["verdict"], "pass")
        self.assertFalse(client.good("find_nan")["bad"])
        listing = client.good("listing", trace="backward", count=3)
        self.assertEqual(len(listing["listing"]), 3)
        op = listing["listing"][0]
        self.assertEqual(client.good("origin", op=f"#{op['id']}")["op"]["id"], op["id"])
        saved = client.good("why_saved")["saved"]
        self.assertTrue(client.good("why_saved", value=saved[0]["value"])["saved"])
        parameters = client.good("parameters")["parameters"]
        weight = next(one for one in parameters if one["kind"] == "parameter")
        self.assertIn("statistics", client.good("values", value=weight["value"], slice="0"))
        self.assertIn("statistics", client.good("values", value=weight["value"], gradient=True))
        self.assertEqual(client.good("why_no_gradient", value=weight["value"])["stops"], [])
        self.assertIsNone(client.good("compare", path=str(MLP))["first_divergence"])
        self.assertGreater(client.good("memory")["peak_bytes"], 0)
        with_line = next(op for op in client.good("listing")["listing"] if "line" in op)
        self.assertIn(with_line["id"], [op["id"] for op in client.good("source_line", line=with_line["line"])["ops"]])
        self.assertEqual(client.good("open", path=str(SAMPLES / "swish"))["kind"], "recorded step")
        self.assertTrue(client.good("updates")["updates"] if "updates" in client.good("updates") else client.good("updates"))
        self.assertEqual(client.good("verdict", file=1)["verdict"], "pass")
        self.assertEqual(client.end(), (0, ""))

    def test_the_schema_names_the_methods_that_there_are(self):
        client = self.client()
        methods = {method["name"]: method["parameters"] for method in client.good("methods")}
        self.assertEqual({name: each["parameters"] for name, each in SCHEMA["$defs"]["methods"]["const"].items()}, methods)

    def test_mistakes_are_answered_and_the_next_question_too(self):
        client = self.client()
        for send, code in (("garbage\n", -32700), ("\x00\x01\n", -32700), ("[" * 100000 + "\n", -32700), ("[]\n", -32600), ("{}\n", -32600), ('{"jsonrpc": "2.0", "id": {}, "method": "open"}\n', -32600)):
            client.send(send)
            answer = client.receive()
            jsonschema.validate(answer, SCHEMA)
            self.assertEqual(answer["error"]["code"], code, send[:40])
        self.assertEqual(client.ask("no_such_method")["error"]["code"], -32601)
        self.assertEqual(client.ask("open")["error"]["code"], -32602)
        self.assertEqual(client.ask("open", path=1)["error"]["code"], -32602)
        self.assertEqual(client.ask("open", path="x", other=1)["error"]["code"], -32602)
        self.assertIn("call open first", client.ask("verdict")["error"]["message"])
        self.assertIn("no-such-file", client.ask("open", path="/no-such-file")["error"]["message"])
        client.good("open", path=str(MLP))
        self.assertIn("there is no value", client.ask("values", value="nonsense")["error"]["message"])
        self.assertIn("no op was called", client.ask("source_line", line="none.py:1")["error"]["message"])
        client.send('{"jsonrpc": "2.0", "method": "verdict"}\n\n')  # a notification has no answer, an empty line is nothing
        self.assertEqual(client.good("open", path=str(MLP))["file"], 1)

    def test_half_and_giant_messages_end_it_clearly(self):
        client = self.client()
        client.send('{"jsonrpc": "2.0", "id": 1,')
        code, errors = client.end()
        self.assertEqual(code, 2)
        self.assertIn("ends in the middle of a message", errors)

        client = self.client()
        try:
            client.send('{"jsonrpc": "2.0", "id": 1, "method": "' + "x" * (5 << 20))
        except BrokenPipeError:
            pass
        code, errors = client.process.wait(timeout=60), client.process.stderr.read()
        self.assertEqual(code, 2)
        self.assertIn("larger than 4 MiB", errors)
        self.assertEqual(json.loads(client.process.stdout.readline())["error"]["code"], -32700)

    def test_nobody_is_left_running_when_either_side_dies(self):
        for _ in range(3):
            client = self.client()
            client.good("open", path=str(MLP))
            client.process.stdin.close()
            self.assertEqual(client.process.wait(timeout=60), 0)
        client = self.client()
        client.good("open", path=str(MLP))
        client.process.stdout.close()  # the reader is gone
        client.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "methods"}) + "\n")
        self.assertNotEqual(client.process.wait(timeout=60), 0)
        client = self.client()
        client.process.send_signal(signal.SIGTERM)
        self.assertNotEqual(client.process.wait(timeout=60), None)

    # Holds Y7: a path outside of --root is refused, also where an opened file or a link names it.
    def test_Y7_nothing_outside_of_the_roots_is_read(self):
        root = self.path / "root"
        root.mkdir()
        model = self.path / "outside.pt2"
        shutil.copy(MLP, model)
        self.good("save", model, "-o", root / "session.retrograd")  # names the model, does not hold it
        (root / "link.pt2").symlink_to(model)
        shutil.copy(MLP, root / "inside.pt2")
        client = self.client("--root", root)
        self.assertEqual(client.good("open", path=str(root / "inside.pt2"))["kind"], "model")
        for path in (model, root / "link.pt2", root / ".." / "outside.pt2", "/etc/passwd"):
            self.assertIn("--root", client.ask("open", path=str(path))["error"]["message"], path)
        answer = client.ask("open", path=str(root / "session.retrograd"))
        if "result" in answer:  # the session may open without its weights; it never runs with those from outside
            self.assertNotEqual(client.good("verdict")["verdict"], "pass")
        self.assertIn("--root", client.ask("compare", file=1, path=str(model))["error"]["message"])

    def test_nothing_is_written(self):
        shutil.copy(MLP, self.path / "m.pt2")
        client = self.client(cwd=self.path)
        client.good("open", path="m.pt2")
        for value in ("m x.npy", "l1.weight[0] y.npy"):
            client.ask("values", value=value)
        client.ask("find_nan", value="x\nsave-value l1.weight z.npy")
        client.process.stdin.close()
        client.process.wait(timeout=60)
        self.assertEqual([path.name for path in self.path.iterdir()], ["m.pt2"])


class Agents(Case):
    def test_it_greets_and_lists_its_tools(self):
        agent = self.client(kind=Agent)
        self.assertEqual(agent.greeting["protocolVersion"], "2025-06-18")
        self.assertEqual(agent.greeting["serverInfo"]["name"], "retrograd")
        tools = agent.good("tools/list")["tools"]
        self.assertIn("find_nan", [tool["name"] for tool in tools])
        for tool in tools:
            jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
            self.assertTrue(tool["annotations"]["readOnlyHint"])
            self.assertLess(len(tool["description"]), 500)
        self.assertEqual(agent.good("ping"), {})
        self.assertEqual(agent.ask("resources/list")["error"]["code"], -32601)
        self.assertEqual(agent.ask("tools/call", name="none", arguments={})["error"]["code"], -32602)
        self.assertTrue(agent.good("tools/call", name="open", arguments={})["isError"])

    def test_without_a_root_the_present_folder_is_it(self):
        shutil.copy(MLP, self.path / "m.pt2")
        agent = self.client(kind=Agent, cwd=self.path)
        self.assertEqual(agent.tool("open", path="m.pt2")["kind"], "model")
        with self.assertRaisesRegex(ValueError, "--root"):
            agent.tool("open", path=str(MLP))

    def test_answers_are_bounded(self):
        agent = self.client("--root", support.TOP, kind=Agent)
        agent.tool("open", path=str(SAMPLES / "tiny_gpt.pt2"))
        listing = agent.tool("listing", count=100000)
        self.assertIn("more", listing["listing"][-1])

    # Any program may print to standard output; the frames have one of their own.
    def test_what_prints_does_not_get_between_the_messages(self):
        agent = self.client("--root", support.TOP, "--verbose", kind=Agent)
        agent.tool("open", path=str(SAMPLES / "lost_precision" / "trace"))
        self.assertEqual(agent.tool("verdict")["verdict"], "fail")

    @unittest.skipUnless(importlib.util.find_spec("mcp"), "the official client (package mcp) is not installed")
    def test_the_official_client_lists_and_calls_each_tool(self):
        asyncio.run(self.official())

    async def official(self):
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client
        parameters = StdioServerParameters(command=str(support.PROGRAM), args=["serve", "--mcp", "--root", str(support.TOP)], env=dict(os.environ))
        arguments = {"open": {"path": str(MLP)}, "compare": {"path": str(MLP)}, "source_line": {"line": "mlp.py:1"}, "origin": {"op": "#1"}, "values": {"value": "l1.weight"},
                     "why_no_gradient": {"value": "l1.weight"}}
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            self.assertGreaterEqual(len(tools), 12)
            for tool in sorted(tools, key=lambda tool: tool.name != "open"):
                result = await session.call_tool(tool.name, arguments.get(tool.name, {}))
                self.assertTrue(result.content[-1].text, tool.name)


def text(*lines, inputs="x", weights='w: "f32[8, 8]"'):
    """A model as printed traces: parameters by name, then lines of "NUMBER | code | ops"."""
    out = [f"def computation({inputs}, {weights.split(':')[0]}):", f'    # {inputs}: "f32[4, 8]"', f"    # {weights}, parameter"]
    for line in lines:
        number, code, ops = line.split("|")
        out.append(f"    # model.py:{number.strip()}: {code.strip()}")
        out += ["    " + op.strip() for op in ops.split(";")]
    return "\n".join([*out, "    return loss", ""])


ZERO = "3 | h = x @ self.w | h = aten.mm(x, w); zero = aten.mul.Tensor(h, 0.0)"
SUM = "9 | return y.sum() | loss = aten.sum(y)"
# By name: the model, and the line that is to blame.
NANS = {
    "log of zero": (text(ZERO, "5 | y = torch.log(zero) | y = aten.log(zero)", SUM), 5),
    "division by zero": (text(ZERO, "6 | y = h / zero | y = aten.div.Tensor(h, zero)", SUM), 6),
    "zero over zero": (text(ZERO, "7 | y = zero / zero | y = aten.div.Tensor(zero, zero)", SUM), 7),
    "overflow of exp": (text("3 | h = x * 1e4 | h = aten.mul.Tensor(x, 10000.0)", "4 | e = h.abs().exp() | a = aten.abs(h); y = aten.exp(a)", SUM), 4),
    "root of a negative": (text(ZERO, "5 | n = zero - 1 | n = aten.sub.Tensor(zero, 1.0)", "6 | y = n.sqrt() | y = aten.sqrt(n)", SUM), 6),
    "arc cosine of 2": (text(ZERO, "5 | n = zero + 2 | n = aten.add.Tensor(zero, 2.0)", "6 | y = n.acos() | y = aten.acos(n)", SUM), 6),
    "infinity minus infinity": (text(ZERO, "5 | i = 1 / zero | i = aten.reciprocal(zero)", "6 | y = i - i | y = aten.sub.Tensor(i, i)", SUM), 5),
    "derivative of a root at zero": (text(ZERO, "5 | r = zero.sqrt() | r = aten.sqrt(zero)", "6 | y = r * 0 + h | m = aten.mul.Tensor(r, 0.0); y = aten.add.Tensor(m, h)", SUM), 5),
    "power of zero": (text(ZERO, "5 | y = zero ** -1 | y = aten.pow.Tensor_Scalar(zero, -1.0)", SUM), 5),
    "reciprocal root of zero": (text(ZERO, "5 | y = zero.rsqrt() | y = aten.rsqrt(zero)", SUM), 5),
}
CUTS = {
    "detached": (text("3 | h = x @ self.w | h = aten.mm(x, w)", "4 | d = h.detach() | d = aten.detach(h)", "5 | y = d * 2 | y = aten.mul.Tensor(d, 2.0)", SUM), "detach"),
    "an op without a gradient": (text("3 | h = x @ self.w | h = aten.mm(x, w)", "4 | i = h.argmax(1) | i = aten.argmax(h, 1)", "5 | y = i.float() | y = aten.mul.Tensor(i, 2.0)", SUM), "integer"),
    "never read": (text("4 | y = x * 2 | y = aten.mul.Tensor(x, 2.0)", SUM), "reads"),
}


class PlantedFaults(Case):
    """Twenty faults, each found by tools alone in at most six calls."""

    def agent(self):
        return self.client("--root", support.TOP, "--root", self.path, kind=Agent)

    def model(self, content):
        path = self.path / "model.txt"
        path.write_text(content)
        return str(path)

    def test_ten_ways_to_a_nan(self):
        for name, (content, line) in NANS.items():
            with self.subTest(name=name):
                agent = self.agent()
                agent.tool("open", path=self.model(content))
                found = agent.tool("find_nan")
                self.assertTrue(found["bad"])
                root = found["forward"] or found["root"]
                self.assertEqual(root["line"], f"model.py:{line}", found)
                self.assertLessEqual(agent.calls, 6)

    def test_three_gradients_that_are_cut(self):
        for name, (content, word) in CUTS.items():
            with self.subTest(name=name):
                agent = self.agent()
                agent.tool("open", path=self.model(content))
                parameter = agent.tool("parameters", containing="w")["parameters"][0]
                self.assertIsNone(parameter["gradient"])
                stops = agent.tool("why_no_gradient", value=parameter["value"])["stops"]
                self.assertTrue(any(word in json.dumps(stop) for stop in stops), stops)
                self.assertLessEqual(agent.calls, 6)

    def test_a_wrong_backward_of_a_recorded_step(self):
        agent = self.agent()
        agent.tool("open", path=str(SAMPLES / "swish"))
        verdict = agent.tool("verdict", strict=True)
        self.assertEqual(verdict["verdict"], "fail")
        self.assertTrue(any("train_swish.py" in json.dumps(claim) for claim in verdict["claims"]), verdict["claims"])

    def test_a_compiled_backward_that_lost_precision(self):
        agent = self.agent()
        agent.tool("open", path=str(SAMPLES / "lost_precision" / "trace"))
        self.assertEqual(agent.tool("verdict")["verdict"], "fail")

    def test_twins_of_which_the_gradient_is_nan(self):
        agent = self.agent()
        agent.tool("open", path=str(SAMPLES / "twins.pt2"))
        found = agent.tool("find_nan")
        self.assertTrue(found["bad"])
        self.assertIn("twins.py", json.dumps(found["forward"]))
        compared = agent.tool("compare", path=str(SAMPLES / "twins_mended.pt2"))
        self.assertTrue(compared["first_divergence"] or compared["only_in_first"] or compared["only_in_second"])
        self.assertLessEqual(agent.calls, 6)

    def test_a_mask_that_hides_all_of_a_row(self):
        agent = self.agent()
        agent.tool("open", path=str(support.DATA / "jobs" / "nanmask.log"))
        self.assertEqual(agent.tool("verdict")["verdict"], "not possible", "of drawn inputs: they are not the job's")
        self.assertIn("make.py:196", json.dumps(agent.tool("find_nan")["root"]))

    def test_memory_that_leaks_and_a_request_that_fails(self):
        for name, word in (("leak", "leak"), ("oom", "request_failed_at_event")):
            with self.subTest(name=name):
                agent = self.agent()
                agent.tool("open", path=str(support.DATA / "memory" / f"{name}.pickle.xz"))
                memory = agent.tool("memory")
                if name == "leak":
                    self.assertIn("leak", [finding["kind"] for finding in memory["findings"]])
                else:
                    self.assertIsNotNone(memory[word])

    def test_a_value_too_large_for_half_precision(self):
        agent = self.agent()
        agent.tool("open", path=str(support.DATA / "planted" / "half_overflow.txt"))
        found = agent.tool("find_nan")
        self.assertIn("planted", (found["root"] or found["forward"])["call"])
        self.assertGreater(agent.tool("values", value="planted")["statistics"]["inf"], 0)


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
