// Faults of a text are reported at their place, and nothing worse comes of them.
#include <gtest/gtest.h>

#include <random>

#include "core/formats/model/model_file.h"
#include "core/formats/read/read_file.h"
#include "core/formats/text/text_trace.h"
#include "core/trace/print/printer.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/stub_symbols.h"

namespace retrograd {
namespace {

using test::stubLookup;

std::string failure(const std::string& text) {
  try {
    readTextTraces(text, "m.txt", stubLookup);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput) << e.what();
    return e.what();
  }
  return "nothing failed";
}

const std::string head = "def computation(x):\n    # x: \"f32[2, 3]\"\n";

struct Mistake {
  std::string text, error;
};

TEST(TextErrors, NameLineColumnAndWhatWasExpected) {
  const std::vector<Mistake> mistakes{
      {head + "    y = aten.sin(x\n    return y\n", "m.txt:4:5: expected ',' or ')', found 'return'"},
      {head + "    y = aten.sin(z)\n    return y\n", "m.txt:3:18: expected a value that is defined above, found 'z'"},
      {head + "    y = aten.sin(x))\n    return y\n", "m.txt:3:20: expected the end of the line, found ')'"},
      {head + "    y = x\n    return y\n", "m.txt:3:9: expected an op that is called"},
      {head + "    y = aten.sin(\"a\n    return y\n", "m.txt:3:18: expected a closing quote"},
      {head + "    y = aten.sin(x); z = y\n    return y\n", "m.txt:3:20: expected the end of the line, found ';'"},
      {head + "    y = aten.sin(?)\n    return y\n", "m.txt:3:18: expected a name, a number or a sign, found \"?\""},
      {head + "    y = aten.sin(x[0])\n    return y\n", "m.txt:3:18: expected a value, found 'x[0]'"},
      {head + "    y = aten.view(x, [2**3])\n    return y\n", "m.txt:3:23: expected an integer, found '2**3'"},
      {head + "    y = torch.ops.my.op(x, +1)\n    return y\n", "m.txt:3:28: expected an integer, found '+1'"},
      {head + "    y = x.sin()(x)\n    return y\n", "m.txt:3:9: expected an op such as torch.ops.aten.sin.default"},
      {head + "    y = aten.sin(x)\n      z = aten.cos(y)\n    return y\n",
       "m.txt:4:7: expected the indentation of the lines before, 4 spaces"},
      {head + "    y = aten.sin(x)\n", "m.txt:1:1: expected 'return' at the end of 'computation'"},
      {head + "    return x\n    y = aten.sin(x)\n", "m.txt:4:5: expected nothing behind 'return'"},
      {head + "    x = aten.sin(x)\n    return x\n", "m.txt:3:5: expected a new name: 'x' is defined in line 1"},
      {head + "    y = aten.sin(x, x)\n    return y\n", "m.txt:3:21: expected fewer unnamed arguments for aten::sin"},
      {head + "    y = aten.sin()\n    return y\n", "m.txt:3:9: expected argument 'self' of aten::sin"},
      {head + "    y = aten.sin(x, dim=1)\n    return y\n", "m.txt:3:25: expected an argument of aten::sin"},
      {head + "    y = aten.mul.Tensor(x, other=x, other=x)\n    return y\n",
       "m.txt:3:37: expected 'other' to be given once"},
      {head + "    y = aten.mul.Tensor(self=x, x)\n    return y\n", "m.txt:3:33: expected a named argument"},
      {head + "    y = aten.view(x, [1.5])\n    return y\n",
       "m.txt:3:22: expected SymInt[] for argument 'size', found '[1.5]'"},
      {head + "    y = aten.view(x, x)\n    return y\n",
       "m.txt:3:22: expected SymInt[] for argument 'size', found a tensor"},
      {head + "    y, z = aten.sin(x)\n    return y\n", "m.txt:3:5: expected 1 name"},
      {head + "    y = aten.max.dim(x, 0)\n    return y\n", "m.txt:3:5: expected 2 names, such as (values, indices)"},
      {head + "    y = aten.split.Tensor(x, 1)\n    return y\n", "m.txt:3:5: expected a list of names"},
      {head + "    y = aten._assert_async(x)\n    return y\n", "m.txt:3:5: expected no result"},
      {head + "    y = torch.sin(x)\n    return y\n",
       "m.txt:3:9: expected an op by its full name, such as torch.ops.aten.sin.default"},
      {head + "    y = aten.mul(x, x)\n    return y\n",
       "m.txt:3:9: expected the op with its overload, such as torch.ops.aten.mul.Tensor"},
      {head + "    y = sin(x)\n    return y\n", "m.txt:3:9: expected an op such as"},
      {head + "    y = aten.sin(aten.cos(x))\n    return y\n",
       "m.txt:3:18: expected a value, found 'aten.cos(x)'; an op has a line of its own"},
      {head + "    y = aten.sin(x)  # y: \"f32[2, 3\"\n    return y\n",
       "m.txt:3:36: expected ',' or ']', found the end"},
      {head + "    y = aten.sin(x)  # y: \"f33[2, 3]\"\n    return y\n",
       "m.txt:3:28: expected a type such as f32[2, 3], found 'f33'"},
      {head + "    y = aten.sin(x)  # y: \"f32[-2]\"\n    return y\n", "m.txt:3:34: expected a size"},
      {head + "    y = aten.sin(x)  # y: \"f32[2]\", sharez x\n    return y\n",
       "m.txt:3:37: expected a type, an origin or another remark on this op, found 'sharez'"},
      {head + "    y = aten.sin(x)  # y: \"f32[2]\", shares z\n    return y\n",
       "m.txt:3:24: expected a tensor above to share storage with, found 'z'"},
      {head + "    y = aten.sin(x)  # z: \"f32[2]\"\n    return y\n",
       "m.txt:3:24: expected the type of what this line makes, found 'z'"},
      {head + "    y = aten.sin(x)  # y: \"number\"\n    return y\n", "m.txt:3:24: expected the type of a tensor"},
      {"def computation(x, y):\n    # x: \"f32[2]\"\n    return x\n",
       "m.txt:1:20: expected a comment under the signature that says what 'y' is"},
      {"def computation(x):\n    # x: \"f32[2]\"\n    # x: \"f32[2]\"\n    return x\n",
       "m.txt:3:7: expected one description of 'x'"},
      {"def computation(x, x):\n    return x\n", "m.txt:1:20: expected a name that no other parameter has"},
      {"def computation(lambda):\n    # lambda: \"f32[]\"\n    return lambda\n",
       "m.txt:1:17: expected a name that a value may have, found 'lambda'"},
      {"def f(x):\n    return x\n", "m.txt:1:1: expected computation, joint, forward or backward, found 'f'"},
      {head + "    return x\n" + head + "    return x\n", "m.txt:4:1: expected one 'computation', found another"},
      {"x = 1\n", "m.txt:1:1: expected 'def', found 'x'"},
      {"def backward(x):\n    # x: \"f32[2]\"\n    return x\n",
       "m.txt:1:14: expected 'x' to be 'saved for backward' or 'cotangent'"},
      {"def backward(c, x):\n    # c: \"f32[2]\", cotangent\n    # x: \"f32[2]\", saved for backward\n    return x\n",
       "m.txt:1:17: expected what is saved for backward before all cotangents"},
      {"def forward(x):\n    # x: \"f32[2]\"\n    y = aten.sin(x)\n    return (y,), ()\n",
       "m.txt:3:5: expected the type of 'y' behind the line"},
      {head + "    y = aten.sin(x)\n    return y\ndef forward(x):\n    # x: \"f32[3]\"\n    return (x,), ()\n",
       "m.txt:6:7: expected the type that 'x' had above, \"cpu f32[2, 3]\""},
      {head + "    y = aten.sin(x)\n    return y\ndef joint(x):\n    z = aten.sin(x)  # z: \"f32[2, 3]\"\n    return "
              "(z,), ()\n",
       "m.txt:6:5: expected 'z' to be made by this op in the computation, or a comment that names the op it comes "
       "from"},
      {head +
           "    y = aten.sin(x)\n    return y\ndef joint(x):\n    z = aten.cos(x)  # z: \"f32[2, 3]\", computation: w: "
           "\"torch.ops.aten.sin.default\"\n    return (z,), ()\n",
       "m.txt:6:53: expected an op of the computation, found 'w': \"torch.ops.aten.sin.default\""},
      {"def joint(x):\n    # x: \"f32[2]\"\n    # backward\n    z = aten.cos(x)  # z: \"f32[2]\"\n    return (x,), "
       "(z,)\n",
       "m.txt:4:5: expected a trace that holds together: has no origin"},
      {head + "    def f(a):\n        return a\n    y = aten.sin(f)\n    return y\n",
       "m.txt:3:5: expected a higher-order op to take the function 'f'"},
      {head + "    y = aten.sin(99999999999999999999)\n    return y\n", "m.txt:3:18: expected an integer of 64 bits"},
      {head + "    y = aten.sin(1e999)\n    return y\n", "m.txt:3:18: expected a number that a double can hold"},
      {head + "    y = torch.ops.my.op(x, \"\\q\")\n    return y\n",
       "m.txt:3:28: expected an escape of Python after a backslash"},
  };
  for (const auto& mistake : mistakes) {
    const auto said = failure(mistake.text);
    EXPECT_EQ(said.substr(0, mistake.error.size()), mistake.error) << mistake.text;
  }
}

TEST(TextErrors, SizesAndNestingHaveLimits) {
  EXPECT_NE(failure("def computation(x):\n    # x: \"f32[4611686018427387904, 4611686018427387904]\"\n    return x\n")
                .find("larger than 2^63 bytes"),
            std::string::npos);
  EXPECT_NE(failure("def computation(x):\n    # x: \"f32[2] strides [9223372036854775807]\"\n    return x\n")
                .find("larger than 2^63 bytes"),
            std::string::npos);
  const auto deep = [](std::size_t n, const std::string& open, const std::string& close) {
    std::string text = head + "    y = torch.ops.my.op(";
    for (std::size_t i = 0; i < n; ++i) text += open;
    text += "1";
    for (std::size_t i = 0; i < n; ++i) text += close;
    return failure(text + ")\n    return y\n");
  };
  EXPECT_EQ(deep(60, "[", "]"), "nothing failed");
  EXPECT_NE(deep(100000, "[", "]").find("nests too deeply"), std::string::npos);
  EXPECT_NE(deep(100000, "(", ")").find("nests too deeply"), std::string::npos);
  EXPECT_NE(deep(100000, "-", "").find("nests too deeply"), std::string::npos);
  EXPECT_NE(deep(100000, "float(", ")").find("nests too deeply"), std::string::npos);
  EXPECT_NE(deep(100000, "1+", "").find("nests too deeply"), std::string::npos);
  std::string functions = "def computation(x):\n# x: \"f32[2]\"\n";
  for (std::size_t i = 1; i < 1000; ++i) functions += std::string(i, ' ') + "def f(x):\n";
  EXPECT_NE(failure(functions).find("at most 32 functions"), std::string::npos);
  std::string rank = "1";
  for (int i = 0; i < 100; ++i) rank += ", 1";
  EXPECT_NE(failure("def computation(x):\n    # x: \"f32[" + rank + "]\"\n    return x\n").find("at most 64 sizes"),
            std::string::npos);
  std::string operands = "x";
  for (int i = 0; i < 70000; ++i) operands += ",x";
  EXPECT_NE(
      failure(head + "    y = torch.ops.my.op([" + operands + "])\n    return y\n").find("at most 65535 operands"),
      std::string::npos);
  std::string outputs = "a0";
  for (int i = 1; i < 70000; ++i) outputs += ",a" + std::to_string(i);
  EXPECT_NE(failure(head + "    " + outputs + " = torch.ops.my.op(x)\n    return x\n").find("at most 65535 results"),
            std::string::npos);
}

/// Whatever a text holds: it is refused as bad input, or it is read, and then what is printed of it reads back to the
/// same print.
void expectReadOrRefusal(const std::string& text) {
  const auto printAll = [](const TextTraces& traces) {
    PrintOptions options;
    options.numbers = &traces.numbers;
    std::string all;
    if (traces.computation) options.computation = &*traces.computation;
    if (traces.computation) all = printTrace(*traces.document, traces.computation->trace, options);
    for (const auto& trace : traces.derived) all += printTrace(*traces.document, trace, options);
    return all;
  };
  std::string printed;
  try {
    printed = printAll(readTextTraces(text, "m.txt", stubLookup));
  } catch (const Error& e) {
    ASSERT_EQ(e.code(), ErrorCode::badInput) << e.what();
    ASSERT_TRUE(e.place().starts_with("m.txt:")) << e.what();
    return;
  }
  try {
    ASSERT_EQ(printAll(readTextTraces(printed, "again.txt", stubLookup)), printed) << text;
  } catch (const Error& e) {
    FAIL() << e.what() << "\n" << printed << "\nprinted from\n" << text;
  }
}

std::vector<std::string> texts() {
  std::vector<std::string> all;
  for (const auto& path : test::filesBelow(test::data() / "../texts", ".txt")) all.push_back(test::contentOf(path));
  return all;
}

TEST(TextErrors, DamagedTextsAreReadOrRefused) {
  std::mt19937 random(7);
  const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random()) % std::max<std::size_t>(n, 1); };
  static constexpr std::string_view pieces[] = {"(",
                                                ")",
                                                "[",
                                                "]",
                                                ",",
                                                "\"",
                                                "#",
                                                "\n",
                                                " ",
                                                "    ",
                                                "=",
                                                ":",
                                                "-",
                                                "x",
                                                "None",
                                                "1",
                                                "_",
                                                "def ",
                                                "return ",
                                                "torch.ops.",
                                                "# backward\n",
                                                "shares ",
                                                "\\",
                                                "\xff",
                                                "9223372036854775807",
                                                ".",
                                                "del "};
  std::size_t count = 0;
  for (const auto& text : texts())
    for (int i = 0; i < 150; ++i, ++count) {
      auto damaged = text;
      for (std::size_t changes = 1 + any(3); changes > 0; --changes) {
        const auto at = any(damaged.size()), length = any(24);
        const auto piece = pieces[any(std::size(pieces))];
        switch (any(4)) {
          case 0: damaged.replace(at, 1, piece); break;
          case 1: damaged.insert(at, piece); break;
          case 2: damaged.erase(at, length); break;
          default: damaged.insert(at, damaged.substr(any(damaged.size()), length)); break;
        }
      }
      ASSERT_NO_FATAL_FAILURE(expectReadOrRefusal(damaged));
    }
  EXPECT_GE(count, 700u);
}

