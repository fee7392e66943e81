"""Tokens as the spins of a Potts model, coupled by what a head makes of them."""
