#include "core/formats/jobs/job_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/input_sources.h"
#include "core/formats/jobs/md5.h"
#include "tests/core/formats/cases.h"

namespace retrograd::jobs {
namespace {

const std::string graphText =
    "class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: \"f32[2][1]cpu\", L_m_parameters_w_: "
    "\"f32[2][1]cpu\"):\n"
    "        l_x_ = L_x_\n        l_w = L_m_parameters_w_\n\n        # File: t.py:3 in f, code: x * w\n"
    "        mul: \"f32[2][1]cpu\" = l_x_ * l_w;  l_x_ = l_w = None\n        return (mul,)";

std::string md5Of(std::string_view text) {
  Md5 md5;
  md5.add(text);
  return md5.digest();
}

std::string record(const std::string& json, const std::string& payload = "", const std::string& pid = "77") {
  auto text = "V1122 08:20:21.133000 " + pid + " a/b.py:18] " + json + "\n";
  for (std::size_t at = 0; !payload.empty() && at <= payload.size();) {
    const auto end = std::min(payload.find('\n', at), payload.size());
    text += "\t" + payload.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

std::string graphRecord(const std::string& name, const std::string& ids, const std::string& text = graphText,
                        const std::string& pid = "77") {
  return record(fmt::format("{{\"{}\": {{}}, {}, \"has_payload\": \"{}\"}}", name, ids, md5Of(text)), text, pid);
}

const std::string first = R"("frame_id": 0, "frame_compile_id": 0, "attempt": 0)";

JobLog open(const std::string& text, const std::string& name = "job.log") {
  return openJobLog(test::writeTemporary(name, text));
}

/// The nodes of a graph that are ops: no sizes, no constants and bodies, no other names of a value, and no items of a
/// call with several results.
std::int64_t opsOf(const fx::Graph& graph) {
  using Kind = fx::Expression::Kind;
  const auto isOp = [&](const fx::Node& node) {
    if (node.type != fx::noIndex && graph.types[node.type].kind == fx::Type::Kind::number) return false;
    if (fx::ownAttribute(node.call) || node.call.is(Kind::value)) return false;
    if (!node.call.is(Kind::item) || !node.call.items[0].is(Kind::value) || !node.call.items[1].is(Kind::integer))
      return true;
    const auto base = node.call.items[0].valueIndex();
    return base < graph.inputs.size() || graph.nodes[base - graph.inputs.size()].type != fx::noIndex;
  };
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), isOp);
}

/// Every graph of a log read, with its count.
void expectAllRead(const JobLog& log) {
  for (const auto& process : log.processes) {
    for (const auto& compile : process.compiles) {
      for (const auto& attempt : compile.attempts) {
        for (const auto& graph : attempt.graphs) {
          const auto text = payloadText(log, graph.payload);
          const auto place = placeOf(log, graph.payload);
          const auto read =
              graph.kind == GraphKind::runnable ? fx::readRepro(text, place).graph : fx::readGraph(text, place);
          EXPECT_EQ(opsOf(read), graph.ops) << place;
          EXPECT_FALSE(graph.damaged) << place;
        }
      }
    }
  }
}

TEST(JobLog, J1_Md5IsTheOneOfRfc1321) {
  EXPECT_EQ(md5Of(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5Of("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5Of("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

// J1: the payload is what is behind the tabs, and its checksum is compared.
TEST(JobLog, J1_PayloadsAreLinesBehindTabs) {
  const auto log =
      open(graphRecord("dynamo_output_graph", first) + record(R"({"chromium_event": {}, "has_payload": "x"})", "{\n}"));
  ASSERT_EQ(log.graphCount(), 1U);
  const auto& graph = log.processes.at(0).compiles.at(0).attempts.at(0).graphs.at(0);
  EXPECT_FALSE(graph.damaged);
  EXPECT_EQ(payloadText(log, graph.payload), graphText + "\n");
  EXPECT_EQ(graph.ops, 1);
}

TEST(JobLog, J1_DamagedGraphsAreNamed) {
  auto text = graphRecord("aot_joint_graph", first);
  text.replace(text.find("mul:"), 4, "mal:");
  const auto log = open(text);
  EXPECT_TRUE(log.processes.at(0).compiles.at(0).attempts.at(0).graphs.at(0).damaged);
  ASSERT_FALSE(log.processes.at(0).problems.empty());
  EXPECT_NE(log.processes.at(0).problems[0].message.find("the joint graph of 0/0 is not whole"), std::string::npos);
}

// J2: records belong together by frame, compile, attempt; processes by file and id.
TEST(JobLog, J2_RecordsAreGrouped) {
  const std::string again = R"("frame_id": 0, "frame_compile_id": 0, "attempt": 1)",
                    other = R"("frame_id": 1, "frame_compile_id": 2, "attempt": 0)";
  const std::string autograd = R"("frame_id": 3, "frame_compile_id": 0, "attempt": 0, "compiled_autograd_id": 4)";
  const auto log =
      open(graphRecord("dynamo_output_graph", first) + graphRecord("dynamo_output_graph", again) +
           graphRecord("aot_joint_graph", other) + graphRecord("aot_joint_graph", autograd + R"(, "rank": 5)") +
           graphRecord("aot_joint_graph", first, graphText, "78"));
  ASSERT_EQ(log.processes.size(), 2U);
  const auto& process = log.processes[1];  // of rank 5
  EXPECT_EQ(process.rank, 5);
  ASSERT_EQ(process.compiles.size(), 3U);
  EXPECT_EQ(process.compiles[0].attempts.size(), 2U);
  EXPECT_EQ(nameOf(process.compiles[1]), "1/2");
  EXPECT_EQ(nameOf(process.compiles[2]), "!4/3/0");
  EXPECT_EQ(chooseCompile(log, "0/0", 5).attempt->number, 1);
  EXPECT_EQ(chooseCompile(log, "0/0_0", 5).attempt->number, 0);
  EXPECT_EQ(chooseCompile(log, "!4/3/0").process, &process);
  try {
    chooseCompile(log, "7/7");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badUse);
    EXPECT_NE(e.message().find("1/2 of rank 5"), std::string::npos) << e.message();
  }
}

// A process that counts from 0 once more does not mix its graphs with those before.
TEST(JobLog, J2_ACompileThatStartsAgainIsAnother) {
  const auto start = record(R"({"dynamo_start": {"stack": []}, )" + first + "}");
  const auto log = open(start + graphRecord("aot_joint_graph", first) + start + graphRecord("aot_joint_graph", first));
  ASSERT_EQ(log.processes.at(0).compiles.size(), 2U);
  EXPECT_EQ(nameOf(log.processes[0].compiles[1]), "0/0#2");
  EXPECT_EQ(chooseCompile(log, "0/0#2").compile, &log.processes[0].compiles[1]);
}

// J3: metadata names inputs; metrics say how long a compile took and why it failed.
TEST(JobLog, J3_MetadataOfInputsAndCompiles) {
  const auto log = open(
      record(R"({"str": ["/job/train.py", 3]})") +
      record(R"({"dynamo_start": {"stack": [{"line": 39, "name": "step", "filename": 3}]}, )" + first + "}") +
      record(
          R"({"describe_tensor": {"id": 0, "describer_id": 0, "dtype": "torch.float32", "size": [2], "requires_grad": true}, )" +
          first + "}") +
      record(R"({"describe_source": {"describer_id": 0, "id": 0, "source": "L['x']"}, )" + first + "}") +
      record(
          R"({"describe_tensor": {"id": 1, "describer_id": 0, "dtype": "torch.float32", "size": [2], "is_parameter": true}, )" +
          first + "}") +
      record(R"({"describe_source": {"describer_id": 0, "id": 1, "source": "L['m']._parameters['w']"}, )" + first +
             "}") +
      record(R"({"create_symbol": {"symbol": "s23", "val": "12", "source": "L['x'].size()[0]"}, )" + first + "}") +
      graphRecord("dynamo_output_graph", first) +
      record(
          R"({"compilation_metrics": {"entire_frame_compile_time_s": 1.5, "fail_type": "Unsupported", "fail_reason": "why\nmore", "restart_reasons": []}, )" +
          first + "}"));
  const auto& compile = log.processes.at(0).compiles.at(0);
  EXPECT_EQ(compile.function, "step");
  EXPECT_EQ(compile.file, "/job/train.py");
  const auto& attempt = compile.attempts.at(0);
  EXPECT_EQ(attempt.seconds, 1.5);
  EXPECT_EQ(attempt.failReason, "why");
  const auto inputs = describedInputs(log, attempt);
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[0].name, "x");
  EXPECT_TRUE(inputs[0].requiresGrad);
  EXPECT_EQ(inputs[1].kind, InputSource::Kind::parameter);
  EXPECT_EQ(sizeHints(log, attempt).at("s23"), 12);
  const auto bound = bindInputs(fx::readGraph(payloadText(log, attempt.graphs.at(0).payload), "test"), inputs);
  ASSERT_EQ(bound.size(), 2U);
  EXPECT_EQ(bound[0]->name, "x");
  EXPECT_EQ(bound[1]->name, "w");
}

// J10: names as a state dict has them.
TEST(JobLog, J10_NamesOfSources) {
  EXPECT_EQ(readInputSource("L['model']._modules['blocks']._modules['0']._parameters['weight']").name,
            "blocks.0.weight");
  EXPECT_EQ(readInputSource("G['n']._modules['bn']._buffers['running_mean']").kind, InputSource::Kind::buffer);
  EXPECT_EQ(readInputSource("L['batch']['x']").name, "batch.x");
  EXPECT_EQ(readInputSource("L['args'][0]").name, "args.0");
  EXPECT_EQ(readInputSource("___as_tensor(L['m'].eps)").kind, InputSource::Kind::number);
  EXPECT_EQ(plainName("module._orig_mod.blocks._fsdp_wrapped_module.0.weight"), "blocks.0.weight");
  EXPECT_EQ(plainName("my_module.module"), "my_module.module");
}

// Whatever object holds a module is not part of its parameters' names, and a function's own keywords are none
// either.
TEST(JobLog, NamesDoNotDependOnWhatHoldsTheModule) {
  for (const auto* holder :
       {"L['args'][0]", "L['self'].model", "L['fn'].keywords['m']", "L['f'].__closure__[0].cell_contents",
        "L['step'].__self__", "G['trainer'].state.model", "L['self'].__dict__['net']", "L['fn'].func.__self__.m"}) {
    const auto source = readInputSource(std::string(holder) + "._modules['e']._parameters['weight']");
    EXPECT_EQ(source.name, "e.weight") << holder;
    EXPECT_EQ(source.kind, InputSource::Kind::parameter) << holder;
  }
  EXPECT_EQ(readInputSource("L['kwargs']['ids']").name, "ids");
  EXPECT_EQ(namesOf(readInputSource("L['batch'].x")), (std::vector<std::string>{"batch.x", "x"}));
  EXPECT_EQ(namesOf(readInputSource("L['models'][0]._parameters['w']")),
            (std::vector<std::string>{"models.0.w", "0.w", "w"}));
}

// Modules of a list give one name each; as much of the list as distinguishes them belongs to it.
TEST(JobLog, ModulesOfOneListAreDistinguished) {
  std::string text;
  for (int i = 0; i < 2; ++i) {
    text += record(fmt::format(
        R"({{"describe_tensor": {{"id": {}, "describer_id": 0, "dtype": "torch.float32", "size": [2]}}, {}}})", i,
        first));
    text += record(fmt::format(
        R"({{"describe_source": {{"describer_id": 0, "id": {}, "source": "L['blocks'][{}]._modules['lin']._parameters['weight']"}}, {}}})",
        i, i, first));
  }
  const auto log = open(text + graphRecord("dynamo_output_graph", first));
  const auto inputs = describedInputs(log, log.processes.at(0).compiles.at(0).attempts.at(0));
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[0].name, "0.lin.weight");
  EXPECT_EQ(inputs[1].name, "1.lin.weight");
}

// Dynamo describes no tensor that it met as the base of a view; a local variable has its name all the same.
TEST(JobLog, ALocalVariableWithoutADescriptionHasItsName) {
  const auto dynamo = fx::readGraph(
      "class G(torch.nn.Module):\n    def forward(self, L_v6_: \"f32[5]\", L_self_modules_a_parameters_weight_: "
      "\"f32[5]\"):\n        l_v6_ = L_v6_\n        return (l_v6_,)\n",
      "test");
  const auto bound = bindInputs(dynamo, {});
  ASSERT_EQ(bound.size(), 2U);
  ASSERT_TRUE(bound[0]);
  EXPECT_EQ(bound[0]->name, "v6");
  EXPECT_FALSE(bound[1]);
}

// A record that no compile has, and one that this program has never heard of: their text is a graph.
TEST(JobLog, AnyPayloadThatIsAGraphIsAGraph) {
  const auto artifact = [](const std::string& name, const std::string& ids) {
    return record(fmt::format(R"({{"artifact": {{"name": "{}", "encoding": "string"}}{}, "has_payload": "{}"}})", name,
                              ids.empty() ? "" : ", " + ids, md5Of(graphText)),
                  graphText);
  };
  const auto log = open(artifact("make_fx_graph_traced", "") + artifact("before_bucketing", "") +
                        graphRecord("aot_joint_graph", first) + artifact("after_my_pass", first) +
                        record(R"({"artifact": {"name": "notes"}, "has_payload": ""})", "class of its own"));
  ASSERT_EQ(log.processes.at(0).compiles.size(), 2U);
  const auto& none = log.processes[0].compiles[0];
  EXPECT_EQ(nameOf(none), "-/-");
  ASSERT_EQ(none.attempts.at(0).graphs.size(), 2U);
  EXPECT_EQ(nameOf(none.attempts[0].graphs[0]), "make_fx_graph_traced");
  EXPECT_EQ(none.attempts[0].graphs[1].ops, 1);
  EXPECT_EQ(nameOf(log.processes[0].compiles[1].attempts.at(0).graphs.at(1)), "after_my_pass");
  EXPECT_EQ(chooseCompile(log, "").graph, nullptr);
  EXPECT_EQ(nameOf(*chooseCompile(log, "").compile), "0/0");  // one with ATen graphs goes first
  EXPECT_EQ(chooseCompile(log, "before_bucketing").graph, &none.attempts[0].graphs[1]);
  EXPECT_EQ(chooseCompile(log, "-/-").attempt, &none.attempts[0]);
}

// Why a function was compiled again, as text or as a list, and which of how many compiles it is.
TEST(JobLog, ReasonsOfRecompiles) {
  const auto reasons = [](const std::string& payload, int compile) {
    return record(
        fmt::format(
            R"({{"artifact": {{"name": "recompile_reasons", "encoding": "json"}}, "frame_id": 0, "frame_compile_id": {}, "attempt": 0, "has_payload": ""}})",
            compile),
        payload);
  };
  const auto log = open(graphRecord("dynamo_output_graph", first) +
                        reasons("0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5", 1) +
                        reasons("[\n\"0/1: why\\nmore\",\n\"0/0: other\"\n]", 2));
  const auto& process = log.processes.at(0);
  ASSERT_EQ(process.compiles.size(), 3U);
  EXPECT_TRUE(process.compiles[0].attempts.at(0).recompileReasons.empty());
  EXPECT_EQ(process.compiles[1].attempts.at(0).recompileReasons,
            std::vector<std::string>{"0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5"});
  EXPECT_EQ(process.compiles[2].attempts.at(0).recompileReasons, (std::vector<std::string>{"0/1: why", "0/0: other"}));
  EXPECT_EQ(placeAmongRecompiles(process, process.compiles[1]), std::pair(2, 3));
}

// The same in text logs.
TEST(JobLog, ReasonsOfRecompilesInText) {
  const auto line = [](const std::string& text) {
    return "V1122 08:20:21.133000 77 a/b.py:18] [0/1] [__recompiles] " + text + "\n";
  };
  const auto log =
      open(line("Recompiling function f in t.py:3") + line("    triggered by the following guard failure(s):") +
           line("    - 0/0: tensor 'x' rank mismatch. expected 1, actual 2"));
  EXPECT_EQ(log.processes.at(0).compiles.at(0).attempts.at(0).recompileReasons,
            std::vector<std::string>{"0/0: tensor 'x' rank mismatch. expected 1, actual 2"});
}

// Issue 18, 4: truncated, garbled and mixed logs give a partial tree that says what is missing.
TEST(JobLog, PartialLogsSayWhatIsMissing) {
  const auto whole = graphRecord("dynamo_output_graph", first) + graphRecord("aot_joint_graph", first) +
                     graphRecord("aot_forward_graph", first);
  const auto log = open(whole.substr(0, whole.size() - 30));
  EXPECT_TRUE(log.processes.at(0).compiles.at(0).attempts.at(0).graphs.at(2).damaged);
  EXPECT_EQ(log.processes[0].problems.size(), 2U);
  const auto garbled =
      open("\x01\x02 nonsense\n" + record(R"({"aot_joint_graph": {}, "frame_id)", "x") + whole + "more nonsense\n");
  EXPECT_EQ(garbled.graphCount(), 3U);
  std::string all;
  for (const auto& problem : garbled.processes.at(0).problems) all += problem.place + ": " + problem.message + "\n";
  EXPECT_NE(all.find("job.log:2: a record that is not whole JSON"), std::string::npos) << all;
  EXPECT_NE(all.find("job.log:1: 2 lines belong to no record"), std::string::npos) << all;
  EXPECT_NE(all.find("0/0 has a forward graph and no backward graph"), std::string::npos) << all;
  EXPECT_THROW(open("nothing of this\nis a log\n"), Error);
  EXPECT_THROW(openJobLog("/nowhere"), Error);
}

// J4: TORCH_LOGS text; lines of other loggers between them.
TEST(JobLog, J4_TextLogs) {
  const std::string head = "[rank1]:I1122 09:15:10.160000 29013 x/graph_compile.py:1844] [0/0] [__aot_joint_graph] ";
  std::string text = "some line\n" + head + "TRACED GRAPH\n" + head + " ===== Joint graph 0 =====\n";
  std::string_view rest = graphText;
  for (bool isFirst = true; !rest.empty(); isFirst = false) {
    const auto end = std::min(rest.find('\n'), rest.size());
    text +=
        head + (isFirst ? " /x/_lazy_graph_module.py " : "") + std::string(rest.substr(0, end)) + "\nother output\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto log = open(text);
  EXPECT_EQ(log.form, JobLog::Form::text);
  ASSERT_EQ(log.graphCount(), 1U);
  EXPECT_EQ(log.processes[0].rank, 1);
  EXPECT_EQ(payloadText(log, log.processes[0].compiles[0].attempts[0].graphs[0].payload), graphText + "\n");
  expectAllRead(log);
  EXPECT_TRUE(open(text.substr(0, text.find("return"))).processes[0].compiles[0].attempts[0].graphs[0].damaged);
}

// All logs of the samples, and other ones laid next to them.
TEST(JobLog, J2_LogsOfTheSamplesRead) {
  const auto folder = test::cases() / "jobs";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the samples are not beside this checkout";
  for (const auto& path : test::filesBelow(folder, ".log")) {
    if (std::filesystem::file_size(path) == 0 || path.find("raw.log") != std::string::npos) continue;
    const auto log = openJobLog(path);
    EXPECT_GT(log.graphCount(), 0U) << path;
    expectAllRead(log);
    for (const auto& process : log.processes) EXPECT_TRUE(process.problems.empty()) << process.problems[0].message;
  }
  expectAllRead(openJobLog((folder / "logs" / "torch_logs.txt").string()));
  EXPECT_EQ(openJobLog((folder / "ranks" / "trace").string()).processes.size(), 2U);
}

// J4: a folder that tlparse made reads as the log.
TEST(JobLog, J4_TlparseFolderReadsAsTheLog) {
  const auto folder = test::cases() / "jobs";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the samples are not beside this checkout";
  const auto made = openJobLog((folder / "tlparse" / "folder").string()),
             log = openJobLog((folder / "gpt" / "trace").string());
  ASSERT_EQ(made.graphCount(), log.graphCount());
  const auto &a = made.processes.at(0).compiles.at(0), &b = log.processes.at(0).compiles.at(0);
  EXPECT_EQ(a.function, b.function);
  for (std::size_t i = 0; i < b.attempts[0].graphs.size(); ++i) {
    EXPECT_EQ(a.attempts[0].graphs[i].kind, b.attempts[0].graphs[i].kind);
    EXPECT_EQ(payloadText(made, a.attempts[0].graphs[i].payload) + "\n",
              payloadText(log, b.attempts[0].graphs[i].payload));
  }
  EXPECT_EQ(describedInputs(made, a.attempts[0]).size(), describedInputs(log, b.attempts[0]).size());
}

}  // namespace
}  // namespace retrograd::jobs
