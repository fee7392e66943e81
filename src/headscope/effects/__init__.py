"""What changes when heads change: silencing, pruning, entropy by layer, noise taken away."""
