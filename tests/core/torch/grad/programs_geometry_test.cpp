// Programs of the fuzzer in which sizes and strides change in place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/torch/grad/programs.h"

namespace retrograd {
namespace {

/// An input whose geometry changes under no_grad, with one op before and one after.
std::string reshaped(const std::string& sizes, const std::string& before, const std::string& change) {
  return fmt::format(R"(def computation(x0):
    # x0: "f64[{}]"
    {}
    def body_2(v43):
        v45 = torch.ops.aten.{}
        return (v45,)
    (v61,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_2, x0)
    v62 = torch.ops.aten.cumsum.default(x0, 0)
    v63 = torch.ops.aten.mul.Tensor(v62, x0)
    return (v1, v63)
)",
                     sizes, before, change);
}

TEST(Programs, GeometryChangedUnderNoGradStaysChanged) {
  expectAsEager(R"(def computation(x5, p7):
    # x5: "f64[2, 2, 1]", no grad
    # p7: "f64[2, 2]", parameter
    def body_0(v30, v31):
        v34 = torch.ops.aten.swapaxes_.default(v30, 0, 1)
        return (v31, v34)
    (v36, v37) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, x5, p7)
    return (p7,)
)",
                {}, 519);
}

TEST(Programs, DimensionsAddedUnderNoGradAreSummedAway) {
  expectAsEager(R"(def computation(p1):
    # p1: "f64[2]", parameter
    v2 = torch.ops.aten.sin.default(p1)
    def body_2(v43):
        v45 = torch.ops.aten.unsqueeze_.default(v43, 0)
        return (v45,)
    (v61,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_2, v2)
    v62 = torch.ops.aten.cos.default(v2)
    return (v62,)
)",
                {}, 1);
}

/// arccosh_ has no derivative, and eager asks for none: nothing behind a view made under no_grad leads to an input.
TEST(Programs, NothingBehindAViewMadeUnderNoGradIsDifferentiated) {
  expectAsEager(R"(def computation(x2):
    # x2: "f64[2, 2]"
    def body_0(v13):
        v17 = torch.ops.aten.diagonal.default(v13)
        return (v17,)
    (v20,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, x2)
    v21 = torch.ops.aten.exp.default(v20)
    v22 = torch.ops.aten.add.Scalar(v21, 1.5)
    v25 = torch.ops.aten.arccosh_.default(v22)
    return (v22,)
)",
                {}, 700);
}

// --- draws ---

// Autograd learns a leaf's sizes from the first op that it records.
TEST(Programs, TheGradientOfAnInputHasTheSizesThatTheFirstOpSaw) {
  const std::string recorded = "v1 = torch.ops.aten.mul.Scalar(x0, 2.0)";
  for (int order : {1, 2}) {
    expectAsEager(reshaped("3", "v1 = torch.ops.aten.detach.default(x0)", "unsqueeze_.default(v43, 0)"),
                  ofOrder(order));
    expectAsEager(reshaped("3", recorded, "unsqueeze_.default(v43, 0)"), ofOrder(order));
    expectAsEager(reshaped("3, 3", recorded, "transpose_.default(v43, 0, 1)"), ofOrder(order));
  }
  expectAsEager(reshaped("3", "v1 = torch.ops.aten.detach.default(x0)", "unsqueeze_.default(v43, 1)"));
  expectAsEager(reshaped("3, 2", "v1 = torch.ops.aten.detach.default(x0)", "transpose_.default(v43, 0, 1)"));
}

