// libretrograd_nccl.so: what is said where it cannot be used. That ranks on GPUs are linked by it, the tests of the
// program show where there are GPUs.
#include "core/torch/ranks/nccl_library.h"

#include <gtest/gtest.h>

#include "core/base/installation.h"
#include "core/torch/execution/device.h"

namespace retrograd {
namespace {

TEST(NcclLibrary, IsBuiltWhereItsHeadersAreWithOrWithoutAGpu) {
  EXPECT_EQ(privateFile("libretrograd_nccl.so").empty(), !RETROGRAD_NCCL);
}

TEST(NcclLibrary, saysWhyItCannotBeUsed) {
  const auto& library = ncclLibrary();
  if (!RETROGRAD_NCCL) {
    EXPECT_NE(library.trouble.find("NCCL is not part of this build: run scripts/setup"), std::string::npos)
        << library.trouble;
    return;
  }
  if (!deviceStatus({Device::Type::cuda, 0}).available) {
    EXPECT_NE(library.trouble.find("NCCL does not load"), std::string::npos)
        << library.trouble;  // without LibTorch's CUDA half
    return;
  }
  EXPECT_EQ(library.trouble, ncclMismatch(library.headers(), library.headers()));
}

// A class compiled with members of another size overwrites memory that is not its own.
TEST(NcclLibrary, headersOfAnotherVersionAreRefused) {
  EXPECT_EQ(ncclMismatch(23007, 23007), "");
  EXPECT_EQ(ncclMismatch(22809, 23007)
                .find("this build has the headers of NCCL 2.28.9, LibTorch that of 2.30.7: run scripts/setup"),
            0u);
  EXPECT_EQ(ncclMismatch(23007, 0), "LibTorch's CUDA half came without NCCL");
}

}  // namespace
}  // namespace retrograd
