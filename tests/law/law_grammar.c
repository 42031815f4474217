/* SPDX-License-Identifier: MIT
 * Sequences under a grammar. The law of whole texts, with every random decision enumerated through the production code, is that
 * of plain constrained decoding (to 1e-12): each token is drawn from p over the tokens that leave a beginning of a text of the
 * grammar, and the end over whole texts alone. The reference shares nothing with the acceptor: a language here is a list of
 * texts, or a predicate written by hand.
 *
 * The failures that other engines published are cases by name. */
#include "tests/law/blind_drafter.h"

enum { V = 4, END = 3, PROMPT = 6, MARKER = 2 };
static const wg_text texts[V] = { { "a", 1 }, { "b", 1 }, { "ab", 2 }, { "", 0 } };
static const int32_t prompt[PROMPT] = { 1, 2, 0, 1, 2, 0 };
static const wg_sampling warm = WG_SAMPLING(1, 0, 1, 0), cold = WG_SAMPLING(0, 0, 1, 0),
                         cut = { .temperature = 0.8, .top_k = 2, .top_p = 1, .frequency_penalty = 0.5 };

static bool token_3_ends(const void *user, int32_t token)
{
    (void)user;
    return token == END;
}

/* ---- languages: whether a text is the beginning of one of theirs, and a whole one */

typedef struct standing {
    bool begins, whole;
} standing;

static standing among(const char *const *list, const char *text)
{
    standing s = { false, false };
    for (; *list; list++) {
        s.begins |= !strncmp(*list, text, strlen(text));
        s.whole |= !strcmp(*list, text);
    }
    return s;
}

static standing of_list(const char *text) { return among((const char *const[]){ "ab", "abba", "b", "ba", "baa", NULL }, text); }
static standing of_missing(const char *text) { return among((const char *const[]){ "aac", "b", NULL }, text); }
static standing of_forced(const char *text) { return among((const char *const[]){ "ababa", "ababb", "bab", NULL }, text); }
static standing of_short(const char *text) { return among((const char *const[]){ "ab", "ba", NULL }, text); }

static standing of_run(const char *text) /* a* b */
{
    const size_t n = strspn(text, "a");
    return (standing){ text[n] == '\0' || !strcmp(text + n, "b"), !strcmp(text + n, "b") };
}

static standing of_pairs(const char *text) /* a^n b^n */
{
    const size_t a = strspn(text, "a"), b = strspn(text + a, "b");
    return (standing){ text[a + b] == '\0' && b <= a, text[a + b] == '\0' && a == b };
}

static const struct language {
    const char *grammar;
    standing (*of)(const char *text);
} languages[] = {
    { "root ::= \"ab\" | \"abba\" | \"b\" \"a\"{0,2}", of_list },
    { "root ::= \"a\"* \"b\"", of_run },
    { "root ::= (\"a\" root \"b\")?", of_pairs },
    { "root ::= \"aac\" | \"b\"", of_missing }, /* no token has a c: the text ends there */
    { "root ::= x [ab] | \"bab\"\nx ::= \"abab\"", of_forced },
    { "root ::= \"ab\" | \"ba\"", of_short },
};
enum { LIST, RUN, PAIRS, MISSING, FORCED, SHORT, LANGUAGES };

/* What may follow, of one language at a time; with a marker, behind it. */
static const struct language *spoken;
static bool waits;

static standing stand(const int32_t *text, int n, int32_t next)
{
    char bytes[64] = "";
    bool begun = !waits;
    for (int i = PROMPT; i <= n; i++) {
        const int32_t token = i < n ? text[i] : next;
        if (begun && token >= 0) strcat(bytes, texts[token].s);
        begun = begun || token == MARKER;
    }
    return spoken->of(bytes);
}

static bool may(const int32_t *text, int n, int32_t token)
{
    bool begun = !waits, stuck = true;
    for (int i = PROMPT; i < n; i++) begun = begun || text[i] == MARKER;
    if (!begun) return true;
    if (token != END) return stand(text, n, token).begins;
    for (int32_t x = 0; x < END; x++) stuck = stuck && !stand(text, n, x).begins;
    return stuck || stand(text, n, -1).whole;
}

/* ---- the enumeration */

static wg_token_trie *trie;
static wg_bnf *grammar[LANGUAGES];
static wg_acceptor *acceptor[LANGUAGES];
static law_sums all;

static void check(exact_run *x, exact_target *t, const char *drafter, const char *name, int language, wg_seq_sampling how)
{
    const int32_t marker = MARKER;
    char what[400];
    spoken = &languages[language];
    how.acceptor = acceptor[language];
    how.after = waits ? &marker : NULL;
    x->own = &how;
    x->may = may;
    x->prompt = prompt;
    x->n = PROMPT;
    x->setup.is_eog = token_3_ends;
    exact_law_of(x, t);
    snprintf(what, sizeof what, "%s: %s, drafter %s", name, languages[language].grammar, drafter);
    law_judge(&all, x, what);
}

