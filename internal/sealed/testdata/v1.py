"""Writes v1.json: sealed objects as doc.go describes them, made without the Go code.

Needs the package cryptography. The salts are fixed, so the output is always the same.
"""

import hashlib
import json

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SEGMENT = 1 << 16


def seal(master, number, name, salt, plain):
    fixed = b"HOLDFAST" + bytes([1, 16, 0, 0]) + number.to_bytes(4, "big")
    info = b"holdfast sealed object v1\n" + fixed + name.encode()
    okm = HKDF(algorithm=hashes.SHA256(), length=48, salt=salt, info=info).derive(master)
    header = fixed + salt
    out = header + okm[32:]
    count = max(1, -(-len(plain) // SEGMENT))
    for i in range(count):
        last = i == count - 1
        nonce = bytes(3) + i.to_bytes(8, "big") + bytes([last])
        part = plain[i * SEGMENT : (i + 1) * SEGMENT]
        out += AESGCM(okm[:32]).encrypt(nonce, part, header + name.encode())
    return out


vectors = []
for i, (number, name, size) in enumerate(
    [
        (1, "holdfast", 0),
        (1, "e/00000001/wal/01J/1/000001", 5),
        (0xFFFFFFFF, "", 100),
        (2, "a", SEGMENT - 1),
        (2, "a", SEGMENT),
        (2, "a", SEGMENT + 1),
        (258, "e/00000002/blob/ü/0", 3 * SEGMENT + 1234),
    ]
):
    master, salt = bytes(range(i, i + 32)), bytes(range(100 + i, 132 + i))
    sealed = seal(master, number, name, salt, bytes(j % 251 for j in range(size)))
    v = {"master": master.hex(), "number": number, "name": name, "salt": salt.hex(), "plain_size": size}
    if size < 1000:
        v["sealed"] = sealed.hex()
    v["sha256"] = hashlib.sha256(sealed).hexdigest()
    vectors.append(v)
with open("v1.json", "w", encoding="utf-8") as f:
    json.dump(vectors, f, indent=1, ensure_ascii=False)
    f.write("\n")
