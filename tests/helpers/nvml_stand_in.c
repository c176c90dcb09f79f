/* A stand-in for libnvidia-ml.so.1, for machines without a GPU. It is no driver: it says what a script says.
 *
 * The script is the file FILE.script beside the library FILE; it is read at every call, so a test changes it while a
 * reader runs. Lines:
 *     gpus N                      how many there are (1 unless said)
 *     util GPU PERCENT            what its samples say, one every 0.2 s, the last 14 s of them
 *     power GPU MILLIWATTS
 *     field ID VALUE              of nvmlDeviceGetFieldValues; the others are not supported
 *     process GPU PID BYTES
 *     lanes GPU N                 of PCIe in use now (16 unless said)
 *     fabric GPU STATE            of its registration with Fabric Manager (none unless said)
 *     clock GPU MHZ               of its SMs now (1980, the maximum, unless said)
 *     reasons GPU BITS            of nvmlDeviceGetCurrentClocksThrottleReasons (4 unless said)
 *     temperature GPU DEGREES
 *     slowdown GPU DEGREES        the limit; 0: it has only a margin, as newer ones
 *     mig GPU                     MIG is on: no utilisation
 *     lost GPU                    every call about it returns 15
 *     fail CALL GPU CODE          that call returns the code; GPU -1: whichever
 *     hang CALL                   that call does not return while the line is there
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct { uint8_t cluster[16]; uint32_t status, clique; uint8_t state; } fabric_t;
typedef struct { uint64_t at_us; union { uint32_t u; uint64_t raw; } value; } sample_t;
typedef struct { uint32_t id, scope; int64_t at, latency; uint32_t kind, code; uint64_t value; } field_t;
typedef struct { char legacy[16]; uint32_t numbers[5]; char bus_id[32]; } pci_t;
typedef struct { uint32_t version; int32_t degrees; } margin_t;
typedef struct { uint32_t pid; uint64_t used; uint32_t instance, compute; } process_t;

enum { MOST_LINES = 256 };
static struct { char word[4][80]; } lines[MOST_LINES];
static int line_count;

static void read_script(void) {
    Dl_info self;
    char path[4096], line[400];
    line_count = 0;
    if (!dladdr((void *)read_script, &self)) return;
    snprintf(path, sizeof path, "%s.script", self.dli_fname);
    FILE *file = fopen(path, "re");
    if (!file) return;
    while (line_count < MOST_LINES && fgets(line, sizeof line, file)) {
        memset(&lines[line_count], 0, sizeof lines[0]);
        if (sscanf(line, "%79s %79s %79s %79s", lines[line_count].word[0], lines[line_count].word[1],
                   lines[line_count].word[2], lines[line_count].word[3]) > 0)
            line_count++;
    }
    fclose(file);
}

/* The line of that word, and, unless they are NULL, these arguments; -1: none. */
static int find(const char *word, const char *first, const char *second) {
    for (int at = 0; at < line_count; at++)
        if (!strcmp(lines[at].word[0], word) && (!first || !strcmp(lines[at].word[1], first)) &&
            (!second || !strcmp(lines[at].word[2], second)))
            return at;
    return -1;
}

static long long setting(const char *word, int gpu, long long otherwise) {
    char number[16];
    snprintf(number, sizeof number, "%d", gpu);
    int at = find(word, number, NULL);
    return at < 0 ? otherwise : atoll(lines[at].word[2]);
}

static int has(const char *word, int gpu) {
    char number[16];
    snprintf(number, sizeof number, "%d", gpu);
    return find(word, number, NULL) >= 0;
}

/* What every call does first: reads the script, hangs, fails. */
static int begin(const char *call, int gpu) {
    for (read_script(); find("hang", call, NULL) >= 0; read_script()) usleep(20000);
    if (gpu >= 0 && has("lost", gpu)) return 15;
    char number[16];
    snprintf(number, sizeof number, "%d", gpu);
    int at = find("fail", call, number);
    if (at < 0) at = find("fail", call, "-1");
    return at < 0 ? 0 : atoi(lines[at].word[3]);
}

static int gpu_of(void *handle) { return (int)(uintptr_t)handle - 1; }

static int count(void) {
    int at = find("gpus", NULL, NULL);
    return at < 0 ? 1 : atoi(lines[at].word[1]);
}

#define BEGIN(handle) do { int code = begin(__func__, gpu_of(handle)); if (code) return code; } while (0)

