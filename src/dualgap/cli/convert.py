"""``dualgap convert``: a store of data larger than memory."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from .options import (
    Debug,
    Json,
    ReadJobs,
    ZeroBased,
    app,
    known_word,
    megabytes,
    paragraphs,
    told_plainly,
)
from .report import print_json


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap convert big.svm.xz big.store --single",
        "dualgap convert part-*.parquet big.store --label clicked --memory 4GB",
        "dualgap train big.store big.model --checkpoint big.checkpoint",
        "A conversion that was killed goes on when it is called again; it works in a "
        "hidden folder beside STORE, which appears when it is complete, and needs "
        "twice the space of the store.",
    )
)
def convert(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... STORE",
            help="Files: svmlight text (plain, .gz, .bz2, .xz, .zst), .parquet, "
            ".arrow, .npy or .npz; and at last the folder to make.",
            show_default=False,
        ),
    ],
    format_: Annotated[
        str,
        typer.Option("--format", help="csr, dense, or auto: as the first rows are."),
    ] = "auto",
    single: Annotated[
        bool, typer.Option("--single", help="Round values to float32.")
    ] = False,
    shuffle: Annotated[
        bool,
        typer.Option(help="Put the rows in random order, which the solvers rely on."),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of that order.")] = 0,
    memory: Annotated[
        str,
        typer.Option(metavar="SIZE", help="Memory to work in, such as 500MB or 4GB."),
    ] = "1GiB",
    label: Annotated[
        str, typer.Option(help="Column of labels, of Parquet and Arrow files.")
    ] = "label",
    weight: Annotated[
        str | None,
        typer.Option(help="Column of weights, of the same.", show_default="none"),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=".npy file of labels, for .npy and .npz files without.",
            show_default=False,
        ),
    ] = None,
    n_features: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of features, where IN lacks the last ones.",
            show_default="what IN holds",
        ),
    ] = None,
    zero_based: ZeroBased = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the store that is there.")
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Do not go on with a conversion that was killed."),
    ] = False,
    n_jobs: ReadJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Make a STORE of data larger than memory, its rows in random order."""
    if len(inputs) < 2:
        raise typer.BadParameter("give one file or more, and then STORE.")
    known_word(format_, ["auto", "csr", "dense"])
    size = megabytes(memory)
    with told_plainly(debug):
        from ..io import convert as convert_files

        begun = time.perf_counter()
        store = convert_files(
            inputs[:-1],
            inputs[-1],
            format=format_,  # type: ignore[arg-type]
            dtype="float32" if single else "float64",
            shuffle=shuffle,
            seed=seed,
            memory=int(1e6 * (size or 0.0)),
            n_jobs=n_jobs,
            overwrite=overwrite,
            resume=not fresh,
            zero_based="auto" if zero_based is None else zero_based,
            n_features=n_features,
            label=label,
            weight=weight,
            y=labels,
        )
        seconds = time.perf_counter() - begun
    if json_:
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
        f"{store.path}: {store.n_samples:,} examples, {store.n_features:,} features, "
        f"{store.nnz:,} values, made in {seconds:.2f} s"
    )
