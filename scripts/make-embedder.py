#!/usr/bin/env python3
"""Makes the table of the built-in embedder and the reference data of its tests.

  python3 -m pip install numpy safetensors tokenizers
  python3 -m pip download --no-deps wordllama==0.4.0.post1
  unzip wordllama-*.whl -d wordllama
  scripts/make-embedder.py wordllama

Reads the static table of wordllama (MIT, see NOTICE), keeps the first 128 of its 256 dimensions (it was trained so that the
first ones alone are a good vector) and rounds them to 4 bits in groups of 32, each with a scale. Writes

  crates/models/data/word_vectors.bin        the table in the binary
  crates/models/tests/it/word_vectors.json   sentences with their token ids and vectors, by the reference tokenizer and table

The file, numbers little-endian:
  8 bytes          PLIMVEC1
  u32 x 3          pieces P, dimensions D, slots S (a power of two)
  u16 x P x D/32   scales, as half floats
  u8 x P x D/2     codes 0..14, low half first; a code c is (c - 7) x scale
  u16 x S          hash table: the piece at each slot, 65535 for none; FNV-1a of the piece's bytes, then the next slots
  u32 x (P + 1)    the first byte of each piece
  u8 ...           the pieces' bytes; a space is U+2581
Pieces have the order in which the tokenizer merges: of two possible merges it makes the one with the lower number first, except
runs of spaces, which come last. The first 259 are not pieces of text: three marks, and the 256 bytes.
"""
import json, os, sys
import numpy as np
from safetensors import safe_open
from tokenizers import Tokenizer

DIMENSIONS, GROUP, SLOTS, MARKS, NONE = 128, 32, 65536, 259, 65535

SENTENCES = [
    "The harbour master keeps a list of every ship that came in during the storm.",
    "the harbour master keeps a list", "HARBOUR", "ships", "ship", "a boat in port", "unloading cargo at the quay",
    "Zoë's café closes at 5 p.m. — don't be late!", "naïve façade, Ærøskøbing", "日本語のテキスト", "привет, мир", "🦀 and ﷽",
    "fn main() { println!(\"{}\", x_1 + 0x2f); }", "snake_case CamelCase kebab-case", "  two  spaces, a\ttab\nand a line", "<0x41> < s >",
    "e\u0301 \u2581 \ufeff\u202e", "1234567890 3.14159", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ".", " ", "x",
]


def fnv(piece):
    value = 0x811C9DC5
    for byte in piece:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def main(folder):
    table = safe_open(f"{folder}/wordllama/weights/l2_supercat_256.safetensors", "np").get_tensor("embedding.weight")
    tokenizer_path = f"{folder}/wordllama/tokenizers/l2_supercat_tokenizer_config.json"
    vocabulary = json.load(open(tokenizer_path))["model"]["vocab"]
    pieces = [piece for piece, _ in sorted(vocabulary.items(), key=lambda item: item[1])]
    assert len(pieces) == len(table) < NONE
    vectors = np.ascontiguousarray(table[:, :DIMENSIONS]).astype(np.float32)

    groups = vectors.reshape(-1, GROUP)
    scales = (np.abs(groups).max(1) / 7).astype("<f2")
    divisor = np.where(scales == 0, 1, scales.astype(np.float32))
    codes = (np.clip(np.round(groups / divisor[:, None]), -7, 7) + 7).astype(np.uint8).reshape(len(pieces), DIMENSIONS)
    packed = codes[:, 0::2] | codes[:, 1::2] << 4

    slots = np.full(SLOTS, NONE, "<u2")
    encoded = [piece.encode() for piece in pieces]
    for number, piece in enumerate(encoded):
        if number >= MARKS:
            slot = fnv(piece) % SLOTS
            while slots[slot] != NONE:
                slot = (slot + 1) % SLOTS
            slots[slot] = number
    starts = np.cumsum([0] + [len(piece) for piece in encoded]).astype("<u4")

    here = os.path.join(os.path.dirname(__file__), "..", "crates", "models")
    with open(f"{here}/data/word_vectors.bin", "wb") as out:
        out.write(b"PLIMVEC1" + np.array([len(pieces), DIMENSIONS, SLOTS], "<u4").tobytes())
        for part in (scales, packed, slots, starts):
            out.write(part.tobytes())
        out.write(b"".join(encoded))

    tokenizer = Tokenizer.from_file(tokenizer_path)
    cases = []
    for text in SENTENCES:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        mean = vectors[ids].mean(0)
        mean /= np.linalg.norm(mean)
        cases.append({"text": text, "ids": ids, "vector": [round(float(x), 4) for x in mean]})
    with open(f"{here}/tests/it/word_vectors.json", "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
