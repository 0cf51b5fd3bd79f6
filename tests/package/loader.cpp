// Opens shared libraries that hold ein, uses all of them, and closes them; twice. loader PLUGIN...
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  for (int round = 0; round < 2; ++round) {
    std::vector<void*> opened;
    for (int i = 1; i < argc; ++i) {
      void* const plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
      if (!plugin) return std::puts(dlerror()), 1;
      opened.push_back(plugin);
      const auto work = reinterpret_cast<double (*)()>(dlsym(plugin, "plugin_work"));
      if (!work) return std::puts(dlerror()), 1;
      const double sum = work();
      if (!(std::abs(sum - 64) < 1e-3))
        return std::printf("%s gives %g instead of 64\n", argv[i], sum), 1;
    }
    for (void* const plugin : opened) {
      if (dlclose(plugin) != 0) return std::puts(dlerror()), 1;
    }
  }
  std::puts("opened, used and closed twice");
  return 0;
}
