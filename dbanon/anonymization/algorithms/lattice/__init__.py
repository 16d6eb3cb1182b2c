"""Full-domain generalization: levels of columns, and the nodes of their lattice with their cost."""
