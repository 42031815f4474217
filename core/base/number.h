/* SPDX-License-Identifier: MIT
 * Numbers as text, the same in every locale. */
#ifndef WG_CORE_BASE_NUMBER_H
#define WG_CORE_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

enum { WG_NUMBER_TEXT = 32 };

/* The fewest digits (of 15, 16 or 17) that read back as the same double: "0.1", "1e-07", "3". Not for NaN or infinity in
 * JSON: those come out as "nan" and "inf". Writes into buf, which should hold WG_NUMBER_TEXT bytes; returns buf. */
const char *wg_number_text(double v, char *buf, size_t size);

/* Reads a whole string as a decimal number ("0.3", "1e-5"); no spaces, no hexadecimal, no nan, no inf. */
bool wg_number_parse(const char *text, double *out);

/* Reads a list such as "0.7/0.15/0.05": at most `most` numbers in lo .. hi, with the character of `between` between them.
 * Returns how many there are; -1: the text is no such list. */
int wg_number_list(const char *text, const char *between, double lo, double hi, double *out, int most);

#endif
