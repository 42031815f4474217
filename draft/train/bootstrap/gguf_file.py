"""GGUF v3, as much of it as the bundled pair needs: write F32 and Q8_0 tensors, read them back.

    python gguf_file.py --checkpoint OUT/target.pt --tokenizer OUT/tokenizer.json --name NAME --to FILE
"""
import argparse
import json
import struct
from pathlib import Path

import numpy as np

ALIGN = 32
F32, Q8_0 = 0, 8
U32, FLOAT, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
SCALARS = {U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}
BLOCK = np.dtype([("d", "<f2"), ("q", "i1", 32)])


def quantise(x):
    """float32 [rows, n] to Q8_0 blocks: d = max|x| / 127, q = x / d rounded half away from zero."""
    x = np.ascontiguousarray(x, np.float32).reshape(-1, 32)
    d = np.abs(x).max(1, keepdims=True) / np.float32(127)
    y = np.divide(x, d, out=np.zeros_like(x), where=d > 0)
    blocks = np.empty(len(x), BLOCK)
    blocks["d"] = d[:, 0]
    blocks["q"] = np.copysign(np.floor(np.abs(y) + np.float32(0.5)), y)
    return blocks


def pack_string(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def pack_value(kind, value):
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        item, values = value
        return struct.pack("<IQ", item, len(values)) + b"".join(pack_value(item, v) for v in values)
    return struct.pack(SCALARS[kind], value)


def write(path, keys, tensors):
    """keys: [(name, kind, value)]; tensors: [(name, float32 array, F32 or Q8_0)]."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for name, kind, value in keys:
        head += pack_string(name) + struct.pack("<I", kind) + pack_value(kind, value)
    body = b""
    for name, x, kind in tensors:
        head += pack_string(name) + struct.pack("<I", x.ndim) + struct.pack(f"<{x.ndim}Q", *x.shape[::-1])
        head += struct.pack("<IQ", kind, len(body))
        body += quantise(x).tobytes() if kind == Q8_0 else x.astype("<f4").tobytes()
        body += b"\0" * (-len(body) % ALIGN)
    Path(path).write_bytes(head + b"\0" * (-len(head) % ALIGN) + body)


def read(path):
    """Return (keys, tensors): dict of metadata and dict of dequantised float32 arrays."""
    data, at = Path(path).read_bytes(), 0

    def take(form):
        nonlocal at
        value = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return value if len(value) > 1 else value[0]

    def take_string():
        nonlocal at
        size = take("<Q")
        at += size
        return data[at - size:at].decode()

    def take_value(kind):
        if kind == STRING:
            return take_string()
        if kind == ARRAY:
            item, count = take("<IQ")
            return [take_value(item) for _ in range(count)]
        return take(SCALARS[kind])

    assert data[:4] == b"GGUF"
    at = 4
    version, n_tensors, n_keys = take("<IQQ")
    assert version == 3
    keys = {}
    for _ in range(n_keys):
        name = take_string()
        keys[name] = take_value(take("<I"))
    places = []
    for _ in range(n_tensors):
        name = take_string()
        dims = [take("<Q") for _ in range(take("<I"))]
        places.append((name, dims[::-1], *take("<IQ")))
    base = at + -at % ALIGN
    tensors = {}
    for name, shape, kind, offset in places:
        size = int(np.prod(shape))
        if kind == Q8_0:
            blocks = np.frombuffer(data, BLOCK, size // 32, base + offset)
            x = blocks["d"].astype(np.float32)[:, None] * blocks["q"]
        else:
            assert kind == F32
            x = np.frombuffer(data, "<f4", size, base + offset)
        tensors[name] = x.reshape(shape).astype(np.float32)
    return keys, tensors


def model_keys(shape, name, tokenizer):
    """GGUF metadata for a checkpoint's shape (a dict) and a tokenizer.json."""
    bpe = json.loads(Path(tokenizer).read_text(encoding="utf-8"))["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in bpe["merges"]]
    size = shape["dim"] // shape["heads"]
    return [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, name),
        ("general.license", STRING, "MIT"),
        ("general.file_type", U32, 7),
        ("general.quantization_version", U32, 2),
        ("general.alignment", U32, ALIGN),
        ("llama.vocab_size", U32, shape["vocab"]),
        ("llama.context_length", U32, shape["context"]),
        ("llama.embedding_length", U32, shape["dim"]),
        ("llama.block_count", U32, shape["layers"]),
        ("llama.feed_forward_length", U32, shape["ffn"]),
        ("llama.attention.head_count", U32, shape["heads"]),
        ("llama.attention.head_count_kv", U32, shape["kv_heads"]),
        ("llama.attention.layer_norm_rms_epsilon", FLOAT, shape["eps"]),
        ("llama.rope.freq_base", FLOAT, shape["theta"]),
        ("llama.rope.dimension_count", U32, size),
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, "gpt-2"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [3 if t in ("<s>", "</s>") else 1 for t in tokens])),
        ("tokenizer.ggml.merges", ARRAY, (STRING, merges)),
        ("tokenizer.ggml.bos_token_id", U32, 0),
        ("tokenizer.ggml.eos_token_id", U32, 1),
        ("tokenizer.ggml.add_bos_token", BOOL, True),
    ]


def main():
    import torch

    parser = argparse.ArgumentParser(description="Export a checkpoint as a Q8_0 GGUF file.")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--name", required=True, help="general.name")
    parser.add_argument("--to", required=True)
    args = parser.parse_args()
    saved = torch.load(args.checkpoint, weights_only=True)
    tensors = []
    for name, weight in saved["weights"].items():
        name = name.replace("blk_", "blk.")
        tensors.append((name, weight.numpy(), Q8_0 if weight.ndim == 2 else F32))
    write(args.to, model_keys(saved["shape"], args.name, args.tokenizer), tensors)
    print(f"{args.to}: {Path(args.to).stat().st_size} bytes, {sum(x.size for _, x, _ in tensors)} parameters")


if __name__ == "__main__":
    main()
