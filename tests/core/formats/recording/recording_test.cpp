#include "core/formats/recording/recording.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/formats/recording/recording_hash.h"
#include "core/trace/effects.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

const std::string begin = R"({"k":"begin","format":"retrograd.recording.ops","version":1}
{"k":"step","n":7}
{"k":"mode","grad":true,"inference":false,"autocast":{},"phase":"forward"}
{"k":"frame","id":0,"file":"train.py","line":12,"function":"forward","code":"y = x * 2"}
{"k":"stack","id":0,"frames":[0]}
{"k":"module","id":0,"path":"block.act","class":"Tanh"}
{"k":"storage","id":0,"bytes":16,"device":"cpu","data":"s0"}
{"k":"name","id":0,"storage":0,"role":"parameter","name":"weight"}
{"k":"tensor","id":0,"storage":0,"offset":0,"sizes":[2,2],"strides":[2,1],"dtype":"float32"}
{"k":"storage","id":1,"bytes":16,"device":"cpu"}
{"k":"tensor","id":1,"storage":1,"offset":0,"sizes":[2,2],"strides":[2,1],"dtype":"float32"}
)";
const std::string forward =
    R"({"k":"op","n":0,"op":"aten.tanh.default","in":[{"t":0}],"out":{"t":1},"hash":["00000000000000ff"],"stack":0,"module":0,"call":0}
)";
const std::string backward = R"({"k":"backward","n":0}
{"k":"mode","grad":false,"inference":false,"autocast":{},"phase":"backward"}
{"k":"storage","id":2,"bytes":16,"device":"cpu"}
{"k":"tensor","id":2,"storage":2,"offset":0,"sizes":[2,2],"strides":[2,1],"dtype":"float32"}
{"k":"op","n":1,"op":"aten.tanh_backward.default","in":[{"t":1},{"t":1}],"out":{"t":2},"node":"TanhBackward0","of":0}
)";
const std::string end = R"({"k":"end","ops":2}
)";

ModelFile readText(const std::string& text) { return readRecordingText(text, {}, test::stubLookup); }

std::string refusal(const std::string& text) {
  try {
    readText(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::badInput);
    return error.what();
  }
  return "it was read";
}

TEST(Recording, C10_OpsArePhasesLinesAndModulesInTheirOrder) {
  const auto file = readText(begin + forward + backward + end);
  const auto& document = *file.document;
  ASSERT_EQ(file.computation.trace.ops.size(), 2u);
  const auto first = file.computation.trace.ops[0], second = file.computation.trace.ops[1];
  EXPECT_EQ(document.opName(first), "torch.ops.aten.tanh.default");
  EXPECT_EQ(file.recording->op(first).phase, Phase::forward);
  EXPECT_EQ(file.recording->op(second).phase, Phase::backward);
  EXPECT_EQ(file.recording->op(first).step, 7);
  EXPECT_EQ(file.recording->forwardCount, 1u);
  EXPECT_EQ(document.text(document.boundSymbol(first).module), "block.act");
  EXPECT_EQ(recordedLine(document, first), "train.py:12 in forward");
  EXPECT_EQ(document.text(file.recording->op(second).node), "TanhBackward0");
  EXPECT_FALSE(document.boundSymbol(second).gradMode);
  EXPECT_EQ(file.computation.inputs.at(0).target, "weight");
  EXPECT_EQ(file.computation.inputs.at(0).kind, InputKind::parameter);
  EXPECT_EQ(file.recording->damage, "");
}

TEST(Recording, C3_ABackwardOpHasTheForwardOpOfItsNodeAsOrigin) {
  const auto file = readText(begin + forward + backward + end);
  const auto& origin = file.document->boundSymbol(file.computation.trace.ops[1]).origin;
  EXPECT_EQ(origin.op, file.computation.trace.ops[0]);
  EXPECT_EQ(origin.role, Role::gradient);
}

TEST(Recording, C15_ABrokenStreamOpensUpToTheBreak) {
  for (const std::string tail : {std::string(R"({"k":"op","n":1,"op":"aten.ta)"), std::string("\x01\x02 no JSON\n"),
                                 std::string("[1, 2]\n"), std::string()}) {
    const auto file = readText(begin + forward + tail);
    EXPECT_EQ(file.computation.trace.ops.size(), 1u) << tail;
    EXPECT_NE(file.recording->damage, "") << tail;
    EXPECT_FALSE(file.problems.empty()) << tail;
  }
}

