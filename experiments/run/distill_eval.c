/* SPDX-License-Identifier: MIT
 * The evaluation of students (distill.h). */
#include "experiments/run/distill.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/train/distill_loss.h"
#include "lab/exact.h"

/* The measurements of a student's row. */
typedef struct row_value {
    double alpha, term[WG_LOSS_TERMS], accept; /* accept: min(1, q/p) of the text's token */
    bool there;                                /* the row has a loss */
} row_value;

typedef struct eval {
    const wg_distill_eval_parts *p;
    wg_held_sums *out;
    int documents;
    int *document; /* (documents) their numbers in the file */
    wg_text_writer *writer;
    wg_loss **loss;   /* (threads) losses of one row */
    row_value *value; /* (rows of logits of a pass) */
    int32_t *arrays;  /* (4, rows of a pass) */
    double *scratch;  /* (WG_TAU_LENGTHS + 1, length + 1) */
    int steps;        /* of the student whose values these are, if it is a head */
} eval;

/* The tokens of a document before what counts as the target's text: its prompt, or the beginning that is continued. */
static size_t prompt_of(const wg_distill_eval_parts *p, size_t document)
{
    return wg_tokens_has_prompts(p->held) ? wg_tokens_prompt(p->held, document) : (size_t)p->prompt;
}

static bool is_long_enough(const wg_distill_eval_parts *p, size_t document)
{
    size_t first, tokens;
    const size_t prompt = prompt_of(p, document);
    wg_tokens_document(p->held, document, &first, &tokens);
    return tokens >= prompt + 2 && prompt > 0 && prompt + 2 <= (size_t)p->writer.length;
}

static int long_enough(const wg_distill_eval_parts *p)
{
    int n = 0;
    for (size_t i = 0; i < wg_tokens_documents(p->held); i++) n += is_long_enough(p, i);
    return n;
}

int wg_distill_eval_documents(const wg_distill_eval_parts *p)
{
    const int n = long_enough(p);
    return n < p->documents ? n : p->documents;
}

/* Chooses documents, spread over those that are long enough. */
static void choose(eval *e)
{
    const int all = long_enough(e->p);
    int seen = 0, n = 0;
    for (size_t i = 0; n < e->documents; i++)
        if (is_long_enough(e->p, i) && seen++ == (int)((int64_t)n * all / e->documents)) e->document[n++] = (int)i;
}

static wg_status open_eval(eval *e, wg_error *err)
{
    const wg_distill_eval_parts *p = e->p;
    const size_t threads = (size_t)wg_pool_threads(p->pool);
    const size_t rows = (size_t)p->writer.sequences * (size_t)p->writer.length;
    wg_loss_spec spec;
    e->document = wg_calloc((size_t)e->documents, sizeof *e->document);
    e->loss = wg_calloc(threads, sizeof(wg_loss *));
    e->value = wg_calloc(rows * WG_PATH_STEPS, sizeof *e->value);
    e->arrays = wg_calloc(4 * rows, sizeof *e->arrays);
    e->scratch = wg_calloc((WG_TAU_LENGTHS + 1) * ((size_t)p->writer.length + 1), sizeof *e->scratch);
    if (!e->document || !e->loss || !e->value || !e->arrays || !e->scratch)
        return wg_nomem(err, rows * sizeof *e->value, "an evaluation");
    choose(e);
    wg_option_defaults(wg_loss_options, &spec);
    for (int i = WG_LOSS_KL; i <= WG_LOSS_CE; i++) spec.weight[i] = i != WG_LOSS_LK;
    const int width = wg_target_rows_width(p->rows);
    for (size_t i = 0; i < threads; i++) WG_TRY(wg_loss_open(&e->loss[i], &spec, p->writer.temperature, 1, width, err));
    return wg_text_writer_open(&e->writer, &p->writer, err);
}

