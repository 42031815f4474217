/* SPDX-License-Identifier: MIT
 * Conversations: every drafter, under the rules that repeat plain decoding, answers three questions, in one sequence and in
 * several. Each answer must be plain decoding's, byte by byte, and plain decoding's that of a fresh sequence that is given
 * the conversation so far as its prompt; and target and draft model must read new tokens only. */
#include "tests/law/synth_models.h"

enum {
    TURNS = 3,
    SEQUENCES = 3,
    PROMPT = 20,
    ASKED = 7,
    ANSWER = 24,
    ROOM = PROMPT + TURNS * (ASKED + ANSWER),
    TEXT = 600,
    ROWS_EACH = 5
};

/* The question of a sequence at a turn. */
static int question(int sequence, int turn, int32_t *out)
{
    const int n = turn ? ASKED - sequence : PROMPT - sequence;
    for (int k = 0; k < n; k++) out[k] = 3 + (7 * sequence + 5 * turn + k * k) % 13;
    return n;
}

/* A conversation's tokens, and what was read for each turn. */
typedef struct talk {
    int32_t token[ROOM];
    int n[TURNS]; /* behind each answer */
    long passes[TURNS], drafted[TURNS], probes[TURNS];
    long rows[TURNS], draft_rows[TURNS]; /* of all conversations, in the first; of the target and of a draft model */
} talk;

static void run(wg_engine *e, wg_seq *const *seq, int n)
{
    wg_error err;
    wg_seq *running[SEQUENCES];
    for (;;) {
        int k = 0;
        for (int i = 0; i < n; i++)
            if (seq[i]->finish == WG_RUNNING) running[k++] = seq[i];
        if (k == 0) return;
        LAW_TRY(wg_engine_step(e, running, k, &err));
    }
}

static void converse(const law_setup *s, int n, talk *out)
{
    wg_error err;
    wg_engine *e = law_engine(s);
    wg_seq *seq[SEQUENCES];
    for (int turn = 0; turn < TURNS; turn++) {
        const wg_lm *draft = wg_drafter_lm(wg_engine_drafter(e));
        const long rows = wg_engine_target(e)->rows, draft_rows = draft ? draft->rows : 0;
        for (int i = 0; i < n; i++) {
            int32_t asked[PROMPT];
            const int m = question(i, turn, asked);
            if (turn == 0) LAW_TRY(wg_seq_open(e, &seq[i], (uint32_t)i, asked, m, ANSWER, &err));
            else LAW_TRY(wg_seq_extend(e, seq[i], asked, m, ANSWER, &err));
        }
        run(e, seq, n);
        out->rows[turn] = wg_engine_target(e)->rows - rows;
        out->draft_rows[turn] = draft ? draft->rows - draft_rows : 0;
        for (int i = 0; i < n; i++) {
            out[i].n[turn] = seq[i]->n;
            out[i].passes[turn] = seq[i]->counts.passes;
            out[i].drafted[turn] = seq[i]->counts.drafted;
            out[i].probes[turn] = seq[i]->counts.probes;
            memcpy(out[i].token, seq[i]->token, (size_t)seq[i]->n * sizeof *seq[i]->token);
        }
    }
    for (int i = 0; i < n; i++) wg_seq_close(e, seq[i]);
    wg_engine_close(e);
}

static int differ(const char *what, const char *rule, const talk *want, const talk *got, int n)
{
    for (int i = 0; i < n; i++)
        if (memcmp(want[i].n, got[i].n, sizeof want[i].n) ||
            memcmp(want[i].token, got[i].token, (size_t)want[i].n[TURNS - 1] * sizeof *want[i].token))
            return fprintf(stderr, "FAILED %s, rule %s, %d sequences: conversation %d is another\n", what, rule, n, i), 1;
    return 0;
}

