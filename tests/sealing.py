"""Checksums of row stores that were edited, as who forges one would make them."""

import json
from pathlib import Path

import numpy as np

from dualgap import core
from dualgap.data.description import DESCRIPTION, HEADER, PIECE, digest


def seal(folder, **change):
    """Change the description of a store, and make every checksum right."""
    folder = Path(folder)
    description = json.loads((folder / DESCRIPTION).read_text())
    sums = {
        path.stem: core.crc32c_segments(
            np.fromfile(path, np.uint8, offset=HEADER), PIECE
        )
        for path in sorted(folder.glob("*.npy"))
    }
    description |= {"checksums": {k: v.tobytes().hex() for k, v in sums.items()}}
    description |= change
    description["sha256"] = digest(description)
    (folder / DESCRIPTION).write_text(json.dumps(description))
