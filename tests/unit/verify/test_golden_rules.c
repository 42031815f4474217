/* SPDX-License-Identifier: MIT
 * Golden vectors of every rule: tests/golden/rules/RULE.jsonl holds trees, rows of p and q, the uniforms of every decision, and
 * the path. docs/golden-vectors.md describes the format for other engines. The test replays each vector twice: with the
 * production chance at the recorded address, and with the recorded uniforms under the plain arithmetic of that page.
 * WG_UPDATE=1 writes the files anew; git diff reviews them. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/base/json.h"
#include "kernels/philox.h"
#include "tests/unit/verify/rule_options.h"
#include "tests/unit/verify/small.h"

enum { VOCAB = 4, GRAIN = 64, PER_SHAPE = 8, NODES = 8, DRAWS = 256, REQUEST = 7, POSITION = 100 };

/* ---- a chance that answers from a list of uniforms, or records it */

typedef struct draw {
    uint32_t purpose, offset, index; /* index: node; of a race's time the token */
    double u;
} draw;

typedef struct script {
    wg_chance real; /* the source of the uniforms while recording */
    bool recording, missing;
    draw draw[DRAWS];
    int n;
} script;

static double uniform_of(const wg_chance *c, uint32_t purpose, uint32_t index, bool race)
{
    script *s = c->state;
    const uint32_t offset = c->position - s->real.position;
    for (int i = 0; i < s->n; i++)
        if (s->draw[i].purpose == purpose && s->draw[i].offset == offset && s->draw[i].index == index) return s->draw[i].u;
    if (!s->recording || s->n == DRAWS) return s->missing = true, 0.5;
    const wg_philox r = wg_philox_at(s->real.seed, race ? index >> 1 : index, purpose, c->position, s->real.request);
    const double u = race && index & 1 ? wg_philox_double(r.v[2], r.v[3]) : wg_philox_double(r.v[0], r.v[1]);
    s->draw[s->n++] = (draw){ purpose, offset, index, u };
    return u;
}

static bool script_ratio(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    return num >= den ? num > 0 : uniform_of(c, purpose, (uint32_t)index, false) * den < num;
}

static int script_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    double all = 0, run = 0;
    for (int i = 0; i < n; i++) all += weight[i];
    const double at = uniform_of(c, purpose, (uint32_t)index, false) * all;
    int last = 0;
    for (int i = 0; i < n; i++) {
        if (!(weight[i] > 0)) continue;
        run += weight[i];
        last = i;
        if (at < run) break;
    }
    return last;
}

static int script_race(const wg_chance *c, wg_purpose purpose, wg_lists lists, const int32_t *token, const double *weight,
                       int n)
{
    int winner = 0;
    double best = INFINITY;
    for (int list = lists.first; list < lists.end; list += lists.step)
        for (int i = 0; i < n; i++) {
            if (!(weight[i] > 0)) continue;
            const uint32_t x = (uint32_t)(token ? token[i] : i);
            const double at = -log1p(-uniform_of(c, wg_purpose_of_list(purpose, list), x, true)) / weight[i];
            if (at < best) best = at, winner = i;
        }
    return winner;
}

static const wg_chance_class script_class = { script_ratio, script_pick, script_race, NULL };

static wg_chance scripted(script *s)
{
    wg_chance c = s->real;
    c.class = &script_class, c.state = s;
    return c;
}

/* ---- a vector: what a rule is given, and what it answers */

typedef struct vector {
    wg_tree tree;
    double p[NODES][VOCAB], q[NODES][VOCAB]; /* of each node; multiples of 1/128, so that their decimals are exact */
    uint64_t seed;
} vector;

/* A distribution in multiples of 1/64: `kind` 0 flat, 1 peaked, 2 with zeros, 3 one-hot. */
static void row_of(uint64_t seed, uint32_t number, int kind, double *out)
{
    int left = GRAIN, part[VOCAB];
    for (int x = 0; x < VOCAB; x++) {
        const wg_philox r = wg_philox_at(seed, (uint32_t)x, number, (uint32_t)kind, 0);
        const int most = kind == 0 ? 2 * GRAIN / VOCAB : left;
        part[x] = x == VOCAB - 1 ? left : (int)(r.v[0] % (uint32_t)((most < left ? most : left) + 1));
        if (kind == 2 && r.v[1] % 3 == 0 && x < VOCAB - 1) part[x] = 0;
        if (kind == 3) part[x] = x == VOCAB - 1 ? left : r.v[1] % 2 ? left : 0;
        left -= part[x];
    }
    const int turn = (int)(wg_philox_at(seed, 99, number, (uint32_t)kind, 0).v[0] % VOCAB);
    for (int x = 0; x < VOCAB; x++) out[(x + turn) % VOCAB] = (double)part[x] / GRAIN;
}

