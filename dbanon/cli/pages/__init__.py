"""Reports as pages of one file: HTML, CSS and SVG, without a script and without a network."""