static void close_eval(eval *e)
{
    for (int i = 0; e->loss && i < wg_pool_threads(e->p->pool); i++) wg_loss_close(e->loss[i]);
    wg_text_writer_close(e->writer);
    wg_free(e->document), wg_free(e->loss), wg_free(e->value), wg_free(e->arrays), wg_free(e->scratch);
}

/* A loss function that stores the values of every row of logits and has no gradient. */
static void keep_rows(void *ctx, int thread, int first, int rows, int vocab, const float *z, float *dz, wg_loss_part *sum)
{
    const eval *e = ctx;
    for (int i = 0; i < rows; i++) {
        const wg_loss_target t = wg_distill_loss_target(e->p->rows, e->steps, first + i);
        const size_t at = (size_t)i * (size_t)vocab;
        row_value *to = &e->value[first + i];
        wg_loss_value v;
        to->there = !t.left_out;
        if (t.left_out) continue;
        wg_loss_rows(e->loss[thread], &t, 1, z + at, dz + at, &v);
        to->alpha = v.alpha;
        for (int k = 0; k < WG_LOSS_TERMS; k++) to->term[k] = v.term[k];
        sum->rows++;
        if (t.text < 0) { /* a token that the student does not have */
            to->term[WG_LOSS_CE] = INFINITY;
            to->accept = 0;
            continue;
        }
        const double q = exp(-v.term[WG_LOSS_CE]), of_target = (double)t.narrow[t.text];
        to->accept = of_target > q ? q / of_target : 1;
    }
}

/* The value of row `row` of the text for a draft that began `depth` rows before it; NULL: none does. Drafts of a model have the
 * values of its rows. */
static const row_value *value_at(const eval *e, int row, int depth)
{
    if (depth > 0 && e->steps && (depth >= e->steps || row < depth)) return NULL;
    const row_value *v = &e->value[e->steps ? (row - depth) * e->steps + depth : row];
    return v->there ? v : NULL;
}

static wg_train_rows rows_at(const eval *e)
{
    const size_t n = (size_t)e->p->writer.sequences * (size_t)e->p->writer.length;
    return (wg_train_rows){ .sequences = e->p->writer.sequences,
                            .length = e->p->writer.length,
                            .token = e->arrays,
                            .target = e->arrays + n,
                            .start = e->arrays + 2 * n,
                            .position = e->arrays + 3 * n };
}

/* Fills a pass with documents; the rest of a sequence is padding, a document without targets. */
static void fill_documents(eval *e, int from)
{
    const int length = e->p->writer.length;
    const size_t n = (size_t)e->p->writer.sequences * (size_t)length;
    for (int s = 0; s < e->p->writer.sequences; s++) {
        const int document = e->document[from + s < e->documents ? from + s : e->documents - 1];
        size_t first, tokens;
        wg_tokens_document(e->p->held, (size_t)document, &first, &tokens);
        for (int i = 0; i < length; i++) {
            const size_t at = (size_t)s * (size_t)length + (size_t)i;
            const bool there = (size_t)i < tokens;
            const int start = there ? 0 : (int)tokens;
            e->arrays[at] = wg_tokens_id(e->p->held, first + (there ? (size_t)i : 0));
            const bool asked = (size_t)i + 1 < wg_tokens_prompt(e->p->held, (size_t)document);
            const int32_t next = (size_t)i + 1 < tokens && !asked ? wg_tokens_id(e->p->held, first + (size_t)i + 1) : -1;
            e->arrays[n + at] = next < e->p->writer.lm->vocab ? next : -1;
            e->arrays[2 * n + at] = start;
            e->arrays[3 * n + at] = i - start;
        }
    }
}

static void add_text(const eval *e, const wg_train_rows *in, int sequence, wg_held_sums *to)
{
    for (int i = sequence * in->length; i < (sequence + 1) * in->length; i++) {
        const row_value *v = value_at(e, i, 0);
        if (!v) continue;
        to->rows++;
        to->alpha += v->alpha;
        for (int k = 0; k < WG_LOSS_TERMS; k++) to->term[k] += v->term[k];
    }
}