TEST(Recording, C15_WhatContradictsItselfIsRefusedWithItsLine) {
  const auto tensor = [](const std::string& fields) {
    return begin + R"({"k":"tensor","id":2,"storage":0,)" + fields + R"(,"dtype":"float32"})" + "\n" + end;
  };
  EXPECT_NE(refusal(tensor(R"("offset":1,"sizes":[2,2],"strides":[2,1])")).find("line 12: tensor 2 reaches beyond"),
            std::string::npos);
  for (const auto* fields :
       {R"("offset":0,"sizes":[5],"strides":[1])", R"("offset":-1,"sizes":[1],"strides":[1])",
        R"("offset":0,"sizes":[-1],"strides":[1])", R"("offset":4,"sizes":[2],"strides":[-4])",
        R"("offset":0,"sizes":[4611686018427387904,4],"strides":[4,1])",
        R"("offset":0,"sizes":[9223372036854775807],"strides":[0])",
        R"("offset":9223372036854775807,"sizes":[1],"strides":[1])", R"("offset":0,"sizes":[2],"strides":[1,1])"})
    EXPECT_NE(refusal(tensor(fields)), "it was read") << fields;
  EXPECT_NE(refusal(begin + R"({"k":"tensor","id":5,"storage":0})" + "\n").find("the id 5 where 2 follows"),
            std::string::npos);
  const auto op = [](const std::string& fields) {
    return begin + forward + R"({"k":"op","n":1,"op":"aten.tanh.default",)" + fields + "}\n" + end;
  };
  EXPECT_NE(refusal(op(R"("in":[{"t":9}],"out":{"t":1})")).find("there is no tensor 9"), std::string::npos);
  EXPECT_NE(refusal(op(R"("in":[{"t":0}],"out":{"t":1},"of":4)")).find("there is no op 4"), std::string::npos);
  EXPECT_NE(refusal(op(R"("in":[{"t":0}],"out":{"t":1},"stack":3)")).find("there is no stack 3"), std::string::npos);
  EXPECT_NE(refusal(op(R"("in":[{"t":0}],"out":{"t":1},"hash":["ff"])")).find("16 hexadecimal"), std::string::npos);
  EXPECT_NE(refusal(op(R"("in":[{"t":0}],"out":{"t":1},"hash":[null,null])")).find("number of hashes"),
            std::string::npos);
}

TEST(Recording, C15_AnOpThatIsNotOnTheListIsOpaqueAndItsNameHasNoPower) {
  for (const std::string name : {"aten.from_file.default", "evil.run.default", "os.system", "aten.tanh.nothing"}) {
    const auto file = readText(begin + R"({"k":"op","n":0,"op":")" + name +
                               R"(","in":[{"t":0},"rm -rf /"],"out":{"t":1},"values":["v0.0"]})" + "\n" + end);
    const auto op = file.computation.trace.ops.at(0);
    EXPECT_TRUE(file.recording->op(op).opaque) << name;
    EXPECT_FALSE(file.document->symbol(op).known) << name;
    EXPECT_EQ(file.recording->puts.at(0).data, "v0.0");
  }
}

TEST(Recording, C15_ArgumentsThatDoNotFitTheSchemaMakeAnOpOpaque) {
  for (const std::string in : {R"([])", R"([{"t":0},{"t":0}])", R"(["text"])", R"([{"opaque":"Work"}])"}) {
    const auto file =
        readText(begin + R"({"k":"op","n":0,"op":"aten.tanh.default","in":)" + in + R"(,"out":{"t":1}})" + "\n" + end);
    EXPECT_TRUE(file.recording->op(file.computation.trace.ops.at(0)).opaque) << in;
  }
}

TEST(Recording, C15_ANewerVersionSaysSo) {
  EXPECT_NE(refusal(R"({"k":"begin","format":"retrograd.recording.ops","version":2})"
                    "\n")
                .find("version 2; this Retrograd reads version 1"),
            std::string::npos);
}

