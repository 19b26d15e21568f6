"""Names of the papers whose experiments are here."""

#: The papers by name, and the modules of their experiments.
MODULES = {
    "pegasos2011": "pegasos2011",
    "pegasos2011-kernels": "pegasos2011_kernels",
    "pegasos-rows": "pegasos_rows",
    "sgd-revisited": "sgd_revisited",
    "sdca2013": "sdca2013",
    "nanculef2014": "nanculef2014",
}
