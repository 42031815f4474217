/* SPDX-License-Identifier: MIT
 * The commands of the program, one per cmd_<name>.c. Each takes its argv, beginning with its name, and returns the exit
 * status. */
#ifndef WG_EXPERIMENTS_CLI_COMMANDS_H
#define WG_EXPERIMENTS_CLI_COMMANDS_H

int wg_cmd_run(int argc, char **argv);
int wg_cmd_init(int argc, char **argv);
int wg_cmd_check(int argc, char **argv);
int wg_cmd_compare(int argc, char **argv);
int wg_cmd_report(int argc, char **argv);
int wg_cmd_replay(int argc, char **argv);
int wg_cmd_audit(int argc, char **argv);
int wg_cmd_generate(int argc, char **argv);
int wg_cmd_logits(int argc, char **argv);
int wg_cmd_taps(int argc, char **argv);
int wg_cmd_tokenize(int argc, char **argv);
int wg_cmd_tokenizer(int argc, char **argv);
int wg_cmd_template(int argc, char **argv);
int wg_cmd_inspect(int argc, char **argv);
int wg_cmd_convert(int argc, char **argv);
int wg_cmd_export(int argc, char **argv);
int wg_cmd_quantize(int argc, char **argv);
int wg_cmd_pull(int argc, char **argv);
int wg_cmd_datastore(int argc, char **argv);
int wg_cmd_vocab(int argc, char **argv);
int wg_cmd_synth(int argc, char **argv);
int wg_cmd_prove(int argc, char **argv);
int wg_cmd_merge(int argc, char **argv);
int wg_cmd_plan(int argc, char **argv);
int wg_cmd_tree(int argc, char **argv);
int wg_cmd_distill(int argc, char **argv);
int wg_cmd_train(int argc, char **argv);
int wg_cmd_skip_search(int argc, char **argv);
int wg_cmd_load(int argc, char **argv);
int wg_cmd_bench(int argc, char **argv);
int wg_cmd_columns(int argc, char **argv);
int wg_cmd_serve(int argc, char **argv);
int wg_cmd_list(int argc, char **argv);
int wg_cmd_completion(int argc, char **argv);
int wg_cmd_help(int argc, char **argv);

#endif