TEST(Recording, C2_AWriteIsAnotherVersionOfItsMemoryAndAViewThatNobodyMadeIsMade) {
  const auto file =
      readText(begin + R"({"k":"op","n":0,"op":"aten.mul_.Tensor","in":[{"t":0},2.0],"out":{"t":0}})" + "\n" +
               R"({"k":"tensor","id":2,"storage":0,"offset":2,"sizes":[2],"strides":[1],"dtype":"float32"})" + "\n" +
               R"({"k":"op","n":1,"op":"aten.tanh.default","in":[{"t":2}],"out":{"t":1}})" + "\n" + end);
  const auto& document = *file.document;
  ASSERT_EQ(file.computation.trace.ops.size(), 3u);  // the view is between them
  const auto written = document.outputs(file.computation.trace.ops[0])[0];
  EXPECT_EQ(document.value(written).version, 1);
  EXPECT_EQ(document.value(written).storage, document.value(file.computation.inputs[0].value).storage);
  EXPECT_EQ(document.opName(file.computation.trace.ops[1]), "torch.ops.aten.as_strided.default");
  EXPECT_EQ(file.recording->op(file.computation.trace.ops[1]).number, -1);
}

TEST(Recording, C5_MemoryThatChangedWithoutAnOpIsAnOpaqueWrite) {
  const auto file = readText(begin + forward + R"({"k":"external","storage":0,"data":"x0","stack":0})" + "\n" +
                             R"({"k":"op","n":1,"op":"aten.tanh.default","in":[{"t":0}],"out":{"t":1}})" + "\n" + end);
  const auto write = file.computation.trace.ops.at(1);
  EXPECT_TRUE(file.recording->op(write).opaque);
  EXPECT_EQ(writtenOperands(*file.document, write).size(), 1u);
  EXPECT_EQ(file.document->operands(file.computation.trace.ops.at(2))[0], file.document->outputs(write)[0]);
  EXPECT_TRUE(file.recording->puts.at(0).storage);
}

TEST(Recording, C4_HashesAreThoseOfTheFormat) {
  const std::uint64_t word = 1;
  EXPECT_EQ(recordingHash({}), 0u);
  EXPECT_EQ(recordingHash(std::as_bytes(std::span(&word, 1))),
            recordingKey(0) * recordingKey(std::uint64_t{1} << 32) + 8 * recordingKey(std::uint64_t{1} << 33));
  std::vector<float> a(5000, 0.5F), b;
  a[3] = 1;
  b = a;
  std::swap(b[3], b[4100]);
  EXPECT_NE(recordingHash(std::as_bytes(std::span(a))), recordingHash(std::as_bytes(std::span(b))));
  EXPECT_EQ(parseRecordingHash(recordingHashText(0xdeadbeef)), 0xdeadbeefU);
}

TEST(Recording, C10_AFolderThatThePythonPackageWroteOpensWithAllPhases) {
  const auto path = sourcePath("tests/data/recordings/step");
  EXPECT_TRUE(isRecording(path));
  const auto file = readRecording(path, test::stubLookup);
  const auto& recording = *file.recording;
  EXPECT_EQ(recording.damage, "");
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.updates, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(recording.optimized.size(), 6u);
  std::map<Phase, int> phases;
  for (const auto& op : recording.ops) ++phases[op.phase];
  for (const auto phase : {Phase::forward, Phase::loss, Phase::backward, Phase::recompute, Phase::hook,
                           Phase::accumulation, Phase::clip, Phase::optimizer, Phase::other})
    EXPECT_GT(phases[phase], 0) << name(phase);
  EXPECT_EQ(recording.losses.size(), 2u);
  EXPECT_EQ(recording.gradients.count("first.weight"), 1u);
}

TEST(Recording, C15_AFolderThatIsCutOffAtAnyByteOpensOrIsRefused) {
  const auto folder = fs::temp_directory_path() / ("retrograd-recording-" + std::to_string(getpid()));
  fs::copy(sourcePath("tests/data/recordings/step"), folder, fs::copy_options::recursive);
  const auto size = fs::file_size(folder / "ops.jsonl");
  for (std::uintmax_t cut = size; cut > 100; cut -= std::min<std::uintmax_t>(cut, 997)) {
    fs::resize_file(folder / "ops.jsonl", cut);
    const auto file = readRecording(folder.string(), test::stubLookup);
    EXPECT_EQ(file.recording->damage.empty(), cut == size) << cut;
  }
  fs::resize_file(folder / "data" / "00000.safetensors", 50);
  EXPECT_NE(readRecording(folder.string(), test::stubLookup).recording->damage, "");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace retrograd
