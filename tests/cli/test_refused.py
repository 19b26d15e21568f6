"""One table of command lines that are refused, and words of the answer.

A command line stands before the arrow. Its status is 2 where it is wrong by itself, and
1 where it does not fit its files.
"""

from __future__ import annotations

import lzma
import os
import shlex
from pathlib import Path

import numpy as np
import pytest
from liblinear import liblinearutil
from sklearn.datasets import dump_svmlight_file

from dualgap import SVC, LinearSVC, save_model
from dualgap.data import convert
from dualgap.models.plain import PlainLinearSVC

from .running import call, refused, write

#: Options of `dualgap train missing model`, which nothing is read for.
TRAIN = """
--solver sdac => Did you mean 'sdca'?
--solver sgd => Did you mean 'sgd-
--loss square_hinge => Did you mean 'squared_hinge'?
--loss zzz => give squared_hinge, hinge, smoothed_hinge, epsilon
--C 0 => --C 0 is invalid; give a positive number.
-c nan => --C nan is invalid; give a positive number.
--C inf => give a positive number
--C ten => dualgap train: --C ten is invalid; give a positive number.
--tol -1 => --tol -1 is invalid; give a positive number
--time-limit 0 => give a positive number
--max-iter=0 => --max-iter 0 is invalid; give a whole number of 1 or m
-d 2.5 => --degree 2.5 is invalid; give a whole number of 1 or more
--n-jobs 0 => --n-jobs 0 is invalid; give a whole number from 1 to
--tol 2 => --tol 2 is invalid; 200 % proves nothing, so give a frac
--n-features 0 => --n-features
--seed -1 => --seed
--C 1 --lambda 1 => exclude each other
--gamma 1 => --gamma is for --kernel, or for --loss smoothed_hinge
--gamma auto --loss smoothed_hinge => give a number
--decimal ; => --decimal ; is invalid; give ',', '.'.
--gamma wide => give scale, auto, mean-distance or a positive number
--gamma -1 --kernel rbf => or a positive number
--kernel rbv => Did you mean 'rbf'?
--kernel cosine => give rbf, laplacian, linear, poly, sigm
-s 3 => No such option: -s; choose the problem with --task, --loss
-s 7 => -s 0, 6 and 7 are dualgap.LogisticRegression in Python
-t 2 => 1 poly, 2 rbf
-e 0.1 => --tol
-w1 2 => --class-weight
-v 5 => dualgap tune DATA --cv FOLDS
--probabilities => dualgap train --probability
-b --task one-class => --probability is not for --task one-class
--decision => dualgap predict --scores writes decision values
--decision-function => dualgap predict --scores writes decision values
--max-epochs 5 => use --max-iter
--kernal rbf => Did you mean --kernel?
--loss logistic => quantile, squared_epsilon_insensitive; Python has LogisticRegr
--kernel precomputed => is invalid; give rbf, laplacian
--kernel linear --gamma 1 => not linear
--kernel rbf --degree 2 => --degree is for --kernel poly
--kernel rbf --coef0 2 => --coef0 is for --kernel poly or sigmoid, not rbf
--kernel rbf --loss smoothed_hinge => is not for --kernel; use hinge
--kernel rbf --solver swap => use --loss squared_hinge, or
--kernel rbf --solver dcd => is not for --kernel; use auto, block, c
--kernel rbf --no-intercept => auto needs a bias; use --solver kernel-pegasos or nystroe
--kernel rbf --penalize-intercept => --solver auto does not support it with --loss hinge
--kernel rbf --intercept-scaling 2 => --intercept-scaling is not for --kernel.
--kernel rbf --cache big => give a size, such as 500MB or 2GB
--kernel rbf --cache 0MB => give a size
--kernel rbf --cache '2 parsec' => give a size
--kernel rbf --cache 1.2.3MB => give a size
--solver swap-2o => --solver swap-2o needs --kernel
--degree 2 => --degree needs --kernel
--coef0 2 => --coef0 needs --kernel
--cache 2GB => --cache needs --kernel
--no-intercept --intercept-scaling 2 => needs --intercept
--no-intercept --no-penalize-intercept => needs --intercept; without it
--no-penalize-intercept --intercept-scaling 2 => has no effect
--no-penalize-intercept --solver sdca => sdca penalises the bias
--solver sgd-s => sgd-s cannot train --loss squared_hinge; use --loss hi
--class-weight heavy => 'heavy' is not LABEL=W
--class-weight blanced => Did you mean 'balanced'?
--class-weight 1=2,-1 => '-1' is not LABEL=W
--class-weight 1=-2 => is not LABEL=W with a positive W
--class-weight 1=2,1.0=3 => occurs twice
--multi-class ovv => Did you mean 'ov
--solver-option order=cyclic => auto has no options
--solver sdca --solver-option batch=2 => sdca has the options order=permutation, init=ze
--solver sdca --solver-option order=3 => order=3: use permutation,
--solver sdca --solver-option order => 'order' is unknown; sdca has the
--task regression --solver-option a=1 => is not for --task regression
--multi-class ovr --kernel rbf => --multi-class is not for --kernel.
--multi-class crammer-singer --solver dcd => crammer-singer use --solver auto
--multi-class crammer-singer --loss squared_hinge => is not supported by --multi-class
--multi-class crammer-singer --no-penalize-intercept => is not supported by --multi-clas
--version => No such option: --version. See --help.
--encoding latin1 => No such option: --encoding. See --help.
--foo --C 0 => --foo. See --help. --C 0 is invalid; give a pos
--C 0 --tol a => a positive number. --tol a is invalid; give a
--cache 1GB -n 1 => --nu needs --kernel. --cache needs --kernel
third => third is one argument too many; the usage is: dualgap train
-o newer => model is one argument too many
--c 5 => --c may be
--C => --C needs a value: --C X.
--quiet=1 => --quiet takes no value.
-b 1 => takes no value; leave
--kernel rbf --checkpoint c => not
--task regresion => Did you mean 'regression'
--epsilon 0.1 => --epsilon is not for --task classification, but for --task regression.
--nu 0.1 => --nu needs --kernel.
--loss epsilon_insensitive => but for --task regression; use squared_h
--task one-class --C 1 => --C is not for --task one-class
--task one-class --epsilon 1 => but for --task regression
--task regression --nu 0.1 => --nu needs --kernel.
--task regression --loss hinge => --loss hinge is not
--task regression --solver sdca => use auto, dcd, interior-point, newton, smoothing-newt
--task regression --kernel rbf --solver dcd => use auto, block.
--task regression --gamma 1 => --gamma needs --kernel
--task regression --kernel rbf --degree 2 => --kernel poly
--task regression --class-weight balanced => is not for
--task regression --checkpoint file => is not for
--task regression --no-penalize-intercept => but for --task classification
--task regression --quantile 0.9 => --quantile needs --loss quantile.
--task one-class --no-intercept => --no-intercept is not for --task one
--task one-class --bounds => --bounds is not for --task one-class
--several-labels --kernel rbf => --kernel is not for --several-labels
--several-labels --task regression => --several-labels is not for --task regression
--several-labels --probability => --probability is not for --several-labels
--several-labels --multi-class ovo => --multi-class is not for --several-labels
--several-labels --class-weight balanced => --class-weight is not for --several
--kernel rbf --nu 0.3 --bounds => --bounds is not for --nu.
--kernel rbf --nu 0.3 --loss hinge => --loss is not for --nu.
--kernel rbf --nu 0.3 --epsilon 0.1 => --epsilon is not for --nu.
--kernel rbf --nu 0.3 --C 2 => --C is not for --nu.
"""
#: Other command lines that are wrong by themselves.
WRONG = """
--verison => dualgap: No such option: --verison. Did you mean --version?
inspect data --verbose => --verbose; it belongs to dualgap train, dualgap certify.
path data --kernel rbf => --kernel; it belongs to dualgap train, dualgap tune.
predict data model --standardize => --standardize; it belongs to dualgap train, dualgap
convert data new --format sparse => --format sparse is invalid; give auto, csr, dense.
convert data new --memory lots => --memory lots is invalid; give a size, such as 500MB o
convert data => STORE is missing; the usage is: dualgap convert
train '' new => DATA is empty; give the path of a file
train data '' => MODEL is empty; give the path of a file
score data model --weight w => train and the commands about training weigh examples
trian => No such command: trian. Did you mean train?
train data => MODEL is missing; the usage is: dualgap train [OPTIONS] DATA MODEL
train data new --class-weight 2=3 => data has no label 2; its labels are -1, 1
predict -b 0 data model => takes no value; leave
predict data model --proba 1 => takes no value; leave
predict data model --probability --scores => exclude each other
predict data model --undecided '?' --scores => exclude each other
path data --C a => positive numbers, such as 0.1,1
path data --C 1 --n-Cs 3 => exclude each other
path data -s 3 => -s 4 is --multi-class crammer_singer
path data --cv 3 => dualgap tune DATA --cv FOLDS
path data --solver pegasos => keeps no dual variables
tune data --kernel rbf --picture a.png => not for --k
tune data --gamma 1 => --gamma needs --kernel
tune data --kernel linear --gamma 1 => not linear
tune data --nu 0.1 => --nu needs --kernel
tune data --epsilon 0.1 => but for --task regression
tune data --kernel rbf --nu 2 => above 0 and at most 1
tune data --kernel rbf --nu 0.1 --C 1 => --C is not for --nu
tune data --kernel rbf --nu 0.1 --n-Cs 3 => --n-Cs is not for --nu
tune data --task regression --time-limit 1 => is not for --task regression; try fewer
tune data --task regression --quantile 0.9 => --quantile needs --loss quantile
tune data --task regression --picture a.png => not for --task regression
export model new --format pmml => pmml is invalid; give liblinear, l
export model new.pmml => choose the format with --format
"""
#: Command lines that do not fit their files.
FILES = """
train missing new => missing: No such file
train folder new => folder: is a folder, not a data file
train data folder => folder: is a folder
train data nowhere/model => nowhere: no such folder
train data data => data is the input
train data folder/../data => is the input
train data notes => notes exists and is not a model file
train data.xz new => data.xz cannot be decompressed
train data new --n-features 5 => data has 6 features, more than 5
train data new --checkpoint none/c => no such folder
train data new --label y => is svmlight text, not a table
train data new --zero-based --label 1 => leave --label out
train zero new --one-based => least 1 (--zero-based reads indices
train empty new => empty has no examples
train comment new => comment has no examples
train one new => has only one class, 1
train bare new => bare has only labels
train half new => not whole numbers below 2**53, such as -0.5
train large new => below 2**53, such as 1e+300
train spoilt new => spoilt, line 2
train commas new => commas, line 1
train targets new => ; dualgap train --task regression predicts numbers
train targets.store new => from the file that the store was made from
train several new => several labels a line need dualgap train --several-labels
train t.csv new --several-labels => t.csv is not svmlight text; leave --several-labels o
train unlabelled new --several-labels => unlabelled has no labels
train t.csv new --label z => no label column 'z'
train t.csv new --task one-class --label z => no label column 'z'
train ten.csv new --label z => f, ..., i, j, kind
train t.csv new --zero-based => is a table, not svmlight text
train t.csv new --task regression => has labels that are not numbers
train t.csv - => cannot be '-'
train gap.csv new => line 3, column 1 ('a'): the value is missing
train unsure.csv new --label y => fill it, or leave such rows out with --missing drop
train two.csv new => name it with --label ...
train picture.csv new => is not a data file; give svmlight text, CSV
train peer new => DATA comes before MODEL
train few new --proba => label 1 has 4 rows, but --probability needs 5
train store new --kernel rbf => which --kernel cannot use
train store new --penalty l1 => which --penalty l1 cannot use
train store new --several-labels => --several-labels cannot use
train store new --task regression => which --task regression cannot use
train store new --probability => is a store, which --probability cannot use
train store new --n-features 9 => has 6 features, not 9
train store new --one-based => is a store, not svmlight text
predict data data => data is not a model file of dualgap
predict data folder => folder: is a folder, not a model file
predict data missing => missing: No such file
predict missing model => missing: No such file
predict data damaged => damaged is not a valid dualgap model
predict wide model => wide has 7 features, more than 6; give data like the training data
predict zero model => zero, line 1
predict data model -o data => is the input
predict data model -o model => is the input
predict data model -o x/out => no such folder
predict data model --proba => model has no probabilities; train it with --probability
predict data free --undecided '?' => bound_optimum
predict data regression --undecided '?' => classification
predict several labels --undecided '?' => --undecided is for
score none model => none cannot be scored: every label is 0
predict data liblinear --undecided '?' => --undecided needs a model of dualgap train
predict hues.csv model => hues.csv has words (hue), but model was trained on numbers
score wide liblinear => wide has 7 features, more than 6; give data like the training
score data missing => missing: No such file
score peer t.csv => DATA comes before MODEL
score t.csv t.csv => give a file that train has written
path one => has only one class
path store => which path cannot use
path model => model is a model file, not a data file; give a data file
path targets => ; dualgap train --task regression predicts numbers
tune data data --cv 3 => is the input
tune data -o notes => not a model file
tune data --task regression --cv 40 => give at most 30
tune store => which tune cannot use
tune model => model is a model file, not a data file; give a data file
tune t.csv - => cannot be '-'
tune classes --cv 18 => --cv 18 is too large, as the smallest class of classes has 16 ex
tune few.csv --cv 2 => a class of few.csv has 1 example, which no training part
tune sorted.csv --cv 2 --weight w -q --C 1 => ; change the weights, or --cv
certify data data => is not a model file of dualgap, LIBLINEAR or LIBSVM
certify data model --C 1 => leave --C out
certify peers model => give the training labels
certify moved model => moved is not the training data of model: the
certify longer model => it has 61 examples instead of 60
certify data none.model => No such file
certify store model => which certify cannot use
certify peer t.csv => DATA comes before MODEL
certify targets svr => which does not contain C
certify targets svr --C 1 => which does not contain epsilon
certify targets svr --C 1 -p 0.1 --nu 0.1 => has no nu
export model new --format libsvm => for kernel models
export kernel new --format liblinear => for linear models
export model new.libsvm => for kernel models
export model data => is not a model file
export model model => is the input
export halves new => whole numbers
export labels new.ll => train a model for each label
export folder a.ll => folder: is a folder, not a model file
export model - => cannot be '-'
report moved model => DATA is not the training data of the model
report longer model => it has 61 examples instead of 60
report data model -o data => data is the input
report data model -o notes => notes exists and is not an HTML page
report data model -o nowhere/x => no such folder
report data none.model => No such file
report several labels new => has several labels per example
prove several labels new => has several labels per example
prove data laplacian -o new => laplacian has no proof file
prove data model -o data => is the input
prove data model -o kernel => not a proof
inspect model => dualgap report DATA MODEL
inspect data --verify => is not a store
inspect empty => no examples
inspect t.csv --label c => no label column 'c'
convert missing new => missing
convert - new => save the input to a file, or give svmlight text as /dev/stdin
convert data store => --overwrite
convert data new --memory 1KB => --memory 1000
convert t.csv new --labels c => --labels c is for .npy and .npz
convert t.csv new --weight v => no weight column 'v'
convert t.csv - => cannot be '-'
convert picture.csv new.store => is not a data file; give svmlight
convert words.csv new => --columns
convert arrays.csv t.csv new => inputs are of several kinds (numpy, table)
"""
TEXTS = {
    "empty": "", "comment": "# only a comment\n", "bare": "1\n-1\n", "wide": "1 7:1\n",
    "half": "1 1:2\n-0.5 1:3\n", "large": "1e300 1:2\n-1 1:3\n", "notes": "Keep me.",
    "spoilt": "1 1:2\n-1 1:x\n", "commas": "1,2 1:2\n", "unlabelled": " 1:1\n 2:1\n",
    "zero": "1 0:1\n", "none": "0 2:1\n0 2:2\n", "several": "a,b 1:1\nb 2:1\na 1:2\n",
    "t.csv": "a,b,kind\n1,2,no\n2,1,yes\n3,1,no\n", "gap.csv": "a,y\n1,2\n,3\n",
    "ten.csv": "a,b,c,d,e,f,g,h,i,j,kind\n1,2,3,4,5,6,7,8,9,0,x\n",
    "unsure.csv": "a,y\n1,p\n2,\n3,q\n",
    "two.csv": "a,b\n1,2\n,3\n", "few.csv": "a,y\n1,p\n2,q\n3,p\n",
    "sorted.csv": "a,w,y\n1,0,p\n2,1,q\n3,1,p\n4,1,q\n5,0,p\n",
    "hues.csv": "a,hue,label\n1,red,-1\n2,blue,1\n3,gold,1\n4,pink,1\n5,grey,-1\n",
    "words.csv": "a,b,label\n1,2,0\n2,no,1\n",
    "peer": "solver_type L2R_L1LOSS_SVC_DUAL\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write every file that the command lines name."""
    folder, before = tmp_path_factory.mktemp("files"), Path.cwd()
    os.chdir(folder)
    X, y = write("data", [-1, 1])
    for name, labels, options in (
        ("one", [1], {}), ("peers", [1, 2], {}), ("classes", [-1, 1, 4], {"n": 50}),
        ("moved", [-1, 1], {"seed": 1}), ("longer", [-1, 1], {"n": 61}),
        ("few", [1, 2, 3], {"n": 12}),
    ):  # fmt: skip
        write(name, labels, **options)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    target = X.toarray()[:, 0] + 0.5
    dump_svmlight_file(X, target, "targets", zero_based=False)
    liblinearutil.save_model("svr", liblinearutil.train(target, X, "-s 12 -q"))
    liblinearutil.save_model("liblinear", liblinearutil.train(y, X, "-s 3 -q"))
    Path("folder").mkdir()
    Path("picture.csv").write_bytes(b"\x89PNG\0\1")
    Path("data.xz").write_bytes(lzma.compress(Path("data").read_bytes())[:-20])
    with open("arrays.csv", "wb") as file:
        np.savez(file, X=X.toarray(), y=y)
    convert([(X, y)], "store")
    convert("targets", "targets.store")
    call("train", "data", "model", "-q")
    call("train", "data", "free", "-q", "--no-penalize-intercept")
    call("train", "data", "regression", "-q", "--task", "regression", "--bounds")
    call("train", "data", "laplacian", "-q", "--kernel", "laplacian")
    call("train", "several", "labels", "-q", "--several-labels")
    save_model(SVC().fit(X, y), "kernel")
    halves = LinearSVC().fit(X, np.where(y > 0, "a", "b"))
    halves.classes_ = np.array([0.5, 1.5])
    save_model(halves, "halves")
    content = bytearray(Path("model").read_bytes())
    content[-1] ^= 1
    Path("damaged").write_bytes(content)
    os.chdir(before)
    return folder


CASES = [
    (status, shlex.split(prefix + line.partition(" =>")[0]), line.partition("=>")[2])
    for status, prefix, table in ((2, "train missing model ", TRAIN), (2, "", WRONG),
                                  (1, "", FILES))
    for line in table.strip().splitlines()
]  # fmt: skip


def contents() -> dict[Path, bool | bytes]:
    """Return the contents of all files of the folder."""
    return {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}


@pytest.mark.cases(None)
@pytest.mark.parametrize(("status", "command", "words"), CASES)
def test_a_command_is_refused(
    status: int, command: list[str], words: str, files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Nothing is written, and no training begins."""

    def fail(self: object, X: object, *arguments: object, **options: object) -> None:
        assert len(X) == 4, "training began"  # a check of the options has four rows

    monkeypatch.chdir(files)
    for kind in (LinearSVC, PlainLinearSVC):
        if status == 1:  # the files are refused
            monkeypatch.setattr(kind, "_fit", fail)
    before = contents()
    told = refused(*command, status=status)
    assert words.strip() in told
    assert contents() == before
    assert told.count("\n") == 1