/* As a real driver: whoever does not let it attach the GPUs is told of none. */
static int attached;
int nvmlInitWithFlags(uint32_t flags) {
    attached = !(flags & 2);
    return begin(__func__, -1);
}
int nvmlSystemGetDriverVersion(char *text, uint32_t size) {
    snprintf(text, size, "stand-in");
    return begin(__func__, -1);
}
int nvmlDeviceGetCount_v2(uint32_t *found) {
    int code = begin(__func__, -1);
    *found = attached ? count() : 0;
    return code;
}
int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void **found) {
    int code = begin(__func__, index);
    *found = (void *)(uintptr_t)(index + 1);
    return code ? code : attached && (int)index < count() ? 0 : 2;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **found) {
    unsigned index = 0;
    if (sscanf(uuid, "GPU-%8x", &index) != 1) return 2;
    int code = begin(__func__, index);
    *found = (void *)(uintptr_t)(index + 1);
    return code;
}
int nvmlDeviceGetUUID(void *gpu, char *text, uint32_t size) {
    BEGIN(gpu);
    snprintf(text, size, "GPU-%08x-0000-4000-8000-000000000000", gpu_of(gpu));
    return 0;
}
int nvmlDeviceGetName(void *gpu, char *text, uint32_t size) {
    BEGIN(gpu);
    snprintf(text, size, "Stand-in GPU");
    return 0;
}
int nvmlDeviceGetPciInfo_v3(void *gpu, pci_t *found) {
    BEGIN(gpu);
    snprintf(found->bus_id, sizeof found->bus_id, "00000000:%02X:00.0", gpu_of(gpu) + 1);
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *gpu, uint64_t found[3]) {
    BEGIN(gpu);
    found[0] = 150754820096ULL;
    found[2] = 5368709120ULL;
    found[1] = found[0] - found[2];
    return 0;
}
int nvmlDeviceGetMigMode(void *gpu, uint32_t *now, uint32_t *pending) {
    BEGIN(gpu);
    *now = *pending = has("mig", gpu_of(gpu));
    return 0;
}
int nvmlDeviceGetClockInfo(void *gpu, uint32_t kind, uint32_t *found) {
    BEGIN(gpu);
    *found = (uint32_t)setting("clock", gpu_of(gpu), 1980);
    return kind == 1 ? 0 : 2;
}
int nvmlDeviceGetMaxClockInfo(void *gpu, uint32_t kind, uint32_t *found) {
    BEGIN(gpu);
    *found = 1980;
    return kind == 1 ? 0 : 2;
}
int nvmlDeviceGetTemperature(void *gpu, uint32_t kind, uint32_t *found) {
    BEGIN(gpu);
    *found = (uint32_t)setting("temperature", gpu_of(gpu), 61);
    return kind == 0 ? 0 : 2;
}
int nvmlDeviceGetTemperatureThreshold(void *gpu, uint32_t kind, uint32_t *found) {
    BEGIN(gpu);
    *found = (uint32_t)setting("slowdown", gpu_of(gpu), 87);
    return kind != 1 ? 2 : *found ? 0 : 3;
}
/* 92 degrees is where this one begins to slow down. */
int nvmlDeviceGetMarginTemperature(void *gpu, margin_t *found) {
    BEGIN(gpu);
    if (found->version != 0x1000008) return 25;
    found->degrees = 92 - (int32_t)setting("temperature", gpu_of(gpu), 61);
    return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void *gpu, uint32_t *found) {
    BEGIN(gpu);
    *found = 700000;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *gpu, uint32_t *found) {
    BEGIN(gpu);
    *found = (uint32_t)setting("power", gpu_of(gpu), 140000);
    return 0;
}
/* Only under its old name, as in drivers before 535. */
int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, uint64_t *found) {
    BEGIN(gpu);
    *found = (uint64_t)setting("reasons", gpu_of(gpu), 4);
    return 0;
}
int nvmlDeviceGetSamples(void *gpu, uint32_t kind, uint64_t after, uint32_t *value_kind, uint32_t *room, sample_t *found) {
    BEGIN(gpu);
    if (kind > 2 || (kind != 0 && has("mig", gpu_of(gpu)))) return 3;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_us = now.tv_sec * 1000000ULL + now.tv_nsec / 1000, first = now_us - 14000000ULL;
    uint64_t at = ((after > first ? after : first) / 200000 + 1) * 200000;
    long long value = kind == 0 ? setting("power", gpu_of(gpu), 140000) : setting("util", gpu_of(gpu), 9);
    uint32_t number = 0;
    for (; at <= now_us && number < *room; at += 200000) {
        found[number].value.raw = 0xdeadbeef00000000ULL; /* the rest of the union may be anything */
        found[number].value.u = (uint32_t)value;
        found[number++].at_us = at;
    }
    *value_kind = 1;
    *room = number;
    return number ? 0 : 6;
}
int nvmlDeviceGetMaxPcieLinkWidth(void *gpu, uint32_t *found) {
    BEGIN(gpu);
    *found = 16;
    return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void *gpu, uint32_t *found) {
    BEGIN(gpu);
    *found = (uint32_t)setting("lanes", gpu_of(gpu), 16);
    return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *gpu, uint32_t *found) {
    BEGIN(gpu);
    *found = 5;
    return 0;
}
/* Without the line: not supported, as on a GPU without NVSwitch. */
int nvmlDeviceGetGpuFabricInfo(void *gpu, fabric_t *found) {
    BEGIN(gpu);
    if (!has("fabric", gpu_of(gpu))) return 3;
    found->status = 0;
    found->state = (uint8_t)setting("fabric", gpu_of(gpu), 3);
    return 0;
}
int nvmlDeviceGetFieldValues(void *gpu, int wanted, field_t *fields) {
    BEGIN(gpu);
    int answered = 0;
    for (int at = 0; at < wanted; at++) {
        char number[16];
        snprintf(number, sizeof number, "%u", fields[at].id);
        int line = find("field", number, NULL);
        fields[at].code = line < 0 ? 3 : 0;
        fields[at].kind = 3;
        fields[at].value = line < 0 ? 0 : strtoull(lines[line].word[2], NULL, 10);
        answered += line >= 0;
    }
    return answered ? 0 : 3;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, uint32_t *room, process_t *found) {
    BEGIN(gpu);
    uint32_t number = 0;
    for (int at = 0; at < line_count; at++) {
        if (strcmp(lines[at].word[0], "process") || atoi(lines[at].word[1]) != gpu_of(gpu)) continue;
        if (number < *room)
            found[number] = (process_t){atoi(lines[at].word[2]), strtoull(lines[at].word[3], NULL, 10), -1, -1};
        number++;
    }
    int fits = number <= *room;
    *room = number;
    return fits ? 0 : 7;
}