TEST(TextErrors, LinesThatAreSwappedOrMissing) {
  for (const auto& text : texts()) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find('\n', at), text.size() - 1);
      lines.push_back(text.substr(at, end - at + 1));
      at = end + 1;
    }
    const auto joined = [](const std::vector<std::string>& all) {
      std::string whole;
      for (const auto& line : all) whole += line;
      return whole;
    };
    for (std::size_t i = 0; i < lines.size(); i += 3) {
      auto missing = lines;
      missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_NO_FATAL_FAILURE(expectReadOrRefusal(joined(missing)));
      auto swapped = lines;
      std::swap(swapped[i], swapped[(i * 7 + 5) % lines.size()]);
      ASSERT_NO_FATAL_FAILURE(expectReadOrRefusal(joined(swapped)));
    }
  }
}

TEST(TextErrors, TruncatedTexts) {
  const auto text = test::contentOf(test::data() / "../texts/linear_all.txt");
  for (std::size_t length = 0; length < text.size(); length += 7)
    ASSERT_NO_FATAL_FAILURE(expectReadOrRefusal(text.substr(0, length)));
}

TEST(TextErrors, AFileIsKnownByItsContent) {
  const auto file = readModelFile(
      test::writeTemporary("linear.pt2", test::contentOf(test::data() / "../texts/linear_all.txt")), stubLookup);
  EXPECT_TRUE(file.isText);
  ASSERT_TRUE(file.printed);
  EXPECT_EQ(file.printed->derived.size(), 3u);
  EXPECT_EQ(file.computation.trace.ops.size(), 3u);
  EXPECT_EQ(file.document->boundSymbolCount(), 3u) << "what the derivation starts from holds the computation alone";
  const auto text = test::contentOf(test::data() / "../texts/linear_all.txt");
  try {
    readModelFile(test::writeTemporary("backward.txt", text.substr(text.rfind("import torch"))), stubLookup);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    EXPECT_NE(std::string(e.what()).find("expected a trace to start from, 'def computation(...):'"), std::string::npos)
        << e.what();
  }
}

TEST(TextErrors, ReadingCanBeCancelled) {
  std::stop_source stop;
  stop.request_stop();
  std::string text = head;
  for (int i = 0; i < 1000; ++i) text += "    y" + std::to_string(i) + " = aten.sin(x)\n";
  try {
    readTextTraces(text + "    return x\n", "m.txt", stubLookup, TextParts::all, Progress(stop.get_token(), {}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace retrograd
