"""What tile operators mean on every machine; how they run is a `Rule` of a backend."""
