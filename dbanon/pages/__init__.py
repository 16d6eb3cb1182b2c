"""Reports as single-file pages: HTML, CSS and SVG, without scripts or network access."""
