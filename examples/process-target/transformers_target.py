# SPDX-License-Identifier: MIT
"""A process target in Hugging Face transformers: any causal language model with a cache of keys and values.

    wager generate -m FOLDER --target "process:command=python3 transformers_target.py FOLDER" -p "Once upon a time"

Trees are passes with a mask of four dimensions, which says what every row sees; afterwards the cache keeps the rows on the path that
became text. Models that keep a state instead of keys and values cannot go back, and are refused. Hidden states are those of
output_hidden_states, whose last are behind the final norm, and what a hook sees behind the last layer before it."""
import argparse
import inspect

import torch
import transformers

import row_peer


class Model:
    def __init__(self, folder, dtype, threads):
        if threads:
            torch.set_num_threads(threads)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
        config = self.model.config.get_text_config()
        self.vocab, self.context = self.model.get_output_embeddings().weight.shape[0], config.max_position_embeddings
        self.name, self.layers, self.dim, self.tap = str(folder).rstrip("/").rpartition("/")[2], 0, 0, []
        for layers in self.model.base_model.children():  # a model whose layers are found gives hidden states
            if isinstance(layers, torch.nn.ModuleList) and len(layers) == config.num_hidden_layers:
                self.layers, self.dim = len(layers), config.hidden_size
                layers[-1].register_forward_hook(self.keep_last)
        new = "cache" in inspect.signature(self.model.forward).parameters  # transformers 5.24 and newer
        self.cache_argument = "cache" if new else "past_key_values"
        self.cache = {}  # of a sequence: the cache of keys and values, and how many of its slots are text

    def keep_last(self, layer, inputs, output):
        self.last = output[0] if isinstance(output, tuple) else output

    def states(self, out, n):
        """The hidden states that are wanted: (rows, taps, dim)."""
        all_states = [*out.hidden_states[:-1], self.last, out.hidden_states[-1]]
        return torch.stack([all_states[t].reshape(n, self.dim) for t in self.tap], 1).float().numpy()

    def settle(self, p):
        """The cache with what is kept and nothing else, and the number of its tokens."""
        cache, text = self.cache.get(p.sequence, (transformers.DynamicCache(), 0))
        kept = p.kept + len(p.path)
        if not kept:
            cache = transformers.DynamicCache()
        elif cache.get_seq_length() > kept:
            slot = torch.cat([torch.arange(p.kept), text + torch.as_tensor(p.path.copy(), dtype=torch.long)])
            for layer in cache.layers:
                layer.keys, layer.values = layer.keys[:, :, slot], layer.values[:, :, slot]
        self.cache[p.sequence] = cache, kept
        return cache, kept

    @torch.no_grad()
    def ask(self, parts, logits, taps):
        at = 0
        for p in parts:
            cache, text = self.settle(p)
            token, parent, position, wanted = (torch.as_tensor(c.copy(), dtype=torch.long) for c in p.rows.T)
            n = len(token)
            sees = torch.zeros(n, n, dtype=torch.bool)
            for r in range(n):
                if parent[r] >= 0:
                    sees[r] = sees[parent[r]]
                sees[r, r] = True
            mask = torch.zeros(1, 1, n, text + n, dtype=self.model.dtype)
            mask[0, 0, :, text:].masked_fill_(~sees, torch.finfo(mask.dtype).min)
            out = self.model(input_ids=token[None], attention_mask=mask, position_ids=position[None], use_cache=True,
                             output_hidden_states=taps is not None, **{self.cache_argument: cache})
            if cache.get_seq_length() != text + n:
                raise ValueError("this model's cache does not keep keys and values of every token")
            rows = wanted >= 0
            logits[wanted[rows].numpy()] = out.logits[0, rows].float().numpy()
            if taps is not None:
                taps[at:at + n] = self.states(out, n)
            at += n


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="started by wager: \"kind\": \"process\"")
    options.add_argument("folder")
    options.add_argument("--dtype", default="float32")
    options.add_argument("--threads", type=int, default=0)
    o = options.parse_args()
    row_peer.serve(Model(o.folder, o.dtype, o.threads))
