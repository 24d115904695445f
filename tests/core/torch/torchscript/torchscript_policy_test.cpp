// The border: a file that names what no file may do is refused, with the op's name and line, before anything of it has
// run.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/formats/read/read_file.h"
#include "tests/core/torch/torchscript/script_files.h"

namespace retrograd {
namespace {

using test::archiveOf;
using test::replaced;

/// A place that hostile code tries to write to.
class Border : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(target_); }
  void TearDown() override {
    EXPECT_FALSE(std::filesystem::exists(target_)) << "the file's code has written " << target_;
  }

  std::string save(const std::string& what = "1") const { return "torch.save(" + what + ", \"" + target_ + "\")"; }

  static std::string refusal(const std::string& bytes, const TraceInputs& inputs) {
    try {
      traceTorchScript(archiveOf(bytes), inputs);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::badInput) << e.what();
      return e.what();
    }
    return "nothing was refused";
  }
  static std::string refusal(const std::string& name, const std::string& record, const std::string& from,
                             const std::string& to) {
    TraceInputs inputs;
    inputs.shapes["x"] = {{2, 3}, std::nullopt};
    return refusal(replaced(name, record, from, to), inputs);
  }
  void expectRefused(const std::string& message, const std::string& what) const {
    EXPECT_NE(message.find(what), std::string::npos) << message;
  }

  const std::string target_ =
      (std::filesystem::temp_directory_path() / ("retrograd-border-" + std::to_string(::getpid()))).string();
  static constexpr const char* code = "code/__torch__.py";
  static constexpr const char* first = "    a0 = self.a\n";  // a line of nograd's forward
};

TEST_F(Border, refusesOpsByNameAndLine) {
  TraceInputs inputs;
  inputs.shapes["x"] = {{2}, std::nullopt};
  const auto seeding = refusal(test::contentOf(test::scriptFile("seeding")), inputs);
  expectRefused(seeding, "the op aten::manual_seed may not run from a file");
  expectRefused(seeding, "make.py:");
  expectRefused(refusal("nograd", code, first, "    " + save() + "\n" + first),
                "the op aten::save may not run from a file");
}

TEST_F(Border, refusesWhatWouldNeverRun) {
  expectRefused(refusal("nograd", code, first,
                        "    if torch.gt(torch.dim(x), 9):\n      " + save() + "\n    else:\n      pass\n" + first),
                "aten::save");
}

TEST_F(Border, refusesWhatIsReachedThroughACall) {
  const std::string linear = "code/__torch__/torch/nn/modules/linear.py", line = "    weight = self.weight\n";
  expectRefused(refusal("nograd", linear, line, "    " + save() + "\n" + line), "aten::save");
  const std::string guard = "code/__torch__/torch/autograd/grad_mode.py", enter = "    torch.set_grad_enabled(False)\n";
  expectRefused(refusal("nograd", guard, enter, enter + "    " + save() + "\n"), "aten::save");
}

TEST_F(Border, refusesEveryOpThatReachesOut) {
  for (const std::string op :
       {"torch.manual_seed(1)", "torch.add_(x, ops.aten.from_file(\"/etc/passwd\"))", "torch.backward(torch.sum(x))",
        "torch.add_(x, unchecked_cast(Tensor, (torch.grad([x], [x]))[0]))",
        "torch.add_(x, ops.quantized.relu6(x, False))", "torch.add_(x, ops.profiler._record_function_enter(\"x\"))",
        "torch.add_(x, int(ops.mkldnn._is_mkldnn_bf16_supported()))", "torch.add_(x, torch.cuda(x))",
        "torch.add_(x, ops.prim.TimePoint())", "torch.add_(x, torch.rand([1], generator=torch.Generator()))"}) {
    const auto message = refusal("nograd", code, first, "    " + op + "\n" + first);
    EXPECT_TRUE(message.find("may not run from a file") != std::string::npos ||
                message.find("may not come from a file") != std::string::npos)
        << op << ": " << message;
  }
}