/* Plain decoding of a turn by a fresh sequence. */
static int differs_fresh(const law_setup *s, const talk *t, int n)
{
    wg_error err;
    wg_engine *e = law_engine(s);
    int bad = 0;
    for (int i = 0; i < n; i++)
        for (int turn = 1; turn < TURNS; turn++) {
            int32_t asked[PROMPT];
            wg_seq *seq;
            const int prompt = t[i].n[turn - 1] + question(i, turn, asked);
            LAW_TRY(wg_seq_open(e, &seq, (uint32_t)i, t[i].token, prompt, ANSWER, &err));
            run(e, &seq, 1);
            if (seq->n != t[i].n[turn] || memcmp(seq->token, t[i].token, (size_t)seq->n * sizeof *seq->token))
                bad++, fprintf(stderr, "FAILED plain decoding: turn %d of conversation %d is not that of its text\n", turn, i);
            wg_seq_close(e, seq);
        }
    wg_engine_close(e);
    return bad;
}

/* The rows that the target reads in a turn: the question, the last token before it (from the second turn on; the question's
 * last token is the first root), and the nodes of the drafts. A draft model reads only new tokens and
 * its own draft, if that is a chain. */
static int rows_too_many(const char *what, bool chain, const talk *t, int n)
{
    for (int turn = 0; turn < TURNS; turn++) {
        long want = 0, most = 0;
        for (int i = 0; i < n; i++) {
            int32_t asked[PROMPT];
            const int m = question(i, turn, asked), before = turn ? t[i].n[turn - 1] : 0;
            want += m - (turn == 0) + t[i].passes[turn] + t[i].drafted[turn] + t[i].probes[turn];
            most += t[i].n[turn] - before + 1 + t[i].drafted[turn];
        }
        if (t->rows[turn] == want && (!chain || t->draft_rows[turn] <= most)) continue;
        return fprintf(stderr, "FAILED %s: turn %d: %ld rows of the target, %ld are new; %ld of the draft model, at most %ld\n",
                       what, turn, t->rows[turn], want, t->draft_rows[turn], most),
               1;
    }
    return 0;
}

int main(void)
{
    static law_row rows[LAW_ROWS];
    law_model target;
    int failures = 0, cases = 0;
    int32_t text[TEXT];
    law_models_text(text, TEXT);
    const law_files files = law_models_write((wg_synth_shape){
        .name = "target", .layers = 2, .dim = 32, .heads = 2, .kv_heads = 2, .hidden = 48, .vocab = 320, .context = 256 });
    const int n_rows = law_rows(&files, ROWS_EACH, rows, &failures);
    static const char *const rules[] = { "greedy", "match", "coupled" };
    const wg_sampling samplings[] = {
        WG_SAMPLING(0, 0, 1, 0),
        { .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.01, .repetition_penalty = 1.2 },
        WG_SAMPLING(0.8, 0, 1, 0),
    };
    law_model_open(&target, files.target, 1, wg_cpu_chosen(), WG_F16);
    law_models_lists(target.tokenizer, text, TEXT);
    long tokens = 0;
    for (int r = 0; r < 3; r++)
        for (int n = 1; n <= SEQUENCES; n += SEQUENCES - 1) {
            static talk plain[SEQUENCES], got[SEQUENCES];
            law_setup s = { .target = &target,
                            .drafter = "none",
                            .rule = rules[r],
                            .sampling = samplings[r],
                            .seed = 3,
                            .batch = n,
                            .max_tokens = ROOM,
                            .prefill_rows = 5 };
            converse(&s, n, plain);
            failures += differs_fresh(&s, plain, n);
            for (int d = 0; d < n_rows; d++) {
                const law_row *row = &rows[d];
                s.drafter = row->class->name;
                s.options = row->options;
                const wg_verifier_class *rule = NULL;
                for (const wg_verifier_class *const *v = wg_verifiers; *v; v++)
                    if (!strcmp((*v)->name, s.rule)) rule = *v;
                if (!law_legal(s.drafter, s.options, &s.sampling, rule)) continue;
                converse(&s, n, got);
                failures += differ(row->label, s.rule, plain, got, n);
                const bool chain = !row->test->siblings && strcmp(s.drafter, "block"); /* (that reads whole blocks) */
                if (!row->test->runs_target) failures += rows_too_many(row->label, chain, got, n);
                for (int i = 0; i < n; i++) tokens += got[i].n[TURNS - 1];
                cases++;
            }
        }
    law_model_close(&target);
    printf("%d settings of %d turns, %ld tokens: %d differ from plain decoding or read a token twice\n", cases, TURNS, tokens,
           failures);
    return failures != 0;
}
