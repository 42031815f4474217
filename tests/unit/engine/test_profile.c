/* SPDX-License-Identifier: MIT
 * The profile of the machine: prices are measured once and kept; what the key has distinguishes them; a bad file is named and
 * measured anew, or refused; under load nothing is kept; nominal prices need no clock. */
#include <criterion/criterion.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/base/mem.h"
#include "core/engine/profile.h"
#include "core/model/lm_table.h"
#include "kernels/cpu.h"
#include "tests/temp.h"

enum { VOCAB = 40 };

/* A table with an identity, whose passes are counted. */
typedef struct priced {
    wg_lm_table *t;
    wg_lm_class class;
    wg_lm_identity is;
} priced;
static priced model[2];
static const wg_lm_class *table_class;
static long passes;

static wg_status counted(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    passes++;
    return table_class->forward(lm, b, logits, err);
}

static void identity(const wg_lm *lm, wg_lm_identity *out) { *out = model[lm != &model[0].t->lm].is; }

typedef struct heard {
    char all[8192];
    int warnings;
} heard;

static void hear(void *user, bool warning, const char *text)
{
    heard *h = user;
    h->warnings += warning;
    snprintf(h->all + strlen(h->all), sizeof h->all - strlen(h->all), "%s\n", text);
}

static bool quiet(const wg_disturbance *d) { return d != NULL; }
static bool loud(const wg_disturbance *d) { return d == NULL; }

static temp dir;
static char folder[200];
static wg_kv *kv;
static wg_error err;
static const wg_sampling sampling = WG_SAMPLING(0.8, 0, 1, 0);

static void begin(void)
{
    cr_assert_eq(wg_kv_open(&kv, 16, 20, 200, &err), WG_OK);
    for (int i = 0; i < 2; i++) {
        priced *m = &model[i];
        cr_assert_eq(wg_lm_table_open(&m->t, VOCAB, 2, 3, 1, 200, &err), WG_OK);
        cr_assert_eq(wg_lm_attach(&m->t->lm, kv, &err), WG_OK);
        table_class = m->t->lm.class;
        m->class = *table_class;
        m->class.forward = counted;
        m->class.identity = identity;
        m->t->lm.class = &m->class;
        m->is = (wg_lm_identity){ .threads = 1 };
        snprintf(m->is.name, sizeof m->is.name, "model-%d.gguf", i);
        snprintf(m->is.part, sizeof m->is.part, "cache f16");
        snprintf(m->is.device, sizeof m->is.device, "cpu");
        for (int k = 0; k < 64; k++) m->is.weights[k] = "0123456789abcdef"[(k + i) % 16];
    }
    temp_make(&dir);
    snprintf(folder, sizeof folder, "%s/deep/profiles", dir.dir);
}

static void end(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", dir.dir);
    cr_assert_eq(system(command), 0);
    for (int i = 0; i < 2; i++) {
        model[i].t->lm.class = table_class;
        wg_lm_table_close(model[i].t);
    }
    wg_kv_close(kv);
}

TestSuite(profile, .init = begin, .fini = end);

static wg_profile_options with(const char *use, heard *h)
{
    return (wg_profile_options){ .use = use, .folder = folder, .say = hear, .user = h, .quiet = quiet };
}

static wg_profile *must_open(const wg_profile_options *o)
{
    wg_profile *p = NULL;
    cr_assert_eq(wg_profile_open(&p, o, &err), WG_OK, "%s", err.text);
    return p;
}

/* All three kinds of prices; how many passes that took. */
static long ask_all(wg_profile *p, wg_prices out[3])
{
    passes = 0;
    cr_assert_eq(wg_profile_target(p, &model[0].t->lm, &out[0], &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_profile_draft(p, &model[1].t->lm, &model[0].t->lm, &out[1], &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_profile_row(p, &model[0].t->lm, &sampling, wg_ops_for(WG_CPU_REF), &out[2], &err), WG_OK, "%s", err.text);
    wg_profile_keep(p);
    return passes;
}

/* The same in a profile of its own. */
static long ask_anew(const wg_profile_options *o, wg_prices out[3])
{
    wg_profile *p = must_open(o);
    const long n = ask_all(p, out);
    wg_profile_close(p);
    return n;
}

/* The only file of the cache. */
static const char *kept_path(void)
{
    static char path[600];
    DIR *d = opendir(folder);
    *path = '\0';
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".json")) snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (d) closedir(d);
    return path;
}