/* One child of `node`, the kth of m, as a drafter of this law draws it. -1: its row has no token left. */
static int32_t child_token(const vector *v, const wg_chance *c, int node, int k, int m, int races)
{
    const wg_tree *t = &v->tree;
    double w[VOCAB];
    memcpy(w, v->q[node], sizeof w);
    const wg_chance at = wg_chance_at(c, wg_tree_depth(t, node));
    for (int i = wg_tree_child(t, node, node); i >= 0 && t->law != WG_LAW_IID; i = wg_tree_child(t, node, i))
        w[t->token[i]] = 0;
    int best = 0;
    for (int x = 1; x < VOCAB; x++)
        if (w[x] > w[best]) best = x;
    if (!(w[best] > 0)) return -1;
    if (t->law == WG_LAW_FIXED) return best;
    if (t->law == WG_LAW_COUPLED) return wg_chance_race(&at, WG_DRAW_COUPLED, wg_lists_dealt(k, m, races), NULL, w, VOCAB);
    return wg_chance_pick(c, WG_DRAW_DRAFT, t->n, w, VOCAB);
}

/* Every node above `depth` gets `width` children, as far as NODES reach and its row has tokens. */
static void vector_draw(vector *v, wg_sibling_law law, int depth, int width, int races, bool zero_only)
{
    const wg_chance c = wg_chance_philox(v->seed, REQUEST, POSITION);
    for (int i = 0; i < NODES; i++) {
        const int kind = (int)(v->seed + (uint64_t)i) % 4;
        row_of(v->seed, (uint32_t)i, zero_only ? 3 : kind, v->p[i]);
        row_of(v->seed, (uint32_t)(i + NODES), kind == 3 ? 1 : kind, v->q[i]);
        for (int x = 0; x < VOCAB && v->seed % 2; x++) v->q[i][x] = (v->q[i][x] + v->p[i][x]) / 2; /* a good drafter */
    }
    wg_tree_reset(&v->tree, 0, law);
    for (int node = 0; node < v->tree.n; node++) {
        if (wg_tree_depth(&v->tree, node) >= depth || v->tree.n + width > NODES) continue;
        for (int k = 0; k < width; k++) {
            const int32_t x = child_token(v, &c, node, k, width, races);
            if (x >= 0) wg_tree_push(&v->tree, node, x, law & (WG_LAW_FIXED | WG_LAW_COUPLED) ? -1 : node);
        }
    }
}

static wg_path answer(const rule_setting *r, const vector *v, const wg_chance *c)
{
    wg_path path;
    wg_rows p = rows_of(v->tree.n, VOCAB, v->p[0]), q = rows_of(v->tree.n, VOCAB, v->q[0]);
    memset(&path, 0x55, sizeof path);
    accept_alone(r->rule, r->options, &v->tree, &p, &q, c, &path);
    wg_rows_close(&p);
    wg_rows_close(&q);
    return path;
}

/* ---- files */

static json_t *numbers(const double *x, int n)
{
    json_t *v = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(v, json_real(x[i]));
    return v;
}

static json_t *rows_json(const double x[NODES][VOCAB], int n)
{
    json_t *v = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(v, numbers(x[i], VOCAB));
    return v;
}

static const char *purpose_name(uint32_t purpose)
{
    return (purpose & 255) == WG_DRAW_ACCEPT ? "accept" : (purpose & 255) == WG_DRAW_NEXT ? "next" : "race";
}

static json_t *vector_json(const rule_setting *r, const vector *v, const script *s, const wg_path *path)
{
    const wg_tree *t = &v->tree;
    json_t *parent = json_array(), *token = json_array(), *qrow = json_array(), *draws = json_array(), *node = json_array();
    for (int i = 0; i < t->n; i++) {
        json_array_append_new(parent, json_integer(t->parent[i]));
        json_array_append_new(token, json_integer(t->token[i]));
        json_array_append_new(qrow, json_integer(t->qrow[i]));
    }
    for (int i = 0; i < s->n; i++) {
        const draw *d = &s->draw[i];
        json_array_append_new(draws, json_pack("[s, i, i, i, f]", purpose_name(d->purpose), (int)(d->purpose >> 8),
                                               (int)d->offset, (int)d->index, d->u));
    }
    for (int i = 0; i < path->n; i++) json_array_append_new(node, json_integer(path->node[i]));
    return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "options", r->text, "law", wg_law_name(t->law),
                     "seed", (json_int_t)v->seed, "parent", parent, "token", token, "qrow", qrow, "p", rows_json(v->p, t->n),
                     "q", rows_json(v->q, t->n), "draws", draws, "path", node, "next", (int)path->next);
}

static void write_vectors(FILE *f, const rule_setting *r)
{
    static const struct {
        int depth, width;
    } shape[] = { { 3, 1 }, { 2, 2 }, { 1, 3 } };
    const int races = wg_verifier_races(r->rule, r->options);
    for (unsigned law = 1; law < WG_LAWS; law *= 2)
        for (int i = 0; i < (r->rule->chains ? 1 : 3) && r->rule->laws & law; i++)
            for (int k = 0; k < PER_SHAPE; k++) {
                vector v = { .seed = 1000 * law + 100 * (uint64_t)i + (uint64_t)k };
                vector_draw(&v, law, shape[i].depth, shape[i].width, races, r->rule->zero_only);
                script s = { .real = wg_chance_philox(v.seed, REQUEST, POSITION), .recording = true };
                const wg_chance c = scripted(&s);
                const wg_path path = answer(r, &v, &c);
                json_t *line = vector_json(r, &v, &s, &path);
                cr_assert_eq(json_dumpf(line, f, JSON_COMPACT | JSON_REAL_PRECISION(17)), 0);
                cr_assert(fputc('\n', f) == '\n');
                json_decref(line);
            }
}