/* Adds what the target wrote behind a prompt up to its end, the first row that predicts no token. A head has values of drafts
 * of its own length alone. */
static void add_written(eval *e, const wg_train_rows *in, int sequence, int prompt, wg_held_sums *to)
{
    const size_t room = (size_t)in->length + 1;
    double *scratch = e->scratch + WG_TAU_LENGTHS * room;
    const double *of[WG_TAU_LENGTHS];
    const int longest = e->steps ? e->steps : WG_TAU_LENGTHS;
    int n = 0;
    for (int i = prompt - 1; i < in->length && in->target[sequence * in->length + i] >= 0; i++, n++)
        for (int depth = 0; depth < WG_TAU_LENGTHS; depth++) {
            const row_value *v = value_at(e, sequence * in->length + i, depth);
            if (depth == 0 && v) to->written_alpha += v->alpha;
            if (e->steps && v) to->drafts[depth]++, to->alphas[depth] += v->alpha;
            e->scratch[(size_t)depth * room + (size_t)n] = v ? v->accept : 0;
        }
    to->tokens = n;
    for (int k = 0; k < WG_TAU_LENGTHS; k++) of[k] = e->scratch + (size_t)k * room;
    for (int k = 0; k < WG_TAU_LENGTHS; k++)
        to->rounds[k] = k >= longest ? NAN : n > 0 ? wg_exact_rounds(false, of, k + 1, n, scratch) : 0;
}

/* Scores a pass: as the documents' text, as text that the target wrote, or as both. */
static wg_status score(eval *e, int from, bool text, bool written, wg_error *err)
{
    const wg_train_loss keep = { keep_rows, e };
    wg_train_rows in = rows_at(e);
    WG_TRY(wg_target_rows_compute(e->p->rows, &in, err));
    in.hidden = wg_target_rows_hidden(e->p->rows);
    for (int k = 0; k < e->p->students; k++) {
        e->steps = wg_net_steps(e->p->student[k]);
        memset(e->value, 0, (size_t)in.sequences * (size_t)in.length * WG_PATH_STEPS * sizeof *e->value);
        wg_net_forward(e->p->student[k], &in);
        wg_net_loss(e->p->student[k], &in, &keep, 0, false);
        for (int s = 0; s < in.sequences && from + s < e->documents; s++) {
            wg_held_sums *to = &e->out[(size_t)k * (size_t)e->documents + (size_t)(from + s)];
            if (text) add_text(e, &in, s, to);
            if (written) add_written(e, &in, s, (int)prompt_of(e->p, (size_t)e->document[from + s]), to);
        }
    }
    return WG_OK;
}

static wg_status evaluate(eval *e, wg_error *err)
{
    const size_t n = (size_t)e->p->writer.sequences * (size_t)e->p->writer.length;
    const wg_window_out out = { e->arrays, e->arrays + n, e->arrays + 2 * n, e->arrays + 3 * n };
    for (int from = 0; from < e->documents; from += e->p->writer.sequences) {
        const bool own = wg_tokens_has_prompts(e->p->held); /* the target wrote these documents itself */
        fill_documents(e, from);
        WG_TRY(score(e, from, true, own, err));
        if (own) continue;
        WG_TRY(wg_text_writer_continue(e->writer, (uint64_t)from, e->p->prompt, &out, err));
        WG_TRY(score(e, from, false, true, err));
    }
    return WG_OK;
}

wg_status wg_distill_evaluate(const wg_distill_eval_parts *p, wg_held_sums *out, wg_error *err)
{
    eval e = { .p = p, .out = out, .documents = wg_distill_eval_documents(p) };
    for (int i = 0; i < p->students * e.documents; i++) out[i] = (wg_held_sums){ 0 };
    wg_status s = open_eval(&e, err);
    if (s == WG_OK) s = evaluate(&e, err);
    close_eval(&e);
    return s;
}