static exact_run blind_run(const wg_drafter_class *c, const char *rule, int length, bool other)
{
    return (exact_run){ .setup = { .drafter_class = c, .rule = rule, .sampling = warm, .seed = 3 },
                        .other = other ? 11 : 0,
                        .length = length };
}

/* Drafts of every law that know nothing of the grammar, under every rule that takes them. */
static void run_blind(exact_target *t)
{
    int number = 0;
    for (unsigned l = WG_LAW_FIXED; l <= WG_LAW_COUPLED; l *= 2)
        for (const wg_verifier_class *const *v = wg_verifiers; *v; v++) {
            if (!(*v)->lossless || (*v)->zero_only || (*v)->chains || !((*v)->laws & l)) continue;
            if (l != WG_LAW_FIXED && !(*v)->reads_q) continue; /* they compare tokens */
            for (int i = 0; i < LANGUAGES; i++, number++) {
                const wg_drafter_class c = blind_of((wg_sibling_law)l);
                exact_run x = blind_run(&c, (*v)->name, l == WG_LAW_FIXED ? 4 : 2 + (number % 9 == 0), number % 2);
                waits = l == WG_LAW_FIXED && number % 7 == 3;
                check(&x, t, wg_law_name(blind_law), "every law", i,
                      (wg_seq_sampling){ .sampling = number % 3 ? &warm : &cut, .forced = number % 2 });
            }
        }
    waits = false;
}

/* Lossy rules have laws of their own, over the texts of the grammar all the same: a draft that it forbids is never kept. */
static void run_lossy(exact_target *t)
{
    int laws = 0;
    for (unsigned l = WG_LAW_FIXED; l <= WG_LAW_COUPLED; l *= 2)
        for (const wg_verifier_class *const *v = wg_verifiers; *v; v++) {
            if ((*v)->lossless || (*v)->zero_only || (*v)->chains || !((*v)->laws & l)) continue;
            for (const char *const *o = (*v)->test_options; *o; o++)
                for (int i = 0; i < LANGUAGES; i++, laws++) {
                    const wg_drafter_class c = blind_of((wg_sibling_law)l);
                    exact_run x = blind_run(&c, (*v)->name, l == WG_LAW_FIXED ? 4 : 2, false);
                    const wg_seq_sampling how = { .acceptor = acceptor[i] };
                    x.setup.rule_options = *o;
                    x.setup.is_eog = token_3_ends;
                    x.own = &how, x.may = may, x.prompt = prompt, x.n = PROMPT;
                    spoken = &languages[i];
                    exact_law_of(&x, t);
                    if (x.impossible <= 0 && !x.cut && !x.beyond) continue;
                    fprintf(stderr, "FAILED %s, rule %s:%s, law %s: texts outside of the grammar have the probability %g\n",
                            languages[i].grammar, (*v)->name, *o, wg_law_name((wg_sibling_law)l), x.impossible);
                    all.failures++;
                }
        }
    printf("%d lossy laws within their grammars\n", laws);
    if (laws == 0) all.failures++;
}

