#include "core/formats/model/model_file.h"

#include <gtest/gtest.h>

#include <set>

#include "core/formats/pt2/pt2.h"
#include "core/formats/read/read_file.h"
#include "core/formats/zip/archive.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/flipped_bits.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/core/formats/zip/zip_writer.h"

namespace retrograd {
namespace {

using test::stubLookup;

std::string pathOf(const std::string& name, const std::string& file = "model.pt2") {
  return (test::data() / name / file).string();
}
ModelFile read(const std::string& name, const std::string& file = "model.pt2") {
  return readModelFile(pathOf(name, file), stubLookup);
}

/// Archive content with one record changed, and right checksums around it.
std::string changed(const std::string& name, const std::string& record,
                    const std::function<std::string(std::string)>& change) {
  const auto archive = Archive::open(pathOf(name));
  test::ZipContent content;
  for (const auto& entry : archive->entries()) {
    std::string text(archive->read(entry.name).text());
    content.emplace_back("model/" + entry.name, entry.name == record ? change(std::move(text)) : std::move(text));
  }
  return test::makeZip(content);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

ModelFile readBytes(const std::string& bytes) {
  return readModelFile(test::writeTemporary("changed.pt2", bytes), stubLookup);
}

/// Without a file, for the loops over many damaged archives.
ModelFile readInMemory(const std::string& bytes) {
  auto kept = std::make_shared<std::string>(bytes);
  return readPt2(
      Archive::open(ByteRegion{reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept}, "changed.pt2"),
      stubLookup, {});
}

std::string failure(const std::string& bytes) {
  try {
    readBytes(bytes);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    EXPECT_NE(e.place().find("changed.pt2"), std::string::npos);
    return e.what();
  }
  return "nothing failed";
}

std::string graphFailure(const std::string& from, const std::string& to, const std::string& name = "mlp") {
  return failure(
      changed(name, "models/model.json", [&](std::string text) { return replaced(std::move(text), from, to); }));
}

/// All that a reader could get wrong, as one text.
std::string summary(const ModelFile& file) {
  std::string text = file.torchVersion + "\n";
  const auto& document = *file.document;
  for (const auto op : file.computation.trace.ops) {
    text += document.opName(op);
    for (const auto v : document.operands(op)) text += " " + document.displayName(v);
    text += " ->";
    for (const auto v : document.outputs(op))
      text += " " + document.displayName(v) + (document.isTensor(v) ? typeComment(document.meta(v)) : "");
    text += " @" + std::string(document.text(document.boundSymbol(op).module)) + "\n";
  }
  for (const auto& [name, tensor] : file.weights) {
    text += name + " " + typeComment(tensor.meta) + " ";
    text.append(reinterpret_cast<const char*>(tensor.data), tensor.bytes);
  }
  for (const auto& [name, tensor] : file.sampleInputs) {
    text += name + " " + typeComment(tensor.meta) + " ";
    text.append(reinterpret_cast<const char*>(tensor.data), tensor.bytes);
  }
  return text;
}

TEST(ModelFile, readsAnMlp) {
  const auto file = read("mlp");
  const auto& document = *file.document;
  const auto& trace = file.computation.trace;
  EXPECT_EQ(file.torchVersion.substr(0, 2), "2.");
  ASSERT_EQ(trace.inputs.size(), 7u);
  ASSERT_EQ(trace.ops.size(), 5u);
  EXPECT_EQ(document.opName(trace.ops[0]), "torch.ops.aten.linear.default");
  EXPECT_EQ(document.text(document.boundSymbol(trace.ops[0]).module), "l1");
  const auto& stack = document.source(document.boundSymbol(trace.ops[0]).source);
  ASSERT_FALSE(stack.empty());
  EXPECT_EQ(stack.front().file, "cases/case_defs.py");
  EXPECT_EQ(document.operands(trace.ops[0])[0], trace.inputs[6]);
  EXPECT_EQ(file.computation.inputs[0].target, "l1.weight");
  EXPECT_TRUE(file.computation.inputs[0].requiresGrad);
  EXPECT_EQ(file.computation.inputs[6].kind, InputKind::user);
  EXPECT_TRUE(file.computation.inputs[6].requiresGrad);
  EXPECT_EQ(file.weights.at("l1.weight").bytes, 512u);
  EXPECT_TRUE(file.sampleInputs.contains("x"));
  EXPECT_TRUE(document.storage(trace.inputs[0]).external);
  EXPECT_TRUE(file.problems.empty());
}

TEST(ModelFile, outputsMayBeLiteralsAndInputs) {
  const auto file = read("multi_output");
  const auto& outputs = file.computation.outputs;
  ASSERT_EQ(outputs.size(), 8u);
  EXPECT_EQ(outputs[5].literal, Argument::ofInt(3));
  EXPECT_FALSE(outputs[5].value);
  EXPECT_EQ(outputs[6].value, file.computation.inputs[4].value);
  EXPECT_EQ(outputs[7].literal.kind, Argument::Kind::none);
  const auto max = file.computation.trace.ops[1];
  EXPECT_EQ(file.document->outputs(max).size(), 2u);
  const auto& pattern = file.document->pattern(file.document->boundSymbol(max).pattern);
  ASSERT_EQ(pattern.arguments.size(), 3u);
  EXPECT_EQ(pattern.arguments[2].kind, Argument::Kind::missing);
}

TEST(ModelFile, branchesAreInSubgraphs) {
  const auto file = read("cond_hop");
  const auto& document = *file.document;
  const auto& ops = file.computation.trace.ops;
  ASSERT_EQ(ops.size(), 3u);
  const auto& cond = document.boundSymbol(ops[2]);
  EXPECT_TRUE(document.symbol(cond.symbol).isHigherOrder);
  EXPECT_TRUE(cond.effects & effect::needsData);
  const auto& pattern = document.pattern(cond.pattern);
  ASSERT_EQ(pattern.arguments[1].kind, Argument::Kind::subgraph);
  const auto& branch = document.subgraph(SubgraphId(pattern.arguments[1].integer));
  EXPECT_EQ(branch.name, "true_graph_0");
  ASSERT_EQ(branch.ops.size(), 2u);
  EXPECT_EQ(document.boundSymbol(branch.ops[0]).parent, ops[2]);
  EXPECT_EQ(document.value(branch.inputs[0]).storage, document.value(file.computation.inputs[4].value).storage);
}

TEST(ModelFile, A30_ANameMeansOneValueOverAllGraphs) {
  const auto file = read("cond_hop");
  const auto& document = *file.document;
  std::set<std::string> names;
  for (std::size_t i = 0; i < document.valueCount(); ++i) {
    const auto name = document.displayName(ValueId(static_cast<std::int64_t>(i)));
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_TRUE(names.contains("x") && names.contains("x_1") && names.contains("x_2"))
      << "of the main graph and of both branches";
}

TEST(ModelFile, trainingBatchNormWritesItsStatistics) {
  const auto file = read("batchnorm_train");
  const auto& document = *file.document;
  const auto& ops = file.computation.trace.ops;
  EXPECT_TRUE(document.boundSymbol(ops[1]).effects & effect::writes);
  EXPECT_EQ(document.value(document.outputs(ops[1])[0]).version, 1);
  EXPECT_EQ(document.value(document.outputs(ops[1])[0]).storage, document.value(document.operands(ops[1])[0]).storage);
  EXPECT_TRUE(document.boundSymbol(ops[2]).effects & effect::writes);
}

TEST(ModelFile, decomposedGraphsReturnMutations) {
  const auto file = read("batchnorm_train", "core.pt2");
  EXPECT_EQ(file.computation.outputs[0].kind, OutputKind::bufferMutation);
  EXPECT_EQ(file.computation.outputs.back().kind, OutputKind::user);
}

TEST(ModelFile, unknownOpsAreProblems) {
  const auto bytes = changed("mlp", "models/model.json", [](std::string text) {
    return replaced(std::move(text), "aten.linear.default", "mine.op.default");
  });
  const auto file = readBytes(bytes);
  ASSERT_EQ(file.problems.size(), 1u);
  EXPECT_EQ(file.problems[0].severity, Problem::Severity::warning);
  EXPECT_NE(file.problems[0].message.find("mine.op.default"), std::string::npos);
  EXPECT_NE(file.problems[0].place.find("in l1"), std::string::npos);
  EXPECT_FALSE(file.document->symbol(file.computation.trace.ops[0]).known);
}

TEST(ModelFile, customFunctionsAreWarnedOf) {
  const auto bytes = changed("mlp", "models/model.json", [](std::string text) {
    return replaced(std::move(text), "\\n    return F.linear(", "\\n    return Mine.apply(");
  });
  const auto file = readBytes(bytes);
  ASSERT_EQ(file.problems.size(), 1u);
  EXPECT_EQ(file.problems[0].severity, Problem::Severity::warning);
}

TEST(ModelFile, refusesWrongGraphs) {
  EXPECT_NE(graphFailure(R"({"name": "input")", R"({"name": "inputs")").find("has no argument 'inputs'"),
            std::string::npos);
  EXPECT_NE(graphFailure(R"({"name": "weight", "arg")", R"({"name": "input", "arg")").find("given twice"),
            std::string::npos);
  EXPECT_NE(graphFailure(R"("arg": {"as_tensor": {"name": "x"}}, "kind")", R"("arg": {"as_string": "x"}, "kind")")
                .find("schema wants Tensor"),
            std::string::npos);
  EXPECT_NE(
      graphFailure(R"("arg": {"as_tensor": {"name": "x"}}, "kind")", R"("arg": {"as_tensor": {"name": "y"}}, "kind")")
          .find("'y' is used"),
      std::string::npos);
  EXPECT_NE(graphFailure(R"("outputs": [{"as_tensor": {"name": "linear"}}])", R"("outputs": [])")
                .find("outputs where the schema"),
            std::string::npos);
  EXPECT_NE(
      graphFailure(R"("outputs": [{"as_tensor": {"name": "linear"}}])", R"("outputs": [{"as_tensor": {"name": "x"}}])")
          .find("defined twice"),
      std::string::npos);
  EXPECT_NE(graphFailure(R"("sizes": [{"as_int": 16}, {"as_int": 8}])", R"("sizes": [{"as_int": -16}, {"as_int": 8}])")
                .find("negative"),
            std::string::npos);
  EXPECT_NE(graphFailure(R"("sizes": [{"as_int": 16}, {"as_int": 8}])", R"("sizes": [{"as_int": 17}, {"as_int": 8}])")
                .find("in the graph but"),
            std::string::npos);
  EXPECT_NE(graphFailure(R"("sizes": [{"as_int": 16}, {"as_int": 8}])",
                         R"("sizes": [{"as_int": 9223372036854775807}, {"as_int": 8}])")
                .find("2^63"),
            std::string::npos);
  EXPECT_NE(graphFailure(R"("graph_module")", R"("graph_modules")").find("'graph_module' is missing"),
            std::string::npos);
  EXPECT_NE(graphFailure(R"("as_tensor": {"name": "x"})", R"("as_future": {"name": "x"})"), "nothing failed");
  EXPECT_NE(graphFailure(R"("nodes": [)", R"("nodes": {)").find("not valid JSON"), std::string::npos);
}

TEST(ModelFile, errorsNameRecordAndNode) {
  const auto text =
      graphFailure(R"("arg": {"as_tensor": {"name": "x"}}, "kind")", R"("arg": {"as_string": "x"}, "kind")");
  EXPECT_NE(text.find("changed.pt2: models/model.json: node linear: argument 'input'"), std::string::npos) << text;
}

TEST(ModelFile, refusesShortAndMissingWeights) {
  EXPECT_NE(
      failure(changed("mlp", "data/weights/weight_0", [](std::string s) { return s.substr(4); })).find("has 508 bytes"),
      std::string::npos);
  const auto config = [](const char* from, const char* to) {
    return failure(changed("mlp", "data/weights/model_weights_config.json",
                           [&](std::string s) { return replaced(std::move(s), from, to); }));
  };
  EXPECT_NE(config("\"weight_3\"", "\"weight_9\"").find("lacks this record"), std::string::npos);
  EXPECT_NE(config("\"l2.bias\"", "\"other\"").find("no data for 'l2.bias'"), std::string::npos);
  EXPECT_NE(config("\"dtype\": 7", "\"dtype\": 99").find("unknown dtype"), std::string::npos);
  EXPECT_NE(config("\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": 4611686018427387904}")
                .find("2^63"),
            std::string::npos);
}

TEST(ModelFile, refusesDeepJson) {
  const auto deep = [](std::size_t n) { return std::string(n, '['); };
  EXPECT_NE(
      failure(changed("mlp", "models/model.json", [&](std::string) { return deep(1'000'000); })).find("nested deeper"),
      std::string::npos);
  EXPECT_NE(failure(changed("mlp", "models/model.json", [](std::string) { return std::string(); })), "nothing failed");
  EXPECT_NE(failure(changed("mlp", "models/model.json", [](std::string) { return std::string("42"); })),
            "nothing failed");
}

TEST(ModelFile, samplesThatCannotBeReadAreANote) {
  const auto file =
      readBytes(changed("mlp", "data/sample_inputs/model.pt", [](std::string) { return std::string("garbage"); }));
  EXPECT_TRUE(file.sampleInputs.empty());
  ASSERT_EQ(file.problems.size(), 1u);
  EXPECT_EQ(file.problems[0].severity, Problem::Severity::note);
}

TEST(ModelFile, truncatedFilesAreRefused) {
  const auto bytes = test::contentOf(pathOf("mlp"));
  for (std::size_t n = 0; n < bytes.size(); n += 331) EXPECT_NE(failure(bytes.substr(0, n)), "nothing failed") << n;
}

TEST(ModelFile, flippedBitsGiveAnErrorOrTheSameModel) {
  test::expectFlippedBitsNoticed(test::contentOf(pathOf("mlp")), 101,
                                 [](const std::string& bytes) { return summary(readInMemory(bytes)); });
}

TEST(ModelFile, damagedJsonBehindRightChecksumsNeverCrashes) {
  const auto archive = Archive::open(pathOf("cond_hop"));
  const std::string json(archive->read("models/model.json").text());
  for (std::size_t at = 0; at < json.size(); at += 37) {
    for (const char c : {'0', '"', '{', ']', '-'}) {
      auto text = json;
      text[at] = c;
      try {
        readInMemory(changed("cond_hop", "models/model.json", [&](std::string) { return text; }));
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::badInput) << e.what();
      }
    }
  }
}

TEST(ModelFile, canBeCancelled) {
  std::stop_source stop;
  stop.request_stop();
  try {
    readModelFile(pathOf("mlp"), stubLookup, Progress(stop.get_token(), {}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace retrograd
