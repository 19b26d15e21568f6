"""
Prove a model to somebody who does not trust you
================================================

``write_proof`` writes a file that states how far a linear model is from the optimum.
The program ``dualgap-check`` checks it in exact integers: one file of plain Python,
without dualgap, NumPy or floating-point numbers.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import dualgap_check
from dualgap import LinearSVC
from dualgap.models import write_proof

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = LinearSVC(C=0.1, tol=1e-5, random_state=0).fit(X, y)
folder = Path(tempfile.mkdtemp())
proof = folder / "cancer.proof"
write_proof(model, X, y, proof)


def check(path):
    """Run the checker as a lone file, isolated from all installed packages."""
    command = [sys.executable, "-I", "-S", dualgap_check.__file__, path]
    return subprocess.run(command, capture_output=True, text=True).stdout


print(check(proof))

# %%
# The file is text. It holds the problem, the model and the claim, and then one line for
# each row with its dual variable.

for line in proof.read_text().splitlines()[:13]:
    print(line[:76])

# %%
# A checksum finds a changed byte. Whoever forges a proof can compute the checksum
# again, but the claims are the exact values of P and D: with another model they are
# false.

text = proof.read_text()
w = text.split("\nw ")[1].split()[0]
forged = folder / "forged.proof"
forged.write_text(text.replace(w, str(int(w) + 1), 1))
print(check(forged))

body = forged.read_bytes().rpartition(b"sha256 ")[0]
digest = dualgap_check.hashlib.sha256(body).hexdigest()
forged.write_bytes(body + f"sha256 {digest}\n".encode())
print(check(forged))

# %%
# A looser model has a valid proof too, of a larger gap.

tols = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]
gaps = []
for tol in tols:
    model.set_params(tol=tol).fit(X, y)
    gaps.append(write_proof(model, X, y, proof, tol=1.0).relative_gap)
figure, ax = plt.subplots(figsize=(5.6, 3), layout="constrained")
ax.loglog(tols, tols, "--", color="0.6", label="requested")
ax.loglog(tols, gaps, "o-", label="proved exactly")
ax.set(xlabel="tol", ylabel="relative gap")
ax.legend()
plt.show()
