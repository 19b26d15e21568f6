"""Checksums of row stores that were edited, as who forges one would make them."""

import hashlib
import json
from pathlib import Path

import numpy as np

from dualgap import core
from dualgap.data.description import CHECKSUMS, DESCRIPTION, digest, in_order


def seal(folder, **change):
    """Change the description, and make every checksum of a store of format 2 right.

    But for the SHA-256 of shards, which are for `verify` alone.
    """
    folder = Path(folder)
    description = json.loads((folder / DESCRIPTION).read_text())
    sums = b"".join(
        core.crc32c_segments(
            np.fromfile(folder / f"{name}.bin", np.uint8), description["segment_bytes"]
        ).tobytes()
        for name in in_order(description["arrays"])
    )
    (folder / CHECKSUMS).write_bytes(sums)
    description |= {"checksums_sha256": hashlib.sha256(sums).hexdigest()} | change
    description["sha256"] = digest(description)
    (folder / DESCRIPTION).write_text(json.dumps(description))