static void read_rows(const json_t *v, double out[NODES][VOCAB])
{
    for (size_t i = 0; i < json_array_size(v); i++)
        for (size_t x = 0; x < VOCAB; x++) out[i][x] = json_real_value(json_array_get(json_array_get(v, i), x));
}

static int integer(const json_t *list, size_t i) { return (int)json_integer_value(json_array_get(list, i)); }

static void read_vector(const json_t *line, vector *v, script *s)
{
    static const struct {
        const char *name;
        wg_purpose purpose;
    } known[] = { { "accept", WG_DRAW_ACCEPT }, { "next", WG_DRAW_NEXT }, { "race", WG_DRAW_COUPLED } };
    const json_t *parent = json_object_get(line, "parent"), *draws = json_object_get(line, "draws");
    unsigned law = 1;
    while (law < WG_LAWS && strcmp(wg_law_name(law), json_string_value(json_object_get(line, "law"))) != 0) law *= 2;
    *v = (vector){ .seed = (uint64_t)json_integer_value(json_object_get(line, "seed")) };
    wg_tree_reset(&v->tree, integer(json_object_get(line, "token"), 0), law);
    for (size_t i = 1; i < json_array_size(parent); i++)
        wg_tree_push(&v->tree, integer(parent, i), integer(json_object_get(line, "token"), i),
                     integer(json_object_get(line, "qrow"), i));
    read_rows(json_object_get(line, "p"), v->p);
    read_rows(json_object_get(line, "q"), v->q);
    *s = (script){ .real = wg_chance_philox(v->seed, REQUEST, POSITION) };
    for (size_t i = 0; i < json_array_size(draws) && i < DRAWS; i++) {
        const json_t *d = json_array_get(draws, i);
        for (int k = 0; k < 3; k++)
            if (!strcmp(known[k].name, json_string_value(json_array_get(d, 0))))
                s->draw[s->n++] = (draw){ wg_purpose_of_list(known[k].purpose, integer(d, 1)), (uint32_t)integer(d, 2),
                                          (uint32_t)integer(d, 3), json_real_value(json_array_get(d, 4)) };
    }
}

static void expect(const json_t *line, const wg_path *path, const char *rule, int number, const char *chance)
{
    const json_t *want = json_object_get(line, "path");
    bool same = (size_t)path->n == json_array_size(want) && path->next == json_integer_value(json_object_get(line, "next"));
    for (int i = 0; same && i < path->n; i++) same = path->node[i] == integer(want, (size_t)i);
    cr_expect(same, "rule %s, line %d, %s: %d nodes, next %d", rule, number, chance, path->n, (int)path->next);
}

/* Replays the lines of one setting; returns how many there are. */
static int check_vectors(const char *file, const rule_setting *r)
{
    char bytes[8192];
    int lines = 0, number = 0;
    FILE *f = fopen(file, "r");
    cr_assert(f != NULL, "%s is missing: run this test once with WG_UPDATE=1", file);
    while (fgets(bytes, sizeof bytes, f)) {
        json_t *line = json_loads(bytes, 0, NULL);
        number++;
        cr_assert(line != NULL, "%s, line %d: not JSON", file, number);
        if (!strcmp(json_string_value(json_object_get(line, "options")), r->text)) {
            vector v;
            script s;
            read_vector(line, &v, &s);
            const wg_chance production = s.real, plain = scripted(&s);
            const wg_path first = answer(r, &v, &production), second = answer(r, &v, &plain);
            expect(line, &first, r->rule->name, number, "production chance");
            expect(line, &second, r->rule->name, number, "recorded uniforms");
            cr_expect(!s.missing, "rule %s, line %d: a decision that the vector has no uniform for", r->rule->name, number);
            lines++;
        }
        json_decref(line);
    }
    fclose(f);
    return lines;
}

Test(golden_rules, every_rule_answers_its_vectors)
{
    static rule_setting setting[RULE_SETTINGS];
    const int n = rule_settings(setting);
    const char *root = getenv("WG_ROOT"), *update = getenv("WG_UPDATE");
    for (int i = 0; i < n; i++) {
        char file[512];
        const rule_setting *r = &setting[i];
        snprintf(file, sizeof file, "%s/tests/golden/rules/%s.jsonl", root ? root : ".", r->rule->name);
        if (update && *update) {
            const bool first = i == 0 || setting[i - 1].rule != r->rule;
            FILE *f = fopen(file, first ? "w" : "a");
            cr_assert(f != NULL, "%s: cannot be written", file);
            write_vectors(f, r);
            cr_assert_eq(fclose(f), 0);
        }
        cr_expect_geq(check_vectors(file, r), PER_SHAPE, "rule %s, options \"%s\": too few vectors", r->rule->name, r->text);
    }
}
