// Reads files once each with what libFuzzer would call, where there is no libFuzzer.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

int main(int count, char **folders) {
  int files = 0;
  for (int k = 1; k < count; ++k)
    for (const auto &entry : std::filesystem::directory_iterator(folders[k])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> held{std::istreambuf_iterator<char>(file), {}};
      // A copy of exactly the size, so that a byte read beyond it is seen.
      const std::vector<std::uint8_t> exact(held.begin(), held.end());
      LLVMFuzzerTestOneInput(exact.data(), exact.size());
      ++files;
    }
  std::printf("%d inputs were read\n", files);
  return files > 0 ? 0 : 1;
}
