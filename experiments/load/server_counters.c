/* SPDX-License-Identifier: MIT
 * Counters of a server (server_counters.h). */
#include "experiments/load/server_counters.h"

#include <string.h>

#include "core/base/number.h"

/* NAME{LABELS} VALUE [TIME], by its parts; false for another line. */
typedef struct sample {
    const char *name, *labels;
    size_t name_n, labels_n;
    double value;
} sample;

static bool read_sample(const char *line, size_t n, sample *s)
{
    char number[64];
    *s = (sample){ .name = line };
    while (s->name_n < n && !strchr("{ \t", line[s->name_n])) s->name_n++;
    size_t at = s->name_n;
    if (at < n && line[at] == '{') {
        const char *end = memchr(line + at, '}', n - at);
        if (!end) return false;
        s->labels = line + at + 1;
        s->labels_n = (size_t)(end - s->labels);
        at = (size_t)(end + 1 - line);
    }
    while (at < n && strchr(" \t", line[at])) at++;
    size_t digits = 0;
    while (at + digits < n && digits < sizeof number - 1 && !strchr(" \t\r", line[at + digits])) {
        number[digits] = line[at + digits];
        digits++;
    }
    number[digits] = '\0';
    return s->name_n > 0 && *line != '#' && wg_number_parse(number, &s->value);
}

/* The label position="N"; -1: none. */
static int position_of(const sample *s)
{
    static const char key[] = "position=\"";
    for (size_t i = 0; s->labels && i + sizeof key <= s->labels_n; i++)
        if (!memcmp(s->labels + i, key, sizeof key - 1)) {
            const char *from = s->labels + i + sizeof key - 1;
            const size_t most = s->labels_n - i - (sizeof key - 1);
            int v = 0;
            size_t k = 0;
            for (; k < most && k < 4 && from[k] >= '0' && from[k] <= '9'; k++) v = 10 * v + from[k] - '0';
            return k && k < most && from[k] == '"' ? v : -1;
        }
    return -1;
}

static bool ends_with(const sample *s, const char *word)
{
    const size_t n = strlen(word);
    return s->name_n >= n && !memcmp(s->name + s->name_n - n, word, n) &&
           (s->name_n == n || s->name[s->name_n - n - 1] == ':' || s->name[s->name_n - n - 1] == '_');
}

static void add(wg_server_counters *c, const sample *s)
{
    const int at = position_of(s);
    if (ends_with(s, "spec_decode_num_drafts_total")) c->drafts += s->value;
    else if (ends_with(s, "spec_decode_num_draft_tokens_total")) c->draft_tokens += s->value;
    else if (ends_with(s, "spec_decode_num_accepted_tokens_total")) c->accepted_tokens += s->value;
    else if (ends_with(s, "spec_decode_num_accepted_tokens_per_pos_total")) {
        if (at < 0 || at >= WG_COUNTED_POSITIONS) return;
        c->accepted_at[at] += s->value;
        if (at >= c->positions) c->positions = at + 1;
    } else return;
    c->found = true;
}

void wg_server_counters_read(wg_server_counters *c, const char *text, size_t n)
{
    *c = (wg_server_counters){ .found = false };
    for (const char *p = text, *all = text + n; p < all;) {
        const char *stop = memchr(p, '\n', (size_t)(all - p));
        sample s;
        if (!stop) stop = all;
        if (read_sample(p, (size_t)(stop - p), &s)) add(c, &s);
        p = stop + 1;
    }
}
