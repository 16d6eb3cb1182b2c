"""Full-domain generalization: levels of columns, nodes of their lattice, and what a node costs."""