Test(profile, prices_between_and_beyond_the_sizes)
{
    const wg_prices p = { .n = 3, .rows = { 1, 2, 4 }, .seconds = { 1, 1.5, 3 } };
    const double want[] = { 1, 1.5, 2.25, 3, 3.75, 4.5 };
    for (int r = 1; r <= 6; r++) cr_assert_float_eq(wg_prices_of(&p, r), want[r - 1], 1e-12, "%d rows", r);
    cr_assert_eq(wg_prices_of(&(wg_prices){ .n = 1, .rows = { 1 }, .seconds = { 2 } }, 9), 2);
    cr_assert_eq(wg_prices_of(&(wg_prices){ .n = 0 }, 9), 0);
}

Test(profile, measures_once_and_keeps)
{
    heard h = { .all = "" }, again = { .all = "" };
    wg_prices a[3], b[3];
    char one[WG_SHA256_HEX], two[WG_SHA256_HEX], of_file[WG_SHA256_HEX];
    const wg_profile_options first = with("", &h), second = with(NULL, &again);
    wg_profile *p = must_open(&first);
    cr_assert_str_eq(wg_profile_name(p, one), "", "nothing was asked for");
    cr_assert_gt(ask_all(p, a), 10);
    cr_assert(strstr(h.all, "measuring what passes cost on this machine") && strstr(h.all, "kept in "), "%s", h.all);
    cr_assert_eq(ask_all(p, b), 0, "asked again");
    cr_assert(wg_profile_name(p, one) == one && strlen(one) == 64);
    wg_profile *q = must_open(&second);
    cr_assert_eq(ask_all(q, b), 0, "another process finds it in the cache");
    cr_assert_str_eq(again.all, "");
    cr_assert(memcmp(a, b, sizeof a) == 0, "bit for bit");
    cr_assert_str_eq(wg_profile_name(q, two), one);
    cr_assert_eq(wg_profile_save(q, temp_at(&dir, "profile.json"), &err), WG_OK);
    cr_assert_eq(wg_sha256_file(temp_at(&dir, "profile.json"), of_file, &err), WG_OK);
    cr_assert_str_eq(of_file, one, "the digest is that of the file");
    wg_profile_close(p);
    wg_profile_close(q);
}

/* What the key has: each makes another entry; a name does not. */
Test(profile, the_key_distinguishes)
{
    heard h = { .all = "" };
    wg_prices a[3];
    const wg_profile_options o = with("", &h);
    ask_anew(&o, a);
    char *const other[] = { model[0].is.weights, model[0].is.part, model[0].is.device, model[1].is.weights, model[1].is.part };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        const char was = *other[i];
        *other[i] = 'x';
        cr_assert_gt(ask_anew(&o, a), 0, "%zu", i);
        *other[i] = was;
        cr_assert_eq(ask_anew(&o, a), 0, "%zu", i);
    }
    model[0].is.threads = 2;
    cr_assert_gt(ask_anew(&o, a), 0);
    cr_assert_eq(ask_anew(&o, a), 0);
    *model[0].is.name = 'x';
    cr_assert_eq(ask_anew(&o, a), 0, "a file may be renamed");
    setenv("WG_CPU", "ref", 1); /* another level of the kernels, unless this machine has no other */
    if (wg_cpu_best() != WG_CPU_REF) cr_assert_gt(ask_anew(&o, a), 0);
}

Test(profile, new_measures_and_replaces)
{
    heard h = { .all = "" };
    wg_prices a[3], b[3], c[3];
    const wg_profile_options cached = with("", &h), anew = with("new", &h);
    ask_anew(&cached, a);
    cr_assert_gt(ask_anew(&anew, b), 0);
    cr_assert(memcmp(a, b, sizeof a) != 0, "times are never all equal");
    cr_assert_eq(ask_anew(&cached, c), 0);
    cr_assert(memcmp(b, c, sizeof b) == 0);
    cr_assert_eq(dir_count(folder), 1);
}

