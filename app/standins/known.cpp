// Those functions of the stand-ins that give back more than an error code. Without these, a caller would read what
// nobody wrote.
namespace {

constexpr int ok = 0, noDevice = 100;
constexpr const char* text = "there is no CUDA here: a stand-in of Retrograd's answers for it";

}  // namespace

extern "C" {

const char* cudaGetErrorString(int) { return text; }

int cudaGetDeviceCount(int* count) {
  *count = 0;
  return noDevice;
}

int cuptiGetResultString(int, const char** result) {
  *result = text;
  return ok;
}
}
