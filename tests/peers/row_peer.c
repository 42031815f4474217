/* SPDX-License-Identifier: MIT
 * A process target with faults (docs/process-target.md): row_peer FAULT [AFTER]. Without a fault, and for AFTER requests of
 * rows before it, it answers rows that depend on token and position; its vocabulary is 40, its hidden states have 2 layers and
 * 4 numbers. AFTER -1: in its first answer. It includes nothing of wager's: it is written from the page. */
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HELLO = 1, OPEN, ASK, FAILED, VOCAB = 40, CONTEXT = 500, LAYERS = 2, DIM = 4 };
static const int32_t magic = 0x53574F52;

static const char *fault;
static int after;
static float *rows, *states;
static uint64_t bytes, states_at;
static int32_t tap[64], taps;
static int rows_asked, opened;

static int is(const char *name) { return !strcmp(fault, name) && after <= 0; }

static void put(int32_t first, int kind, int serial, const int32_t *word, int n, int says)
{
    const int32_t h[4] = { first, kind, serial, says };
    fwrite(h, sizeof *h, 4, stdout);
    fwrite(word, sizeof *word, (size_t)n, stdout);
    fflush(stdout);
}

static void answer(int kind, int serial, const int32_t *word, int n)
{
    if (is("magic")) put(magic + 1, kind, serial, word, n, n);
    else if (is("kind")) put(magic, 9, serial, word, n, n);
    else if (is("serial")) put(magic, kind, serial - 1, word, n, n);
    else if (is("words")) put(magic, kind, serial, word, n, 1 << 30);
    else if (is("minus")) put(magic, kind, serial, word, n, -1);
    else if (is("half")) put(magic, kind, serial, word, 1, n), sleep(1000);
    else if (is("cut")) put(magic, kind, serial, word, 1, n), exit(0);
    else put(magic, kind, serial, word, n, n);
}

static void greet(int serial)
{
    int32_t w[6] = { 1, VOCAB, CONTEXT, LAYERS, DIM, 0x72656570 };
    if (is("version")) w[0] = 2;
    if (is("vocabulary")) w[1] = 1 << 30;
    if (is("context")) w[2] = -5;
    if (is("width")) w[3] = 3, w[4] = 0;
    if (is("stateless")) w[3] = w[4] = 0;
    answer(HELLO, serial, w, is("short hello") ? 4 : 6);
}

static void ask(const int32_t *w, int serial)
{
    int32_t out[3] = { 0, 0, 0 };
    const int parts = w[1], wanted = w[0];
    w += 2;
    for (int i = 0; i < parts; i++) {
        const int n = w[3];
        const int32_t *row = w + 4 + w[2];
        for (int r = 0; r < n; r++) {
            const int32_t *x = row + 4 * r;
            for (int k = 0; k < VOCAB && x[3] >= 0; k++) rows[x[3] * VOCAB + k] = (float)((x[0] * 31 + x[2] * 7 + k * 5) % 13);
            out[0] += x[3] >= 0;
            for (int k = 0; k < taps * DIM && wanted; k++)
                states[out[1] * taps * DIM + k] = (float)((x[0] * 31 + x[2] * 7 + tap[k / DIM] * 3 + k % DIM) % 11);
            out[1] += wanted;
        }
        w += 4 + w[2] + 4 * n;
    }
    if (is("nan") && out[0]) rows[VOCAB - 1] = NAN;
    if (is("infinity") && out[0]) rows[3] = -INFINITY;
    if (is("count")) out[0]++;
    if (is("many")) out[0] = 1 << 30;
    if (is("taps")) out[1]++;
    if (is("shrink") && ftruncate(3, 0)) exit(5);
    if (is("nan state") && wanted) states[2 * taps * DIM - 1] = NAN;
    if (is("shrink states") && ftruncate(3, (off_t)states_at)) exit(5);
    answer(ASK, serial, out, is("answer") ? 3 : 2);
}

/* It comes again when other hidden states are wanted. */
static void share(const int32_t *w, int serial)
{
    if (rows) munmap(rows, bytes);
    memcpy(&bytes, w, sizeof bytes);
    memcpy(&states_at, w + 2, sizeof states_at);
    taps = w[4];
    memcpy(tap, w + 5, (size_t)taps * sizeof *tap);
    rows = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
    if (rows == MAP_FAILED) exit(6);
    states = rows + states_at / sizeof *rows;
    answer(OPEN, serial, w, is("open") || (!strcmp(fault, "reopen") && opened++));
}

int main(int argc, char **argv)
{
    static int32_t *w;
    int32_t h[4];
    fault = argc > 1 ? argv[1] : "none";
    const int wait = argc > 2 ? atoi(argv[2]) : 0;
    after = 1;
    if (wait < 0) after = 0; /* in the first answer */
    if (is("deaf")) sleep(1000);
    while (fread(h, sizeof *h, 4, stdin) == 4) {
        if (h[0] != magic || h[3] < 0 || !(w = realloc(w, ((size_t)h[3] + 1) * sizeof *w))) return 3;
        if (fread(w, sizeof *w, (size_t)h[3], stdin) != (size_t)h[3]) return 4;
        if (h[1] == ASK) after = ++rows_asked > wait ? 0 : 1;
        if (is("exit")) return 7;
        if (is("crash")) raise(SIGKILL);
        if (is("hang")) sleep(1000);
        if (is("print")) printf("loading the model, please wait\n"), fflush(stdout);
        if (is("fail")) put(magic, FAILED, h[2], (const int32_t *)"out of \nluck", 3, 3);
        else if (h[1] == HELLO) greet(h[2]);
        else if (h[1] == ASK) ask(w, h[2]);
        else if (h[1] == OPEN) share(w, h[2]);
    }
    return 0;
}
