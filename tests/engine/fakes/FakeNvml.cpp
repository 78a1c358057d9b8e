// SPDX-License-Identifier: GPL-3.0-or-later
// A management library of a driver that is not there: one GPU whose numbers are those below. FAKE_NVML says what is
// wrong with it: "init", "no such GPU", "errors", "hangs". Built with FAKE_NVML_OLD, it has no more functions than the
// first versions had.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

bool is(const char* fault) {
    const char* const asked = std::getenv("FAKE_NVML");
    return asked != nullptr && std::strcmp(asked, fault) == 0;
}
int answer() {
    return is("errors") ? 999 : 0; // NVML_ERROR_UNKNOWN
}
int theGpu;

} // namespace

extern "C" {

struct Memory {
    unsigned long long total, free, used;
};
struct Utilization {
    unsigned gpu, memory;
};
struct Field {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    int status;
    unsigned long long value;
};

int nvmlInit_v2() {
    return is("init") ? 9 : 0; // NVML_ERROR_DRIVER_NOT_LOADED
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
    if (std::strcmp(address, "0000:65:00.0") != 0)
        return 6; // NVML_ERROR_NOT_FOUND
    *device = &theGpu;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
    *memory = {80ULL << 30, 77ULL << 30, 3ULL << 30};
    return device == &theGpu ? answer() : 2;
}
#ifndef FAKE_NVML_OLD
int nvmlDeviceGetUtilizationRates(void*, Utilization* busy) {
    if (is("hangs"))
        std::this_thread::sleep_for(std::chrono::seconds(4));
    *busy = {97, 41};
    return answer();
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
    *milliwatts = 412'500;
    return answer();
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* degrees) {
    *degrees = 63;
    return sensor == 0 ? answer() : 2;
}
int nvmlDeviceGetPcieThroughput(void*, int direction, unsigned* kilobytes) {
    *kilobytes = direction == 0 ? 250'000 : 500'000;
    return answer();
}
int nvmlDeviceGetFieldValues(void*, int count, Field* fields) {
    static unsigned long long kibibytes = 0;
    kibibytes += 1 << 20; // a GiB each time
    for (int i = 0; i < count; ++i) {
        fields[i].type = 3;
        fields[i].status = fields[i].scope == ~0U ? 0 : 3;
        fields[i].value = fields[i].field == 138 ? kibibytes : 2 * kibibytes;
    }
    return answer();
}
#endif
}