Test(profile, under_load_nothing_is_kept)
{
    heard h = { .all = "" };
    wg_prices a[3];
    wg_profile_options o = with("", &h);
    o.quiet = loud;
    cr_assert_gt(ask_anew(&o, a), 0);
    cr_assert(h.warnings == 1 && strstr(h.all, "measured under load (other programs kept "), "%s", h.all);
    cr_assert_str_eq(kept_path(), "");
    cr_assert_gt(ask_anew(&o, a), 0, "and measured again");
    const wg_disturbance calm[] = { { 0.2, 0.1, 2, 2 }, { -1, 0.5, 2, 2 }, { 5, 0.1, 16, 4 } },
                         busy[] = { { 0.5, 0.1, 2, 2 }, { 0, 0.6, 2, 2 }, { 13, 0.1, 16, 4 } };
    for (int i = 0; i < 3; i++) cr_assert(wg_profile_is_quiet(&calm[i]) && !wg_profile_is_quiet(&busy[i]), "%d", i);
}

Test(profile, without_a_place_it_stays_in_memory)
{
    heard h = { .all = "" }, no_home = { .all = "" };
    wg_prices a[3];
    wg_profile_options o = with("", &h), user = with("", &no_home);
    file_write(temp_at(&dir, "deep"), "no folder", 9);
    cr_assert_gt(ask_anew(&o, a), 0);
    cr_assert(h.warnings == 1 && strstr(h.all, "prices are in memory only: ") && strstr(h.all, "cannot make this folder"), "%s",
              h.all);
    user.folder = NULL;
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    cr_assert_gt(ask_anew(&user, a), 0);
    cr_assert(strstr(no_home.all, "prices are in memory only: there is no folder for them: HOME is not set"), "%s",
              no_home.all);
    setenv("XDG_CACHE_HOME", "relative", 1); /* which its specification says to ignore */
    setenv("HOME", dir.dir, 1);
    unlink(temp_at(&dir, "deep"));
    cr_assert_gt(ask_anew(&user, a), 0);
    snprintf(folder, sizeof folder, "%s/.cache/wager/profiles", dir.dir);
    cr_assert_eq(dir_count(folder), 1);
}

/* A file cut anywhere, or with a byte changed, is measured anew and replaced; asked for by name it is refused. */
Test(profile, bad_files_are_named)
{
    heard h = { .all = "" };
    wg_prices a[3];
    const wg_profile_options o = with("", &h);
    ask_anew(&o, a);
    char path[600], *text;
    size_t n;
    snprintf(path, sizeof path, "%s", kept_path());
    text = file_read(path, &n);
    for (size_t cut = 0; cut + 1 < n; cut += n / 40) {
        wg_profile *p;
        file_write(path, text, cut);
        const wg_profile_options given = with(path, &h);
        const wg_status s = wg_profile_open(&p, &given, &err);
        cr_assert(s == WG_EFORMAT && strstr(err.text, path), "cut at %zu: %s", cut, err.text);
        heard again = { .all = "" };
        const wg_profile_options cached = with("", &again);
        cr_assert_gt(ask_anew(&cached, a), 0, "cut at %zu", cut);
        cr_assert(again.warnings == 1 && strstr(again.all, "; measuring anew"), "%s", again.all);
        cr_assert_eq(ask_anew(&cached, a), 0, "it was replaced");
    }
    free(text);
}