// Of a view autograd makes the history again after any change, from the sizes and strides that it has then.
TEST(Programs, AViewThatChangesItsGeometryUnderNoGradKeepsItsPlaceInMemory) {
  const auto programOf = [](std::string_view first, std::string_view write, std::string_view results) {
    return fmt::format(R"(def computation(x0, w):
    # x0: "f64[4]"
    # w: "f64[2, 2]"
    v1 = torch.ops.aten.{}
    v2 = torch.ops.aten.view.default(v1, [2, 2])
    def body_0(v19):
        v21 = torch.ops.aten.swapaxes_.default(v19, 0, 1)
        return (v21,)
    (v23,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v2)
{}    v3 = torch.ops.aten.mul.Tensor(v23, w)
    return ({})
)",
                       first, write, results);
  };
  const std::string_view write =
      "    v4 = torch.ops.aten.select.int(v23, 0, 1)\n    v5 = torch.ops.aten.mul_.Scalar(v4, 3)\n";
  expectAsEager(programOf("repeat.default(x0, [1])", "", "v3,"));
  expectAsEager(programOf("view.default(x0, [4])", "", "v3,"));  // of a leaf
  expectAsEager(programOf("repeat.default(x0, [1])", write, "v3, v1"));
  expectAsEager(R"(def computation(x0):
    # x0: "f64[4, 2]"
    v15 = torch.ops.aten.reshape.default(x0, [-1])
    v16 = torch.ops.aten.repeat.default(v15, [2])
    v17 = torch.ops.aten.view.default(v16, [2, 2, 4])
    def body_0(v19, v20):
        v21 = torch.ops.aten.swapaxes_.default(v20, 0, 1)
        return (v21,)
    (v23,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v17, v17)
    v26 = torch.ops.aten.unfold.default(v23, 1, 1, 1)
    v27 = torch.ops.aten.narrow.default(v26, 2, 2, 2)
    v28 = torch.ops.aten.view.default(v15, [2, 2, 2, 1])
    v29 = torch.ops.aten.add_.Tensor(v27, v28)
    return (v16,)
)");
  // A change that changes nothing, and a write to another view.
  expectAsEager(R"(def computation(x3, p5):
    # x3: "f64[2, 4]"
    # p5: "f64[1, 2, 3, 3]", parameter
    v15 = torch.ops.aten.new_zeros.default(x3, [])
    v16 = torch.ops.aten.replication_pad2d.default(p5, [1, 1, 0, 2])
    v20 = torch.ops.aten.reshape.default(v16, [-1])
    v21 = torch.ops.aten.narrow.default(v20, 0, 23, 18)
    v22 = torch.ops.aten.view.default(v21, [1, 2, 3, 3])
    def body_0(v26):
        v27 = torch.ops.aten.squeeze_.default(v26)
        return (v26,)
    (v33,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v21)
    v34 = torch.ops.aten.copy_.default(v22, v15)
    return (v21,)
)");
}

// A tensor that is not a view keeps its history, element by element, also where a view of it is written to later.
TEST(Programs, ABaseThatChangesItsGeometryUnderNoGradKeepsItsHistory) {
  expectAsEager(R"(def computation(x0, w):
    # x0: "f64[4]"
    # w: "f64[2, 2]"
    v1 = torch.ops.aten.repeat.default(x0, [1, 1])
    v2 = torch.ops.aten.reshape.default(v1, [2, 2])
    v6 = torch.ops.aten.mul.Tensor(v2, v2)
    def body_0(v19):
        v21 = torch.ops.aten.swapaxes_.default(v19, 0, 1)
        return (v21,)
    (v23,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v6)
    v4 = torch.ops.aten.select.int(v23, 0, 1)
    v5 = torch.ops.aten.mul_.Scalar(v4, 3)
    v3 = torch.ops.aten.mul.Tensor(v23, w)
    return (v3, v6)
)");
}

// Eager PyTorch lets nothing write to a leaf while it records, so the input is differentiated as one that requires no
// gradient.
TEST(Programs, ALeafThatChangedItsGeometryUnderNoGradIsALeafStill) {
  expectAsEager(R"(def computation(x2):
    # x2: "f64[4, 4]"
    def body_0(v12):
        v14 = torch.ops.aten.squeeze_.default(v12)
        return (v14,)
    (v15,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, x2)
    v27 = torch.ops.aten.hardsigmoid_.default(x2)
    return (x2,)
)");
}

/// avg_pool1d gives a view of what avg_pool2d made. Autograd makes a view's history again after a change of its
/// geometry that it did not record, which is not so of a tensor without a base: refused, or the gradient would be that
/// of the other.
TEST(Programs, GeometryOfAViewMadeInARuleChangedUnderNoGrad) {
  expectRefused(R"(def computation(x):
    # x: "f64[2, 1, 5]"
    y = torch.ops.aten.avg_pool1d.default(x, [2])
    def body_0(z):
        w = torch.ops.aten.transpose_.default(z, 0, 2)
        return (w,)
    (v,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, y)
    return (y,)
)");
}

