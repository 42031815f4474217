/* SPDX-License-Identifier: MIT
 * Bets (bets.h). */
#include "lab/audit/bets.h"

#include <math.h>

#include "core/base/mem.h"
#include "kernels/exp.h"
#include "kernels/ln.h"

const wg_bet_about wg_bet_table[WG_BET_KINDS] = {
#define X(name, defect, doc) { WG_DEFECT_##defect, doc },
    WG_BETS(X)
#undef X
};

static const char *const defects[][2] = {
#define X(name, word, doc) { word, doc },
    WG_DEFECTS(X)
#undef X
};
const char *wg_defect_name(wg_defect d) { return defects[d][0]; }
const char *wg_defect_doc(wg_defect d) { return defects[d][1]; }

static const double share[WG_BET_SHARES] = { 0.98, 0.6, 0.2, 0.04 };
static const double least = 1e-9;  /* smallest probability to divide by; a smaller one counts as this */
static const double most = 1e9;    /* largest ratio */
static const double least_cut = 4; /* smallest cut of a ratio for rows with errors */
static const double lost = 1e-4;   /* share of the capital that a bet over rows with errors costs, if the cut allows it */
static const double prior = 2;     /* prior count of each bin */
static const double log_10 = 0x1.26bb1bbb55516p+1;

wg_status wg_bets_room(wg_bets *b, int vocab, wg_error *err)
{
    if (vocab <= b->room) return WG_OK;
    double *grown = wg_alloc((size_t)vocab, sizeof *grown);
    if (!grown) return wg_nomem(err, (size_t)vocab * sizeof *grown, "laws of bets");
    wg_free(b->other);
    b->other = grown;
    b->room = vocab;
    return WG_OK;
}

void wg_bets_close(wg_bets *b)
{
    wg_free(b->other);
    b->other = NULL;
}

void wg_bet_on(wg_bets *b, wg_bet bet, double a, double n, double error)
{
    const double ratio = a / (n > least ? n : least);
    if (!(ratio >= 0)) return;
    double cut = error > 0 ? lost / error : most;
    cut = cut > most ? most : cut < least_cut ? least_cut : cut;
    const double r = ratio < cut ? ratio : cut;
    b->made[bet]++;
    for (int i = 0; i < WG_BET_SHARES; i++)
        b->capital[bet][i] += wg_log64_of((1 + share[i] * (r - 1)) / (1 + share[i] * cut * error));
}

/* The token's interval of ranks: [above, above + row[x]) of the tokens in order of descending probability, ties by id. */
void wg_bet_rank(wg_bets *b, wg_bet bet, const double *row, int vocab, int32_t x, double error)
{
    const double px = row[x];
    double above = 0;
    if (!(px > 0)) return;
    for (int32_t y = 0; y < vocab; y++)
        if (row[y] > px || (row[y] == px && y < x)) above += row[y];
    wg_bet_bins *k = &b->ranks[bet];
    double n = 0, a = 0, part[WG_BET_BINS];
    for (int i = 0; i < WG_BET_BINS; i++) n += k->n[i] + prior;
    for (int i = 0; i < WG_BET_BINS; i++) {
        const double from = i / (double)WG_BET_BINS, to = (i + 1) / (double)WG_BET_BINS;
        const double low = above > from ? above : from, high = above + px < to ? above + px : to;
        part[i] = high > low ? (high - low) / px : 0;
        a += part[i] * (k->n[i] + prior) / n * WG_BET_BINS;
    }
    wg_bet_on(b, bet, a, 1, error);
    for (int i = 0; i < WG_BET_BINS; i++) k->n[i] += part[i];
}

void wg_power_row(const double *row, double *out, int vocab, double power)
{
    double sum = 0;
    for (int x = 0; x < vocab; x++) sum += out[x] = row[x] > 0 ? pow(row[x], power) : 0;
    for (int x = 0; x < vocab; x++) out[x] /= sum;
}

double wg_power_law(const double *row, int vocab, double power, int32_t x)
{
    double sum = 0;
    for (int y = 0; y < vocab; y++) sum += row[y] > 0 ? pow(row[y], power) : 0;
    return row[x] > 0 ? pow(row[x], power) / sum : 0;
}

double wg_excess_law(const double *a, const double *b, int vocab, int32_t x)
{
    double sum = 0;
    for (int y = 0; y < vocab; y++) sum += a[y] > b[y] ? a[y] - b[y] : 0;
    return sum > least ? (a[x] > b[x] ? a[x] - b[x] : 0) / sum : NAN;
}

double wg_log_mean(const double *log, int n)
{
    double largest = log[0], sum = 0;
    for (int i = 1; i < n; i++) largest = log[i] > largest ? log[i] : largest;
    for (int i = 0; i < n; i++) sum += wg_exp64_of(log[i] - largest);
    return largest + wg_log64_of(sum / n);
}

wg_bet wg_best_bet(const wg_bets *b, double *lead, wg_bet *other)
{
    double log[WG_BET_KINDS];
    int best = 0, second = -1;
    for (int i = 0; i < WG_BET_KINDS; i++) {
        log[i] = wg_log_mean(b->capital[i], WG_BET_SHARES);
        best = log[i] > log[best] ? i : best;
    }
    for (int i = 0; i < WG_BET_KINDS; i++)
        if (wg_bet_table[i].defect != wg_bet_table[best].defect && (second < 0 || log[i] > log[second])) second = i;
    *lead = (log[best] - log[second]) / log_10;
    *other = (wg_bet)second;
    return (wg_bet)best;
}

static double defect_log(const wg_bets *b, wg_defect d)
{
    double log[WG_BET_KINDS * WG_BET_SHARES];
    int n = 0;
    for (int i = 0; i < WG_BET_KINDS; i++)
        for (int k = 0; k < WG_BET_SHARES && wg_bet_table[i].defect == d; k++) log[n++] = b->capital[i][k];
    return wg_log_mean(log, n);
}

double wg_defect_log10(const wg_bets *b, wg_defect d) { return defect_log(b, d) / log_10; }

double wg_bets_log10(const wg_bets *b)
{
    double log[WG_DEFECT_KINDS];
    for (int d = 0; d < WG_DEFECT_KINDS; d++) log[d] = defect_log(b, (wg_defect)d);
    return wg_log_mean(log, WG_DEFECT_KINDS) / log_10;
}
