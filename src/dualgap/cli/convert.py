"""``dualgap convert``: convert data larger than memory to a row store."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated

import typer

from .app import app, paragraphs, taking, told_plainly
from .data import refuse_model
from .options import Debug, Json, ReadJobs, Words, ZeroBasedInputs, megabytes
from .report import print_json

_FORMAT = Words(lambda: ("auto", "csr", "dense"))


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """Options of ``dualgap convert``."""

    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... STORE",
            help="Input files: svmlight text, CSV or TSV (also compressed), Parquet, "
            "Arrow, .npy or .npz, known by their content. The last argument is the "
            "folder to create.",
            show_default=False,
        ),
    ]
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            callback=_FORMAT.check,
            autocompletion=_FORMAT.complete,
            help="csr, dense, or auto: the format of the first rows.",
        ),
    ] = "auto"
    single: Annotated[
        bool, typer.Option("--single", help="Round values to float32.")
    ] = False
    shuffle: Annotated[
        bool,
        typer.Option(help="Put the rows in random order, which the solvers rely on."),
    ] = True
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random order.")] = 0
    memory: Annotated[
        str,
        typer.Option(
            callback=megabytes,
            metavar="SIZE",
            help="Memory to use, such as 500MB or 4GB.",
        ),
    ] = "1GiB"
    label: Annotated[str, typer.Option(help="Column of the labels in tables.")] = (
        "label"
    )
    weight: Annotated[
        str | None,
        typer.Option(
            help="Column of the weights in tables.",
            show_default="none",
        ),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=".npy file with the labels, for .npy and .npz files without labels.",
            show_default=False,
        ),
    ] = None
    n_features: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of features, if the last ones do not occur in IN.",
            show_default="from IN",
        ),
    ] = None
    zero_based: ZeroBasedInputs = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing store.")
    ] = False
    n_jobs: ReadJobs = None
    json_: Json = False
    debug: Debug = False


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap convert big.svm.xz big.store --single",
        "dualgap convert part-*.parquet big.store --label clicked --memory 4GB",
        "dualgap train big.store big.model --checkpoint big.checkpoint",
        "The conversion works in a hidden folder beside STORE and needs twice its "
        "space. STORE appears when it is complete. A conversion that was killed starts "
        "over when the command is repeated.",
    )
)
@taking(ConvertOptions)
def convert(options: ConvertOptions) -> None:
    """Convert data larger than memory to a STORE, with its rows in random order."""
    o = options
    if len(o.inputs) < 2:
        raise typer.BadParameter("STORE is missing; give one file or more, then STORE.")
    *files, target = o.inputs
    with told_plainly(o.debug):
        from ..data import convert as convert_files

        for path in files:
            refuse_model(path)
        begun = time.perf_counter()
        store = convert_files(
            files,
            target,
            format=o.format_,  # type: ignore[arg-type]
            dtype="float32" if o.single else "float64",
            shuffle=o.shuffle,
            seed=o.seed,
            memory=int(1e6 * float(o.memory)),  # megabytes made it a number
            n_jobs=o.n_jobs,
            overwrite=o.overwrite,
            zero_based="auto" if o.zero_based is None else o.zero_based,
            n_features=o.n_features,
            label=o.label,
            weight=o.weight,
            y=o.labels,
        )
        seconds = time.perf_counter() - begun
    if o.json_:
        print_json(
            {
                "path": store.path,
                "n": store.n_samples,
                "d": store.n_features,
                "nnz": store.nnz,
                "dense": not store.is_sparse,
                "dtype": str(store.dtype),
                "weights": store.has_weights,
                "zero_based": store.zero_based,
                "seconds": seconds,
            }
        )
        return
    typer.echo(
        f"{target}: {store.n_samples:,} examples, {store.n_features:,} features, "
        f"{store.nnz:,} values, made in {seconds:.2f} s"
    )
