/* SPDX-License-Identifier: MIT
 * Cases of tests/bad/gguf.txt and config.txt: `## name`, then lines `$ --set A=B`, lines of an input behind `> `, and the
 * message that is expected. WG_UPDATE=1, with one test at a time (-j1), rewrites the messages, to be reviewed with git diff. */
#ifndef WG_TESTS_TRANSCRIPT_H
#define WG_TESTS_TRANSCRIPT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRANSCRIPT_SETS = 8 };

typedef struct transcript_case {
    char *name;
    char *set[TRANSCRIPT_SETS];
    int sets;
    char *input, *message; /* "" where there is none */
} transcript_case;

typedef struct transcript {
    char path[1024];
    char *head; /* the lines before the first case */
    transcript_case *of;
    int n;
} transcript;

static inline void transcript_add(char **text, const char *line)
{
    const size_t n = strlen(*text);
    *text = realloc(*text, n + strlen(line) + 1);
    strcpy(*text + n, line);
}

/* name: "gguf" or "config". The tests end where the file is missing. */
static inline transcript transcript_open(const char *name)
{
    transcript t = { .head = calloc(1, 1) };
    const char *root = getenv("WG_ROOT");
    snprintf(t.path, sizeof t.path, "%s/tests/bad/%s.txt", root ? root : ".", name);
    FILE *f = fopen(t.path, "r");
    if (!f) perror(t.path), abort();
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, f) > 0) {
        if (strncmp(line, "## ", 3) == 0) {
            t.of = realloc(t.of, (size_t)(t.n + 1) * sizeof *t.of);
            t.of[t.n++] = (transcript_case){ .name = strndup(line + 3, strlen(line) - 4),
                                             .input = calloc(1, 1),
                                             .message = calloc(1, 1) };
            continue;
        }
        transcript_case *c = t.n ? &t.of[t.n - 1] : NULL;
        if (!c) transcript_add(&t.head, line);
        else if (strncmp(line, "$ --set ", 8) == 0 && c->sets < TRANSCRIPT_SETS)
            c->set[c->sets++] = strndup(line + 8, strlen(line) - 9);
        else if (*line == '>') transcript_add(&c->input, line + (line[1] == ' ' ? 2 : 1));
        else if (*line != '\n') transcript_add(&c->message, line);
    }
    free(line);
    fclose(f);
    return t;
}

/* The case of that name; NULL: there is none. */
static inline transcript_case *transcript_find(transcript *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->of[i].name, name) == 0) return &t->of[i];
    return NULL;
}

static inline void transcript_close(transcript *t)
{
    FILE *f = getenv("WG_UPDATE") ? fopen(t->path, "w") : NULL;
    if (f) fputs(t->head, f);
    for (int i = 0; i < t->n; i++) {
        transcript_case *c = &t->of[i];
        if (f) fprintf(f, "%s## %s\n", i ? "\n" : "", c->name);
        for (int k = 0; k < c->sets; k++) {
            if (f) fprintf(f, "$ --set %s\n", c->set[k]);
            free(c->set[k]);
        }
        for (char *at = c->input, *end; f && *at; at = end + 1) {
            end = strchr(at, '\n');
            fprintf(f, end == at ? ">\n" : "> %.*s\n", (int)(end - at), at);
        }
        if (f) fputs(c->message, f);
        free(c->name), free(c->input), free(c->message);
    }
    if (f) fclose(f);
    free(t->head);
    free(t->of);
}

#endif
