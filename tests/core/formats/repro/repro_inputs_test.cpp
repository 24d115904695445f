#include "core/formats/repro/repro_inputs.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/checkpoint/pickled.h"

namespace retrograd {
namespace {

using namespace test::pickled;
namespace pickled = test::pickled;
namespace fs = std::filesystem;

const std::string hash = "16a2c0ffee";

std::string script(const std::string& load, const std::string& arguments = "x, y",
                   const std::string& run = "save_dir='/elsewhere/job/checkpoints'") {
  return "import torch\n\nclass Repro(torch.nn.Module):\n    def __init__(self) -> None:\n        "
         "super().__init__()\n\n    def "
         "forward(self, " +
         arguments +
         "):\n        relu = torch.ops.aten.relu.default(x)\n        return (relu,)\n\ndef load_args(reader):\n" +
         load +
         "load_args._version = 0\nmod = Repro()\nif __name__ == '__main__':\n    from torch._dynamo.repro.after_aot "
         "import run_repro\n    "
         "with torch.no_grad():\n        run_repro(mod, load_args, "
         "accuracy=True, command='run', " +
         run + ", tracing_mode='real', check_str=None)\n";
}

std::vector<ReproInput> read(const std::string& text) {
  const auto folder = fs::path(test::writeTemporary("repro.none", "")).parent_path() / "repro";
  fs::create_directories(folder / "job/checkpoints/storages");
  const auto storage = tuple({pickled::text("storage"), global("torch.storage", "UntypedStorage"), pickled::text("0"),
                              pickled::text("cpu"), whole(24)}) +
                       "Q";
  test::writeTemporary("repro/job/checkpoints/storages/" + hash, saved(storage, {{"0", floats({1, 2, 3, 4, 5, 6})}}));
  return readReproInputs(fx::readRepro(text, "repro.py"), test::writeTemporary("repro/repro.py", text));
}

std::string failure(const std::string& load) {
  try {
    read(script(load));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return "nothing failed";
}

TEST(ReproInputs, J11_findsStoragesBelowTheScriptWhereverItWasWritten) {
  const auto inputs =
      read(script("    buf0 = reader.storage('" + hash +
                  "', 24)\n"
                  "    reader.tensor(buf0, (2, 2), (3, 1), storage_offset=1, requires_grad=True, is_leaf=True)  # x\n"
                  "    buf1 = reader.storage(None, 16, dtype_hint=torch.int64)\n"
                  "    reader.tensor(buf1, (2,), dtype=torch.int64)  # y\n"));
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "x");
  EXPECT_EQ(inputs[0].meta.sizes, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(inputs[0].meta.strides, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(inputs[0].meta.offset, 1);
  EXPECT_TRUE(inputs[0].requiresGrad);
  EXPECT_EQ(inputs[0].data.bytes, 24u);
  EXPECT_EQ(inputs[1].meta.dtype, DType::i64);
  EXPECT_EQ(inputs[1].meta.strides, std::vector<std::int64_t>{1});
  EXPECT_FALSE(inputs[1].requiresGrad);
  EXPECT_EQ(inputs[1].data.data, nullptr);
}

TEST(ReproInputs, J11_readsSizesAndRefusesWhatItDoesNotKnow) {
  const auto inputs = read(script("    reader.symint(7)\n    reader.symint(2)\n"));
  EXPECT_EQ(inputs[0].number->integer, 7);
  EXPECT_NE(failure("    reader.opaque('x')\n    reader.symint(2)\n").find("is not known here"), std::string::npos);
  EXPECT_NE(failure("    reader.symint(2)\n").find("loads 1 arguments, the graph takes 2"), std::string::npos);
  EXPECT_NE(
      failure("    buf0 = reader.storage('" + hash + "', 24)\n    reader.tensor(buf0, (9,))\n    reader.symint(2)\n")
          .find("storage has 24 bytes"),
      std::string::npos);
  EXPECT_NE(failure("    buf0 = reader.storage('../../x', 24)\n    reader.tensor(buf0, (2,))\n    reader.symint(2)\n")
                .find("not a name of a storage"),
            std::string::npos);
}

}  // namespace
}  // namespace retrograd