/* One thing changed in a good file: what the message says. */
Test(profile, messages_of_bad_entries)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        { "wager profile 1", "wager profile 2", ": this is no profile of wager: expected \"format\": \"wager profile 1\"" },
        { "\"ranks\": 1", "\"ranks\": 0", "expected \"ranks\" with a number 1..1048576" },
        { "\"level\": ", "\"lovel\": ", "expected \"level\" with a text of less than 16 bytes" },
        { "\"entries\"", "\"entrees\"", "expected \"entries\" with at most 1024 of them, and no other members" },
        { "\"kind\": \"draft\"", "\"kind\": \"daft\"",
          "entry 2 of this profile is damaged: expected \"kind\": target, draft or row" },
        { "\"kind\": \"draft\"", "\"kind\": \"target\"", "entry 2 of this profile is damaged: expected no other members" },
        { "\"threads\": 1", "\"thread\": 1", "expected \"threads\" with a number 0..65536" },
        { "\"device\": \"cpu\",", "", "expected a model: name, weights, part, device, threads" },
        { "\"rows\": [1, 2", "\"rows\": [1, 1", "expected \"rows\" that rise from 1" },
        { "\"rows\": [1, 2, ", "\"rows\": [1, ", "expected as many \"seconds\" as \"rows\", at most 24" },
        { "\"seconds\": [", "\"seconds\": [-", "expected positive \"seconds\" that do not fall" },
        { "\"spread\": ", "\"spread\": -1", "expected \"spread\" with a number from 0 on" },
    };
    heard h = { .all = "" };
    wg_prices a[3];
    const wg_profile_options o = with("", &h);
    ask_anew(&o, a);
    char path[600], made[600], *text = file_read(kept_path(), NULL);
    snprintf(path, sizeof path, "%s", kept_path());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_profile *p = NULL;
        const char *at = strstr(text, cases[i].from);
        cr_assert(at, "%s is not in %s", cases[i].from, text);
        FILE *f = fopen(snprintf(made, sizeof made, "%s/made.json", dir.dir) ? made : "", "w");
        fprintf(f, "%.*s%s%s", (int)(at - text), text, cases[i].to, at + strlen(cases[i].from));
        fclose(f);
        const wg_profile_options given = with(made, &h);
        cr_assert_eq(wg_profile_open(&p, &given, &err), WG_EFORMAT, "%s", cases[i].to);
        cr_assert(strstr(err.text, cases[i].says), "%s: %s", cases[i].to, err.text);
    }
    /* of another machine: found by its name in the cache it is measured anew */
    const char *cpu = strstr(text, "\"cpu\": \"") + 8;
    heard foreign = { .all = "" };
    FILE *f = fopen(path, "w");
    fprintf(f, "%.*sAnother %s", (int)(cpu - text), text, cpu);
    fclose(f);
    const wg_profile_options cached = with("", &foreign);
    cr_assert_gt(ask_anew(&cached, a), 0);
    cr_assert(strstr(foreign.all, "it is of another machine or version of wager (Another "), "%s", foreign.all);
    free(text);
}

Test(profile, a_file_is_used_alone)
{
    heard h = { .all = "" }, said = { .all = "" };
    wg_prices a[3], b[3], none;
    char file[600], foreign[600], hex[2][WG_SHA256_HEX];
    const wg_profile_options o = with("", &h);
    wg_profile *p = must_open(&o);
    ask_all(p, a);
    wg_profile_name(p, hex[0]);
    snprintf(file, sizeof file, "%s", temp_at(&dir, "mine.json"));
    cr_assert_eq(wg_profile_save(p, file, &err), WG_OK);
    wg_profile_close(p);
    char *text = file_read(file, NULL), *cpu = strstr(text, "\"cpu\": \"") + 8;
    snprintf(foreign, sizeof foreign, "%s", temp_at(&dir, "foreign.json"));
    FILE *f = fopen(foreign, "w");
    fprintf(f, "%.*sAnother %s", (int)(cpu - text), text, cpu);
    fclose(f);
    const wg_profile_options given = with(file, &said), other = with(foreign, &said);
    model[0].is.threads = model[1].is.threads = 3; /* which is not what it was measured with */
    p = must_open(&given);
    cr_assert_eq(ask_all(p, b), 0);
    cr_assert(memcmp(a, b, sizeof a) == 0 && !strcmp(wg_profile_name(p, hex[1]), hex[0]));
    const wg_sampling warmer = WG_SAMPLING(1, 0, 1, 0);
    cr_assert_eq(wg_profile_row(p, &model[0].t->lm, &warmer, wg_ops_for(WG_CPU_REF), &b[0], &err), WG_OK, "%s", err.text);
    cr_assert(memcmp(&a[2], &b[0], sizeof b[0]) == 0, "rows of another chain will do");
    *model[1].is.weights = 'x';
    cr_assert_eq(wg_profile_draft(p, &model[1].t->lm, &model[0].t->lm, &none, &err), WG_ECONFIG);
    cr_assert(strstr(err.text, "mine.json: no prices of drafts for model-0.gguf by model-1.gguf (device cpu, cache f16)"), "%s",
              err.text);
    *model[0].is.weights = 'x';
    cr_assert_eq(wg_profile_target(p, &model[0].t->lm, &none, &err), WG_ECONFIG);
    cr_assert(strstr(err.text, "no prices of passes of model-0.gguf"), "%s", err.text);
    wg_profile_close(p);
    cr_assert_str_eq(said.all, "");
    wg_profile_close(must_open(&other));
    cr_assert(strstr(said.all, "prices of another machine: Another "), "%s", said.all);
    free(text);
}

