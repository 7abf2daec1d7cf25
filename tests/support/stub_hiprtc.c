// hiprtc and the Code Object Manager, as far as tile_hip asks them, in one library.
//
// "Compiling" copies the file that the text names behind "// code "; the text "refuse" is refused,
// and "fail" fails without a log. The log of what is accepted tells how it was asked. Other texts
// do what compilers should not: "crash", "hang", "leave", and "print" to the standard output.
// Instructions are four bytes and print as their number.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char options[4096];
static char headers[65536];
static int programs;
static char code[1 << 20];
static size_t code_size;

struct program {
  char text[65536];
  char log[70000];
};

static void read_code(const char *text) {
  char name[4096] = "";
  const char *at = strstr(text, "// code ");
  FILE *file = at && sscanf(at, "// code %4095s", name) == 1 ? fopen(name, "rb") : NULL;
  code_size = file ? fread(code, 1, sizeof code, file) : 0;
  if (file) fclose(file);
}

const char *hiprtcGetErrorString(int status) { return status == 11 ? "HIPRTC_ERROR_INTERNAL" : "?"; }

int hiprtcCreateProgram(struct program **made, const char *text, const char *name, int count,
                        const char **texts, const char **names) {
  *made = calloc(1, sizeof **made);
  snprintf((*made)->text, sizeof (*made)->text, "%s", text);
  headers[0] = 0;
  for (int i = 0; i < count; ++i)
    if (strlen(headers) < sizeof headers - 256) strcat(strcat(headers, names[i]), " ");
  ++programs;
  return strcmp(name, "kernel.hip") != 0;
}

int hiprtcCompileProgram(struct program *program, int count, const char **given) {
  options[0] = 0;
  for (int i = 0; i < count; ++i) strcat(strcat(options, given[i]), " ");
  if (strstr(program->text, "fail")) return 11;
  if (strstr(program->text, "crash")) *(volatile int *)0 = 1;
  if (strstr(program->text, "leave")) fputs("I leave\n", stderr), exit(3);
  if (strstr(program->text, "print")) puts("garbage"), fflush(stdout);
  while (strstr(program->text, "hang")) pause();
  if (!strstr(program->text, "refuse")) {
    read_code(program->text);
    sprintf(program->log, "%d %d\n%s\n%s", getpid(), programs, options, headers);
    return 0;
  }
  strcpy(program->log, "kernel.hip:1:1: error: refused\n");
  return 6;
}

int hiprtcDestroyProgram(struct program **program) {
  free(*program);
  --programs;
  return 0;
}

int hiprtcGetProgramLogSize(struct program *program, size_t *size) {
  *size = strlen(program->log) + 1;
  return 0;
}

int hiprtcGetProgramLog(struct program *program, char *to) {
  strcpy(to, program->log);
  return 0;
}

int hiprtcGetCodeSize(struct program *program, size_t *size) {
  *size = code_size;
  return 0;
}

int hiprtcGetCode(struct program *program, char *to) {
  memcpy(to, code, code_size);
  return 0;
}

static const char *machines[] = {"amdgcn-amd-amdhsa--gfx90a", "amdgcn-amd-amdhsa--gfx942"};

int amd_comgr_get_isa_count(size_t *count) {
  *count = 2;
  return 0;
}

int amd_comgr_get_isa_name(size_t number, const char **name) {
  *name = machines[number];
  return 0;
}

int amd_comgr_status_string(int status, const char **words) {
  *words = status == 2 ? "INVALID_ARGUMENT" : "ERROR";
  return 0;
}

typedef uint64_t (*reader)(uint64_t, char *, uint64_t, void *);
typedef void (*printer)(const char *, void *);

struct disassembly {
  reader read;
  printer print;
};

int amd_comgr_create_disassembly_info(const char *machine, reader read, printer print,
                                      void (*address)(uint64_t, void *), uint64_t *made) {
  if (strcmp(machine, machines[0]) && strcmp(machine, machines[1])) return 2;
  struct disassembly *info = malloc(sizeof *info);
  info->read = read;
  info->print = print;
  *made = (uint64_t)info;
  return 0;
}

int amd_comgr_destroy_disassembly_info(uint64_t info) {
  free((void *)info);
  return 0;
}

int amd_comgr_disassemble_instruction(uint64_t info, uint64_t address, void *user, uint64_t *size) {
  struct disassembly *with = (struct disassembly *)info;
  uint32_t word = 0;
  char text[64];
  if (with->read(address, (char *)&word, 4, user) != 4) return 1;
  snprintf(text, sizeof text, "\ts_word %u", word);
  with->print(text, user);
  *size = 4;
  return 0;
}