/// A view in another dtype is made again by its ops, as it was before the change.
TEST(Programs, GeometryOfAViewInAnotherDtypeChangedUnderNoGrad) {
  expectRefused(R"(def computation(x):
    # x: "c128[4, 4]"
    y = torch.ops.aten.mul.Scalar(x, 2.0)
    z = torch.ops.aten.view_as_real.default(y)
    def body_0(v):
        w = torch.ops.aten.transpose_.default(v, 1, 0)
        return (w,)
    (w,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, z)
    return (w,)
)");
}

/// A change of geometry that changes nothing leaves the tensor with its views, which follow a later write; one that
/// does is refused.
TEST(Programs, ViewsTakenBeforeAChangeOfGeometryFollowALaterWrite) {
  const auto program = [](const char* sizes, const char* change) {
    return fmt::format(R"(def computation(x):
    # x: "f64[{}]"
    y = torch.ops.aten.mul.Scalar(x, 2.0)
    z = torch.ops.aten.view.default(y, [-1])
    def body_0(v):
        w = torch.ops.aten.{}
        return (w,)
    (w,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, y)
    n = torch.ops.aten.neg_.default(w)
    return (z,)
)",
                       sizes, change);
  };
  expectAsEager(program("3, 3", "squeeze_.default(v)"));
  expectRefused(program("3, 3", "transpose_.default(v, 0, 1)"));
}

/// Autograd makes a view's history again from the sizes that its base has by then, and sends the gradient to other
/// elements.
TEST(Programs, AViewReadAfterItsBaseChangedItsGeometryUnderNoGradIsRefused) {
  for (const auto* write : {"neg.default(z)", "mul_.Tensor(z, x)"}) {
    expectRefused(fmt::format(R"(def computation(x):
    # x: "f64[2, 2]"
    y = torch.ops.aten.mul.Tensor(x, x)
    z = torch.ops.aten.unsqueeze.default(y, 0)
    u = torch.ops.aten.{}
    def body_0(v):
        w = torch.ops.aten.transpose_.default(v, 0, 1)
        return (w,)
    (w,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, y)
    return (z,)
)",
                              write));
  }
}

// An op in place gives a base other sizes; it is not a view then, of which autograd would make the history again.
TEST(Programs, ABaseThatIsTransposedInPlaceAndAgainUnseenIsNotAView) {
  for (const char* between : {"v3 = torch.ops.aten.t_.default(v2)", "v3 = torch.ops.aten.mul_.Scalar(v2, 1.5)"})
    expectAsEager(fmt::format(R"(def computation(x1):
    # x1: "f64[3, 3]"
    v2 = torch.ops.aten.sin.default(x1)
    {}
    def body_0(v4):
        v5 = torch.ops.aten.t_.default(v4)
        return (v5,)
    (v6,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v2)
    return (v6,)
)",
                              between));
}

/// Autograd makes the history of a complex tensor's part again by its op, which knows nothing of the transposition that
/// came after: eager's gradient of a later write is that of other elements where the tensor is square, and an error
/// where it is not. Without a write there is no such error.
TEST(Programs, AWriteToATransposedPartOfAComplexTensorIsRefused) {
  const auto program = [](const char* view, const char* then, const char* result) {
    return fmt::format(R"(def computation(p1):
    # p1: "c128[3, 3]", parameter
    v2 = torch.ops.aten.mul.Scalar(p1, 2.0)
    v3 = torch.ops.aten.{}
    v4 = torch.ops.aten.transpose_.default(v3, 1, 0)
    v5 = torch.ops.aten.{}
    return ({},)
)",
                       view, then, result);
  };
  for (const char* view : {"imag.default(v2)", "real.default(v2)", "conj.default(v2)"}) {
    expectAsEager(program(view, "mul.Scalar(v3, 3.0)", "v5"));
    expectRefused(program(view, "tanh_.default(v3)", "v3"));
    expectRefused(program(view, "tanh_.default(v2)", "v3"));  // through the base
    expectAsEager(program(view, "tanh_.default(v2)", "v2"));
  }
}

}  // namespace
}  // namespace retrograd