Test(profile, names_that_are_no_file)
{
    heard h = { .all = "" };
    wg_profile *p;
    wg_profile_options o = with("nominl", &h);
    cr_assert_eq(wg_profile_open(&p, &o, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "profile nominl: expected nominal, new, or a file that was written by wager");
    o.use = "/nowhere/p.json";
    cr_assert_eq(wg_profile_open(&p, &o, &err), WG_ENOENT);
}

/* Nominal prices need no clock and no file; so do those without a profile. */
Test(profile, nominal)
{
    heard h = { .all = "" };
    wg_prices a[3], b[3];
    char hex[WG_SHA256_HEX];
    const wg_profile_options o = with("nominal", &h);
    wg_profile *p = must_open(&o);
    cr_assert_str_eq(wg_profile_name(p, hex), "");
    cr_assert_eq(ask_all(p, a), 0);
    cr_assert_eq(ask_all(NULL, b), 0);
    cr_assert(memcmp(a, b, sizeof a) == 0 && a[0].nominal && a[1].nominal && a[2].nominal);
    cr_assert_float_eq(wg_prices_of(&a[0], 5), 1.3 + 0.4 * 2, 1e-12);
    cr_assert_float_eq(wg_prices_of(&a[1], 2), 0.1 * 1.35, 1e-12);
    cr_assert_eq(wg_prices_of(&a[2], 1), 0);
    cr_assert_str_eq(wg_profile_name(p, hex), "nominal");
    cr_assert(dir_count(folder) < 0 && !*h.all);
    wg_profile_close(p);
}

/* A model that nobody knows: measured, and in the text of the profile, but in no cache. */
Test(profile, without_an_identity_nothing_is_kept)
{
    heard h = { .all = "" };
    wg_prices a[3];
    model[0].class.identity = NULL;
    const wg_profile_options o = with("", &h);
    wg_profile *p = must_open(&o);
    cr_assert_gt(ask_all(p, a), 0);
    char *text = wg_profile_text(p);
    cr_assert(strstr(text, "table of 40 tokens"), "%s", text);
    wg_free(text);
    wg_profile_close(p);
    cr_assert_str_eq(kept_path(), "");
    cr_assert_gt(ask_anew(&o, a), 0);
}

/* Four processes with a draft model each, at once: the file has all their entries. */
Test(profile, writers_at_the_same_time)
{
    enum { WRITERS = 4 };
    heard h = { .all = "" };
    wg_prices a[3];
    const wg_profile_options o = with("", &h);
    pid_t pid[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        if ((pid[i] = fork()) != 0) continue;
        model[1].is.weights[5] = (char)('a' + i);
        ask_anew(&o, a);
        _exit(0);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        cr_assert(waitpid(pid[i], &status, 0) == pid[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        model[1].is.weights[5] = (char)('a' + i);
        cr_assert_eq(ask_anew(&o, a), 0, "%d", i);
    }
    cr_assert_eq(dir_count(folder), 1, "nothing else is left");
}

Test(profile, out_of_memory)
{
    heard h = { .all = "" };
    wg_prices a[3];
    const wg_profile_options o = with("", &h);
    ask_anew(&o, a);
    for (uint64_t i = 1, done = 0; !done; i++) {
        wg_profile *p = NULL;
        const size_t live = wg_mem_read().live_blocks;
        wg_mem_fail_at(i, false);
        wg_status s = wg_profile_open(&p, &o, &err);
        if (!s) s = wg_profile_target(p, &model[0].t->lm, &a[0], &err);
        if (!s) s = wg_profile_draft(p, &model[1].t->lm, &model[0].t->lm, &a[1], &err);
        wg_mem_fail_at(0, false);
        done = s == WG_OK;
        cr_assert(done || s == WG_ENOMEM, "%s", err.text);
        wg_profile_close(p);
        cr_assert_eq(wg_mem_read().live_blocks, live);
    }
}