TEST_F(Border, refusesCodeInsteadOfALiteral) {
  const std::string from = "scale: float=1.5";
  expectRefused(refusal("control", code, from, "scale: float=float(" + save() + ")"),
                "the default of an argument is more than a literal");
  expectRefused(refusal("control", code, from, "scale: float=[float(" + save() + ")][0]"), "more than a literal");
  const std::string constant = "out_features : Final[int] = 3";
  expectRefused(refusal("nograd", "code/__torch__/torch/nn/modules/linear.py", constant,
                        "out_features : Final[int] = int(" + save() + ")"),
                "a constant of a class is more than a literal");
}

TEST_F(Border, refusesCodeThatRestoresState) {
  TraceInputs inputs;
  inputs.shapes["x"] = {{2}, std::nullopt};
  expectRefused(refusal(test::contentOf(test::scriptFile("stateful")), inputs), "__setstate__");
  // Also where its body would write at once.
  expectRefused(refusal(replaced("stateful", code, "    self.training = (state)[1]\n",
                                 "    " + save() + "\n    self.training = (state)[1]\n"),
                        inputs),
                "__setstate__");
}

TEST_F(Border, refusesClassesOfCpp) {
  TraceInputs inputs;
  inputs.shapes["input"] = {{1, 4}, std::nullopt};
  expectRefused(refusal(test::contentOf(test::scriptFile("cpp_class")), inputs),
                "__torch__.torch.classes.quantized.LinearPackedParamsBase");
  expectRefused(
      refusal("nograd", code, first, "    e = torch.classes.dist_c10d.FileStore(\"" + target_ + "\", 1)\n" + first),
      "torch.classes");
  expectRefused(refusal("nograd", code, first,
                        "    e = __torch__.torch.classes.dist_c10d.FileStore(\"" + target_ + "\", 1)\n" + first),
                "torch.classes");
}

TEST_F(Border, refusesCallsWithoutEnd) {
  const std::string module = "code/__torch__/torch/nn/modules/linear.py",
                    line = "    return torch.linear(input, weight, bias)\n";
  TraceInputs inputs;
  inputs.shapes["x"] = {{2, 3}, std::nullopt};
  const auto bytes = replaced("nograd", module, line, "    return (self).forward(input, )\n");
  EXPECT_THROW(traceTorchScript(archiveOf(bytes), inputs), Error);
}

TEST(DamagedTorchScript, namesTheFile) {
  const auto whole = test::contentOf(test::scriptFile("nested"));
  for (const auto part : {whole.size() / 2, whole.size() - 10}) {
    try {
      openModelArchive(test::writeTemporary("cut.pt", whole.substr(0, part)));
      FAIL() << "it was read";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::badInput);
      EXPECT_NE(std::string(e.what()).find("cut.pt"), std::string::npos) << e.what();
    }
  }
}

/// Pickles are read by us alone: whatever is in them, with right checksums, is refused or read.
TEST(DamagedTorchScript, pickledNonsenseIsRefusedOrRead) {
  const auto content = test::contentOfArchive(test::scriptFile("nested"));
  std::uint32_t random = 12345;
  const auto next = [&] { return random = random * 1664525u + 1013904223u, random >> 8; };
  TraceInputs inputs;
  inputs.shapes["x"] = {{2, 4}, std::nullopt};
  int refused = 0;
  constexpr int rounds = 150;
  for (int round = 0; round < rounds; ++round) {
    auto changed = content;
    for (auto& [name, text] : changed)
      if (name == "m/data.pkl")
        for (int k = 0; k < 1 + round % 4; ++k) text[next() % text.size()] = static_cast<char>(next());
    try {
      traceTorchScript(archiveOf(test::makeZip(changed)), inputs);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds / 2);
}

}  // namespace
}  // namespace retrograd