/* Drafters that make q by the masked rows, that copy, and that draft nothing but what is forced. */
static void run_registered(exact_target *t, const char *near)
{
    static const char *const drafters[][2] = {
        { "model", "length=3" },
        { "model", "tree=2-1,siblings=without_replacement" },
        { "model", "grow=best_first,budget=4" },
        { "suffix", "" },
        { "lookahead", "" },
        { "none", "" },
    };
    static const char *const rules[] = { "match", "rejection", "traversal", "without_replacement" };
    static const wg_plugins plugins = { wg_drafters, wg_verifiers };
    int number = 0;
    for (size_t d = 0; d < sizeof drafters / sizeof *drafters; d++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
            for (int i = 0; i < LANGUAGES; i++, number++) {
                char options[200];
                const wg_verifier_class *rule;
                wg_error err;
                const bool model = !strcmp(drafters[d][0], "model");
                snprintf(options, sizeof options, "%s%s%s%s", model ? "model=" : "", model ? near : "", model ? "," : "",
                         drafters[d][1]);
                LAW_TRY(wg_find_verifier(&plugins, rules[r], &rule, &err));
                if (!law_legal(drafters[d][0], options, &warm, rule) || (strstr(options, "tree") && !rule->reads_q)) continue;
                exact_run x = {
                    .setup = { .drafter = drafters[d][0], .options = options, .rule = rules[r], .sampling = warm, .seed = 3 },
                    .fresh = !model,
                    .other = number % 2 ? 11 : 0,
                    .length = 4
                };
                waits = !model && number % 5 == 4;
                check(&x, t, model ? drafters[d][1] : drafters[d][0], "registered drafters", i,
                      (wg_seq_sampling){ .sampling = number % 4 == 1 ? &cold : NULL, .forced = number % 3 != 1 });
            }
    waits = false;
}

/* ---- failures of other engines, by name */

static const struct published {
    const char *name;
    int language;
    wg_sibling_law law;
    const char *rule;
    bool waits, other, forced;
} published[] = {
    { "vllm#44006, PR#44292: the bonus row has no mask behind drafts that were refused", RUN, WG_LAW_FIXED, "rejection", false,
      false, false },
    { "vllm PR#44297, PR#36138: the constrained text begins inside a draft", LIST, WG_LAW_FIXED, "match", true, false, false },
    { "vllm PR#53046: drafts behind a refused draft, at the beginning of the constrained text", LIST, WG_LAW_IID, "rejection",
      true, false, false },
    { "vllm PR#14702: each drafted position has a mask of its own", LIST, WG_LAW_IID, "traversal", false, false, false },
    { "local-inference-lab/vllm#476: a refused draft is replaced from the residual, not from p", LIST, WG_LAW_IID, "rejection",
      false, false, false },
    { "openvino.genai#4081, vllm#42619: the text ends inside a draft", SHORT, WG_LAW_FIXED, "match", false, false, true },
    { "vllm PR#37506: drafts behind the end of the text", SHORT, WG_LAW_IID, "traversal", false, false, false },
    { "vllm PR#46272: refused drafts leave a trace in the state of the grammar", PAIRS, WG_LAW_WITHOUT_REPLACEMENT,
      "without_replacement", false, false, false },
    { "vllm#46118: a token without a text in a draft", FORCED, WG_LAW_FIXED, "rejection", false, false, false },
    { "vllm PR#42802: masks beside other transformations of the same row", RUN, WG_LAW_FIXED, "rejection", false, false, true },
    { "vllm PR#41897: trees, with a mask at each node", PAIRS, WG_LAW_FIXED, "traversal", false, true, true },
    { "a neighbour without a grammar in the same step, whose rows stay as they are", LIST, WG_LAW_IID, "rejection", false, true,
      false },
};

static void run_published(exact_target *t)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const struct published *p = &published[i];
        const wg_drafter_class c = blind_of(p->law);
        exact_run x = blind_run(&c, p->rule, p->law == WG_LAW_FIXED ? 4 : 3, p->other);
        waits = p->waits;
        check(&x, t, wg_law_name(p->law), p->name, p->language,
              (wg_seq_sampling){ .sampling = i == 9 ? &cut : NULL, .forced = p->forced });
    }
    waits = false;
}

/* ---- forced tokens are drafted, and kept */

static void run_forced(exact_target *t)
{
    static const char *const rules[] = { "match", "rejection", "block", "without_replacement" };
    for (int i = 0; i < 4; i++) {
        wg_error err;
        wg_seq *s;
        law_setup setup = { .target = &t->m, .drafter = "none", .rule = rules[i], .sampling = warm, .is_eog = token_3_ends };
        wg_engine *e = law_engine(&setup);
        LAW_TRY(wg_seq_open(e, &s, 7, prompt, PROMPT, 12, &err));
        const wg_seq_sampling how = { .acceptor = acceptor[FORCED], .forced = true };
        LAW_TRY(wg_seq_sample(e, s, &how, &err));
        while (s->finish == WG_RUNNING) LAW_TRY(wg_engine_step(e, &s, 1, &err));
        const bool right = s->finish == WG_FINISH_EOS && wg_seq_is_whole(s);
        printf("forced, rule %s: %ld tokens in %ld passes, %ld drafted, %ld kept\n", rules[i], s->counts.emitted,
               s->counts.passes, s->counts.drafted, s->counts.accepted);
        if (!right || s->counts.accepted == 0 || s->counts.passes >= s->counts.emitted) {
            fprintf(stderr, "FAILED forced tokens under %s\n", rules[i]);
            all.failures++;
        }
        wg_seq_close(e, s);
        wg_engine_close(e);
    }
}

int main(void)
{
    law_near near;
    exact_target t;
    wg_error err;
    const double start = wg_clock_now();
    law_near_make(&near, V);
    LAW_TRY(wg_token_trie_open(&trie, texts, V, &err));
    for (int i = 0; i < LANGUAGES; i++) {
        LAW_TRY(wg_bnf_open(&grammar[i], "grammar", languages[i].grammar, strlen(languages[i].grammar), &err));
        LAW_TRY(wg_acceptor_open(&acceptor[i], grammar[i], trie, &err));
    }
    exact_table(&t, V, 3, 17, 1.2);
    run_blind(&t);
    run_registered(&t, near.path);
    run_published(&t);
    run_lossy(&t);
    run_forced(&t);
    exact_target_close(&t);
    for (int i = 0; i < LANGUAGES; i++) {
        wg_acceptor_close(acceptor[i]);
        wg_bnf_close(grammar[i]);
    }
    wg_token_trie_close(trie);
    law_near_remove(&near);
    return law_end(&all, start);
}
